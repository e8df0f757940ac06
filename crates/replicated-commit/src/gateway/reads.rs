//! Reads as the gateway runs them: ask one replica or all, wait for one or for a majority, merge, remember.
//!
//! ```text
//!   locking, snapshot:  Read ─▶ every region ─▶ a majority of answers per shard ─▶ the newest version of each row
//!   optimistic, stale:  Read ─▶ the nearest region that is alive ─▶ its answer
//! ```
//!
//! A snapshot read whose answers show a version, or a prepared write, above its timestamp is read once more at the
//! highest timestamp shown. Every commit that ended before the transaction began is prepared or applied at some replica
//! of any majority, so the second round misses none, whatever the clocks' skew. One that finds a commit whose
//! [floor](crate) lies above its timestamp is read again at the floor or later. Where rows are written
//! all the time nearly every commit's floor lies above the commit, and the next commit below that floor: so the first move
//! goes to the present, and those after it as far ahead of the clock as the round before took. Replicas refuse writes
//! below such a timestamp from when they are asked; no clock follows it.
//!
//! Source: section 3.2.1; 3.3 for denied locks and for optimistic reads; GPlacer, 2.2, for those at the nearest replica. There a denied
//! reader waits for a random time, here for one that doubles: it competes with a prepared writer only, never with another reader.

use super::Gateway;
use super::merge::Merged;
use super::pending_read::{Asked, PendingRead, Reader, ScanRequest, ShardRead};
use crate::config::{LOCK_BACKOFF, LOCK_ROUNDS_MAX};
use crate::context::{Context, Shared};
use crate::job::{ReadRetry, Timer};
use crate::message::{Answer, Denial, How, Note, Query, Read, ReadId, Rows};
use rhumb_commit::placement::Regions;
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::{Key, RegionId, SiteId, Span, Timestamp, work};
use std::collections::{BTreeMap, BTreeSet};

/// Whom to ask, of the replicas whose answers are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    /// All of them.
    Missing,
    /// Those that denied a lock.
    Denying,
}

impl How {
    /// True if one replica's answer is enough.
    fn is_local(self) -> bool {
        matches!(self, How::Newest | How::Stale(_))
    }
}

impl Gateway {
    /// A client reads rows by key.
    pub(crate) fn on_get(&mut self, reader: Reader, keys: Vec<Key>, expect: Vec<(Key, Timestamp)>, cx: &mut Context<'_>) {
        let snapshot = reader.mode == ReadMode::Snapshot;
        // What is expected comes first: answers that are cut off have it.
        let expected = expect.iter().filter(|_| snapshot).map(|(key, _)| key);
        let shards = Self::by_shard(cx, expected.chain(&keys));
        self.start_read(reader, Asked::Get { keys, expect }, shards, BTreeMap::new(), cx);
    }

    /// What each shard is asked for to read these keys.
    fn by_shard<'a>(cx: &Shared, keys: impl Iterator<Item = &'a Key>) -> BTreeMap<u16, Query> {
        let mut by_shard: BTreeMap<u16, Vec<Key>> = BTreeMap::new();
        for key in keys {
            by_shard.entry(cx.topology.shard_of(key)).or_default().push(key.clone());
        }
        by_shard.into_iter().map(|(shard, keys)| (shard, Query::Keys(keys))).collect()
    }

    /// A client reads a range.
    pub(crate) fn on_scan(&mut self, reader: Reader, scan: ScanRequest, expect: Vec<(Key, Timestamp)>, cx: &mut Context<'_>) {
        let query = Query::Range { range: scan.range.clone(), limit: scan.limit.max(1), reverse: scan.reverse };
        let shards = cx.all_shards().into_iter().map(|shard| (shard, query.clone())).collect();
        let expected = expect.iter().filter(|_| reader.mode == ReadMode::Snapshot).map(|(key, _)| key);
        let expected = Self::by_shard(cx, expected);
        self.start_read(reader, Asked::Scan { scan, expect }, shards, expected, cx);
    }

    /// Asks replicas for a read, and those of `expected` beside it for rows that it depends on.
    fn start_read(
        &mut self,
        reader: Reader,
        asked: Asked,
        shards: BTreeMap<u16, Query>,
        expected: BTreeMap<u16, Query>,
        cx: &mut Context<'_>,
    ) {
        let Reader { id, txn, mode } = reader;
        let Some(state) = self.txns.get_mut(&txn) else {
            return cx.fx.answer(id, Answer::Failed(TxnError::Invalid("the transaction is over".into())));
        };
        state.mode = mode;
        if !mode.is_read_only() {
            self.workload.reads();
        }
        let how = match mode {
            ReadMode::Locking => How::Lock,
            ReadMode::Optimistic | ReadMode::Active => How::Newest,
            ReadMode::Snapshot => How::At(state.snapshot),
            ReadMode::Stale(_) => How::Stale(state.snapshot),
        };
        let all: Vec<u16> = shards.keys().chain(expected.keys()).copied().collect();
        if !how.is_local()
            && let Err(error) = Self::check_majority(cx, &all)
        {
            return cx.fx.answer(id, Answer::Failed(error));
        }
        let (shards, expected) = (unanswered(shards), unanswered(expected));
        let pending = PendingRead {
            id,
            txn,
            how,
            active: mode == ReadMode::Active,
            avoid: Regions::NONE,
            asked,
            shards,
            expected,
            lock_rounds: 0,
            moved: 0,
            since: cx.now,
            sent: cx.now,
        };
        self.begin_round(pending, cx);
    }

    /// Sends a read under a new name, so that no answer to an earlier round is taken for one to this.
    fn begin_round(&mut self, pending: PendingRead, cx: &mut Context<'_>) {
        let read = ReadId { incarnation: cx.incarnation, made: cx.timestamp(), of_expected: false };
        self.reads.insert(read, pending);
        self.request_rows(read, Whom::Missing, cx);
    }

    /// Sends a read, or sends it again, to replicas whose answers it lacks.
    fn request_rows(&mut self, read: ReadId, whom: Whom, cx: &mut Context<'_>) {
        let Some(pending) = self.reads.get(&read) else { return };
        let (txn, how) = (pending.txn, pending.how);
        let copies = cx.placement.read_by(pending.active);
        let others = copies.without(pending.avoid);
        let among = if others.is_empty() { copies } else { others };
        let (epoch, voters) = (cx.placement.epoch, cx.placement.voters);
        let mut sends = Vec::new();
        for (name, reads) in [(read, &pending.shards), (ReadId { of_expected: true, ..read }, &pending.expected)] {
            for (&shard, part) in reads {
                let wanted = |region: &RegionId| match whom {
                    Whom::Missing => !part.replies.contains_key(region),
                    Whom::Denying => part.denied.contains(region),
                };
                let regions: Vec<RegionId> =
                    if how.is_local() { vec![Self::nearest(cx, shard, among)] } else { voters.iter().filter(wanted).collect() };
                sends.extend(regions.into_iter().map(|region| (SiteId { region, shard }, name, part.query.clone())));
            }
        }
        let now = cx.now;
        if let Some(pending) = self.reads.get_mut(&read) {
            pending.sent = now;
            pending.shards.values_mut().chain(pending.expected.values_mut()).for_each(|part| part.denied.clear());
            for (site, name, _) in sends.iter().filter(|_| how.is_local()) {
                let parts = if name.of_expected { &mut pending.expected } else { &mut pending.shards };
                parts.entry(site.shard).and_modify(|part| part.asked = Some(site.region));
            }
        }
        if how == How::Lock
            && let Some(state) = self.txns.get_mut(&txn)
        {
            state.locked_at.extend(sends.iter().map(|(site, ..)| *site));
        }
        for (site, read, query) in sends {
            cx.send(site, Note::Read(Read { read, epoch, txn, query, how }));
        }
    }

    /// Where to read one replica of `shard`, of those in `among`: here if it can be, else at the region that the placement
    /// names, else at the nearest; at one that is alive.
    fn nearest(cx: &Shared, shard: u16, among: Regions) -> RegionId {
        let here = cx.me.region;
        let site = |region| SiteId { region, shard };
        let serves = |region: RegionId| {
            let alive = site(region) == cx.me || cx.peers.is_alive(site(region), cx.now, cx.config.suspect_after);
            among.contains(region) && alive
        };
        let named = cx.placement.coordinators.get(&here).map(|named| named.read);
        if let Some(region) = Some(here).into_iter().chain(named).find(|region| serves(*region)) {
            return region;
        }
        let distance = |region: &RegionId| cx.peers.rtt(site(*region)).unwrap_or(Span::from_secs(3_600));
        among.iter().filter(|region| serves(*region)).min_by_key(distance).or_else(|| among.iter().next()).unwrap_or(here)
    }

    /// A replica answers.
    pub(crate) fn on_rows(&mut self, from: SiteId, reply: Rows, cx: &mut Context<'_>) {
        let name = reply.read;
        let read = ReadId { of_expected: false, ..name };
        let Some(pending) = self.reads.get_mut(&read) else { return };
        let parts = if name.of_expected { &mut pending.expected } else { &mut pending.shards };
        let Some(part) = parts.get_mut(&from.shard) else { return };
        part.denied.remove(&from.region);
        part.replies.entry(from.region).or_insert(reply);
        let needed = if pending.how.is_local() { 1 } else { cx.placement.voters.majority() };
        if pending.shards.values().chain(pending.expected.values()).all(|part| part.replies.len() >= needed)
            && let Some(pending) = self.reads.remove(&read)
        {
            self.finish_read(pending, cx);
        }
    }

    pub(crate) fn on_denied(&mut self, from: SiteId, name: ReadId, denial: Denial, cx: &mut Context<'_>) {
        let voters = cx.placement.voters;
        let read = ReadId { of_expected: false, ..name };
        let Some(pending) = self.reads.get_mut(&read) else { return };
        let parts = if name.of_expected { &mut pending.expected } else { &mut pending.shards };
        let Some(part) = parts.get_mut(&from.shard) else { return };
        if part.replies.contains_key(&from.region) {
            return;
        }
        if denial == Denial::NoCopy {
            // Where there is no copy any more, or not yet, there is one elsewhere.
            pending.avoid = pending.avoid.or(from.region.into());
            if !cx.placement.read_by(pending.active).without(pending.avoid).is_empty() {
                self.request_rows(read, Whom::Missing, cx);
            }
            return;
        }
        part.denied.insert(from.region);
        let lost = pending.how.is_local() || part.denied.len() > voters.len() - voters.majority();
        if !lost {
            return;
        }
        if denial == Denial::Locked && pending.lock_rounds < LOCK_ROUNDS_MAX {
            if part.denied.len() == voters.len() - voters.majority() + 1 {
                // Once per round: wait a little, longer each time, then ask those that denied again.
                cx.fx.count("read.lock_round");
                pending.lock_rounds += 1;
                cx.fx.set_timer(Timer::RetryRead(ReadRetry { read }), LOCK_BACKOFF * (1 << pending.lock_rounds));
            }
            return;
        }
        let error = match denial {
            Denial::Locked => TxnError::Conflict("a row is locked by a transaction that is committing".into()),
            Denial::NoCopy => unreachable!("asked elsewhere"),
            Denial::Busy => TxnError::Conflict("too many reads wait for transactions that are committing".into()),
            Denial::Collected(oldest) => {
                let kept = cx.now.since(oldest.time()).as_millis_f64() / 1000.0;
                TxnError::OutOfRange(format!("cannot read that far back: versions older than {kept:.0} s are no longer kept").into())
            }
        };
        if let Some(pending) = self.reads.remove(&read) {
            cx.fx.answer(pending.id, Answer::Failed(error));
        }
    }

    /// The placement has changed: what was asked of the active regions is asked of those of the new one.
    pub(crate) fn resend_in_new_epoch(&mut self, cx: &mut Context<'_>) {
        let of_majority: Vec<PendingRead> = self.reads.extract_if(.., |_, read| !read.how.is_local()).map(|(_, read)| read).collect();
        for mut pending in of_majority {
            for part in pending.shards.values_mut().chain(pending.expected.values_mut()) {
                part.replies.clear();
            }
            self.begin_round(pending, cx);
        }
    }

    pub(crate) fn on_retry_read(&mut self, retry: ReadRetry, cx: &mut Context<'_>) {
        self.request_rows(retry.read, Whom::Denying, cx);
    }

    pub(super) fn reads_tick(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        work::add(self.reads.len());
        let overdue: Vec<ReadId> =
            self.reads.iter().filter(|(_, read)| now.since(read.sent) >= cx.config.resend_after).map(|(read, _)| *read).collect();
        for read in overdue {
            let Some(pending) = self.reads.get(&read) else { continue };
            let (id, since) = (pending.id, pending.since);
            if now.since(since) >= cx.config.read_timeout {
                self.reads.remove(&read);
                let error = TxnError::Unavailable(format!("the read was not answered within {}", cx.config.read_timeout).into());
                cx.fx.answer(id, Answer::Failed(error));
            } else {
                cx.fx.count("read.sent_again");
                self.avoid_silent(read);
                self.request_rows(read, Whom::Missing, cx);
            }
        }
    }

    /// The one replica that was asked does not answer, perhaps as it waits for a site that is dead: another one is asked, if there is one.
    fn avoid_silent(&mut self, read: ReadId) {
        let Some(pending) = self.reads.get_mut(&read).filter(|pending| pending.how.is_local()) else { return };
        let silent = pending.shards.values().filter(|part| part.replies.is_empty()).filter_map(|part| part.asked);
        pending.avoid = silent.fold(pending.avoid, |avoid, region| avoid.or(region.into()));
    }

    /// All replies that are needed are here.
    fn finish_read(&mut self, mut pending: PendingRead, cx: &mut Context<'_>) {
        let here = cx.me.region;
        let elsewhere = |part: &ShardRead| part.replies.keys().any(|region| *region != here);
        let wide = if pending.how.is_local() { pending.shards.values().any(elsewhere) } else { cx.is_wide() };
        let Some(txn) = self.txns.get_mut(&pending.txn) else { return };
        txn.trips += u32::from(wide);
        if let How::At(at) = pending.how {
            match txn.check_snapshot(at, &pending, cx.now) {
                Ok(None) => {}
                Ok(Some(higher)) => {
                    cx.fx.count("read.snapshot_second_round");
                    txn.snapshot = higher;
                    pending.how = How::At(higher);
                    pending.moved += 1;
                    for part in pending.shards.values_mut().chain(pending.expected.values_mut()) {
                        part.replies.clear();
                    }
                    return self.begin_round(pending, cx);
                }
                Err(error) => {
                    cx.fx.count("read.snapshot_uncertain");
                    return cx.fx.answer(pending.id, Answer::Failed(error));
                }
            }
        }
        if let Some(apart) = self.read_apart(cx, &pending) {
            cx.fx.count("read.expected_apart");
            return self.begin_round(apart, cx);
        }
        let Some(txn) = self.txns.get_mut(&pending.txn) else { return };
        match txn.take_rows(&pending) {
            Ok(Merged { rows, covered, more }) => {
                let newest = rows.iter().map(|row| row.version).max().unwrap_or(Timestamp::ZERO);
                let trips = txn.trips;
                let at = if let How::At(at) | How::Stale(at) = pending.how { at } else { Timestamp::ZERO };
                cx.clock.observe(newest);
                cx.fx.answer(pending.id, Answer::Rows { rows, covered, more, trips, at });
            }
            Err(error) => cx.fx.answer(pending.id, Answer::Failed(error)),
        }
    }

    /// What a snapshot expects travels with the rows that it reads by key, ahead of them. Where that leaves no room for the first of these, each
    /// is read by itself, as with a scan: the read to do instead.
    fn read_apart(&self, cx: &Shared, pending: &PendingRead) -> Option<PendingRead> {
        let Asked::Get { keys, expect } = &pending.asked else { return None };
        let is_together = matches!(pending.how, How::At(_)) && !expect.is_empty() && pending.expected.is_empty();
        let first = keys.first().filter(|_| is_together)?;
        let has_first = |reply: &Rows| reply.rows.iter().any(|row| row.key == *first);
        if pending.shards[&cx.topology.shard_of(first)].replies.values().all(has_first) {
            return None;
        }
        let shards = unanswered(Self::by_shard(cx, keys.iter()));
        let expected = unanswered(Self::by_shard(cx, expect.iter().map(|(key, _)| key)));
        Some(PendingRead { asked: Asked::Get { keys: keys.clone(), expect: expect.clone() }, shards, expected, ..*pending })
    }
}

/// Queries to shards, none of which has answered.
fn unanswered(queries: BTreeMap<u16, Query>) -> BTreeMap<u16, ShardRead> {
    let read = |query| ShardRead { query, replies: BTreeMap::new(), denied: BTreeSet::new(), asked: None };
    queries.into_iter().map(|(shard, query)| (shard, read(query))).collect()
}
