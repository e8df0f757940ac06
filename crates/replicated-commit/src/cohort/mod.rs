//! The cohort: one shard replica preparing and applying attempts.
//!
//! ```text
//!   Prepare ─▶ locks taken, newest versions asked for ─▶ Validating ─▶ all current ─▶ Prepared on disk
//!                 └─▶ a lock denied ─▶ CannotPrepare        └─▶ stale, too low ─▶ CannotPrepare
//!   Apply ─▶ versions and log on disk, locks released ─▶ Applied
//! ```
//!
//! Where the cohort is the attempt's only one in the region, it is the coordinator too, and its prepare and the
//! region's vote go to disk as one.
//!
//! Invariants: an entry holds its exclusive locks and firm shared locks from its first check until it is removed; an
//! entry found prepared on disk is locked before anybody is heard; versions are put at the commit timestamp only, so
//! that applying twice changes nothing.
//!
//! Source: section 3.2.2, Algorithm 1, lines 5 and 11. `check_locks`, `take_locks`, `check_rows` and
//! `promise` keep its three conditions; `apply` is its commit phase.

mod doubts;
mod floors;
mod reads;

use crate::config::{Config, PAGE_BYTES_MAX, TXN_ROWS_MAX, WAITING_READS_MAX};
use crate::context::{Context, Shared};
use crate::job::{Job, ReadJob};
use crate::message::{ATTEMPT, Attempt, Doubt, LogEntry, Meta, Note, Part, Promise, Voted};
use crate::planted::{Planted, walk_locks};
use crate::records::{self, LOG, LogRecord, Number, PREPARED, PreparedRecord};
use crate::views::{CohortView, Copied, NearCohort, Promised, RowsOfDoubt};
use floors::Floors;
use rhumb_commit::locks::{Locks, Strength};
use rhumb_commit::timestamp_cache::TimestampCache;
use rhumb_commit::votes::{Decision, Refusal, Tally, Vote};
use rhumb_core::actor::{Collect, Token};
use rhumb_core::{Batch, Key, Load, Loaded, RegionId, Row, SiteId, Span, Table, Time, Timestamp, TxnId, record, work};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

/// What still has to be looked up before an attempt can be prepared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validation {
    /// Rows whose newest version is asked for: those written, then those read.
    keys: Vec<Key>,
    /// The ranges, as indices into the part, that are read again, in order.
    ranges: VecDeque<usize>,
    /// The range whose rows are awaited; none while those of `keys` are.
    current: Option<usize>,
    /// The load whose rows are awaited. Those of an earlier entry of the same attempt may still come.
    awaited: Option<Token>,
}

/// What is known of an attempt that others are in doubt about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    /// The regions that are not prepared for it, and the ends of their logs: if it is not there, they never voted for it.
    pub(crate) without: BTreeMap<RegionId, u64>,
    /// Whether its rows are here: it may have committed, and been taken over, before it was carried.
    pub(crate) rows: RowsOfDoubt,
}

#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// What it read is being looked up.
    Validating(Validation),
    /// On disk: this region may have voted for it.
    Prepared,
    /// On disk: other regions may have.
    Carried(Carried),
}

/// An attempt that holds locks here.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) meta: Meta,
    pub(crate) part: Part,
    stage: Stage,
    since: Time,
    /// Final votes seen, where the coordinator is another site of the region and may be down.
    tally: Tally,
    /// The gateway has said that it decides no more.
    over: bool,
}

impl Entry {
    pub(crate) fn new(meta: Meta, part: Part, stage: Stage, since: Time) -> Entry {
        Entry { meta, part, stage, since, tally: Tally::default(), over: false }
    }

    fn promised(&self) -> Promised<'_> {
        Promised { meta: &self.meta, part: &self.part }
    }

    /// True if its locks outlive everything but its outcome.
    pub(crate) fn is_promised(&self) -> bool {
        !matches!(self.stage, Stage::Validating(_))
    }

    pub(crate) fn as_carried(&self) -> Option<&Carried> {
        match &self.stage {
            Stage::Carried(carried) => Some(carried),
            Stage::Validating(_) | Stage::Prepared => None,
        }
    }
}

/// The only cohort of an attempt is prepared, once `batch` is on disk. Its coordinator, at the same site, adds its vote to that: both go to disk as
/// one.
pub(crate) struct PreparedHere {
    pub(crate) attempt: Attempt,
    pub(crate) batch: Batch,
}

/// A commit is applied, once `batch` is on disk.
pub(crate) struct Applied {
    pub(crate) part: Part,
    pub(crate) batch: Batch,
}

/// One shard replica.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cohort {
    locks: Locks,
    timestamp_cache: TimestampCache,
    entries: BTreeMap<Attempt, Entry>,
    /// Attempts applied here and not yet forgotten.
    applied: BTreeSet<Attempt>,
    /// Attempts that this region takes part in the resolution of, as their coordinator, another site, has said: nothing of them is taken over
    /// from a log until that one knows the outcome.
    bound: BTreeMap<Attempt, Meta>,
    /// The highest commit timestamp prepared or applied here.
    highest: Timestamp,
    /// The highest commit timestamp, or floor, applied here.
    highest_applied: Timestamp,
    floors: Floors,
    log_end: u64,
    /// Below it the history of rows may have holes.
    history_floor: Timestamp,
    /// Deletions up to here may be gone.
    collected: Timestamp,
    /// Reads that wait for a prepared transaction.
    blocked: BTreeMap<TxnId, Vec<ReadJob>>,
    /// Reads that wait for the clock bound on disk, or for a timestamp to be closed.
    awaiting_clock_bound: Vec<ReadJob>,
    awaiting_safe: Vec<ReadJob>,
    /// Reads that wait no longer.
    ready: VecDeque<ReadJob>,
}

impl Cohort {
    /// Nothing below it can be read any more.
    pub(crate) fn horizon(&self, cx: &Shared) -> Timestamp {
        Timestamp::from_time(cx.now.minus(cx.config.keep_versions)).max(self.collected)
    }

    /// Nothing that commits at or below `at` is prepared here any more.
    pub(crate) fn refuse_below(&mut self, at: Timestamp) {
        self.timestamp_cache.raise_low_water(at);
    }

    /// The timestamp up to which this replica can promise to commit nothing more: up to `lagging`, and below all that is prepared.
    pub(crate) fn close(&mut self, near: &NearCohort<'_>, lagging: Timestamp, cx: &Shared) -> Timestamp {
        let lowest = self.lowest_unresolved(self.resting(near, cx));
        let closed = lowest.map_or(lagging, |lowest| lagging.min(lowest.previous()));
        self.refuse_below(closed);
        closed
    }

    /// What an earlier incarnation has left.
    pub(crate) fn recover_number(&mut self, number: Number, value: u64) {
        match number {
            Number::LogEnd => self.log_end = value,
            Number::HistoryFloor => self.history_floor = Timestamp::from_bits(value),
            Number::Collected => self.collected = Timestamp::from_bits(value),
            Number::Highest => self.recover_highest(Timestamp::from_bits(value)),
            other => unreachable!("{other:?} is another role's"),
        }
    }

    /// Old versions, and deletions up to `deletions`, are about to be dropped. Adds that to `batch`; returns up to where versions are.
    pub(crate) fn collect(&mut self, deletions: Timestamp, batch: &mut Batch, cx: &Shared) -> Collect {
        let horizon = self.horizon(cx);
        let deletions = deletions.min(horizon).max(self.collected);
        self.collected = deletions;
        self.refuse_below(deletions);
        // The clock of a later incarnation may be behind this one's: what is collected now must not be read then.
        self.history_floor = horizon.max(self.history_floor);
        Number::Collected.put(batch, deletions.bits());
        Number::HistoryFloor.put(batch, self.history_floor.bits());
        Collect { horizon, deletions }
    }

    /// What logs bring at or below `collected` is among the rows that are copied from now on, or deleted.
    pub(crate) fn begin_copy(&mut self, collected: Timestamp) {
        self.collected = collected;
    }

    /// All rows are copied: of each the newest version only. Adds that to `batch`.
    pub(crate) fn end_copy(&mut self, copied: &Copied, batch: &mut Batch, cx: &mut Context<'_>) {
        let floor = cx.timestamp().max(copied.newest);
        self.history_floor = floor.max(self.history_floor);
        self.keep_floor(copied.newest, copied.newest, batch);
        self.copy_floors(copied.highest, batch);
        Number::HistoryFloor.put(batch, self.history_floor.bits());
        self.collected = copied.collected.max(self.collected);
        self.refuse_below(self.collected);
        Number::Collected.put(batch, self.collected.bits());
    }

    /// An entry of a peer's log is taken over. Adds it to `batch`.
    pub(crate) fn take_over(&mut self, entry: &LogEntry, batch: &mut Batch) {
        work::add(1 + entry.writes.len());
        for (key, value) in entry.writes.iter().filter(|_| entry.at > self.collected) {
            self.locks.take_over(key, None);
            batch.put_version(key.clone(), entry.at, value.clone());
        }
        self.applied.insert(entry.attempt);
        self.keep_floor(entry.at, entry.floor, batch);
    }

    /// The log being taken over no longer holds some versions: records in `batch` that history is incomplete below the present.
    pub(crate) fn has_hole(&mut self, batch: &mut Batch, cx: &mut Context<'_>) {
        // A copy may have brought rows above this clock.
        self.history_floor = cx.timestamp().max(self.history_floor);
        Number::HistoryFloor.put(batch, self.history_floor.bits());
    }

    /// A site says how high it has prepared.
    pub(crate) fn on_high(&mut self, near: &NearCohort<'_>, from: SiteId, attempt: Attempt, high: Timestamp, cx: &mut Context<'_>) {
        if let Some(entry) = self.entries.get_mut(&attempt) {
            entry.tally.hear_high(from, high);
            self.count_as_cohort(near, attempt, cx);
        }
    }

    /// The coordinator, another site, takes part in the resolution of the attempt: this cohort acts only on its decision.
    pub(crate) fn bind(&mut self, meta: Meta) {
        self.bound.insert(meta.attempt, meta);
    }

    /// The coordinator has it on record how `attempt` ended. True if it was left to it.
    pub(crate) fn unbind(&mut self, attempt: &Attempt) -> bool {
        self.bound.remove(attempt).is_some()
    }

    /// What `attempt` is, if this replica waits for its outcome: prepared, carried or bound.
    pub(crate) fn awaited_meta(&self, attempt: &Attempt) -> Option<&Meta> {
        self.promised_entry(attempt).map(|entry| entry.meta).or(self.bound.get(attempt))
    }
}

impl Cohort {
    /// Lists its tables; `transactions_max` at the most are open anywhere.
    pub(crate) fn tables(&self, transactions_max: usize, config: &Config, visit: &mut dyn FnMut(Table)) {
        let (locked, holders) = self.locks.sizes();
        visit(Table::new("cohort.locked", locked, 2 * transactions_max * TXN_ROWS_MAX));
        visit(Table::new("cohort.holders", holders, 2 * transactions_max));
        visit(Table::new("cohort.entries", self.entries.len(), transactions_max));
        visit(Table::new("cohort.bound", self.bound.len(), transactions_max));
        visit(Table::new("cohort.applied", self.applied.len(), config.attempts_kept()).stays());
        visit(Table::new("cohort.waiting", self.waiting(), WAITING_READS_MAX));
        visit(Table::new("cohort.ready", self.ready.len(), 0));
        self.floors.tables(visit);
        self.timestamp_cache.tables(visit);
    }

    /// The attempt of `txn` that holds locks here.
    pub(crate) fn entry_of(&self, txn: TxnId) -> Option<&Entry> {
        let of_txn = |made| Attempt { txn, made };
        self.entries.range(of_txn(Timestamp::ZERO)..=of_txn(Timestamp::MAX)).next_back().map(|(_, entry)| entry)
    }

    /// The lowest commit timestamp that is prepared, or about to be, by an attempt made above `resting`.
    pub(crate) fn lowest_unresolved(&self, resting: Timestamp) -> Option<Timestamp> {
        work::add(self.entries.len());
        self.entries.values().filter(|entry| entry.meta.attempt.made > resting).map(|entry| entry.meta.at).min()
    }

    /// Has `job` wait for `txn`.
    pub(crate) fn block(&mut self, txn: TxnId, job: ReadJob) {
        self.blocked.entry(txn).or_default().push(job);
    }

    /// How many reads wait.
    pub(crate) fn waiting(&self) -> usize {
        work::add(self.blocked.len());
        self.blocked.values().map(Vec::len).sum::<usize>() + self.awaiting_clock_bound.len() + self.awaiting_safe.len()
    }

    /// True if one more read may wait.
    pub(crate) fn may_wait(&self) -> bool {
        self.waiting() < WAITING_READS_MAX
    }

    pub(crate) fn release(&mut self, txn: TxnId) {
        self.locks.release(txn);
        self.ready.extend(self.blocked.remove(&txn).unwrap_or_default());
    }

    /// Drops waiting reads that began before `limit`: whoever asked has given them up.
    fn drop_old_reads(&mut self, limit: Time) {
        work::add(self.waiting());
        for jobs in self.blocked.values_mut() {
            jobs.retain(|job| job.since >= limit);
        }
        self.blocked.retain(|_, jobs| !jobs.is_empty());
        self.awaiting_clock_bound.retain(|job| job.since >= limit);
        self.awaiting_safe.retain(|job| job.since >= limit);
    }
}

impl Cohort {
    /// May the attempt take all its locks, and is its timestamp above all reads of what it writes?
    fn check_locks(&self, cx: &Shared, meta: &Meta, part: &Part) -> Result<(), Refusal> {
        let txn = meta.attempt.txn;
        let locks = &self.locks;
        work::add(part.reads.len() + part.ranges.len() + part.writes.len());
        if part.writes.iter().any(|(key, _)| locks.denies_exclusive(key, txn).is_some()) {
            return Err(Refusal::Locked);
        }
        let read_at = part.writes.iter().map(|(key, _)| self.timestamp_cache.of(key)).max().unwrap_or(Timestamp::ZERO);
        if read_at >= meta.at && !cx.rules.breaks(Planted::TimestampTooLowSkipped) && !part.writes.is_empty() {
            return Err(Refusal::TimestampTooLow(read_at));
        }
        if locks.has_lost(txn) && !cx.rules.breaks(Planted::SharedLockSkipped) {
            return Err(Refusal::LockLost);
        }
        let locked = |read: &crate::message::ReadCheck| locks.exclusive_holder(&read.key, Some(txn)).is_some();
        if !cx.rules.breaks(Planted::SharedLockSkipped) && part.reads.iter().any(locked) {
            return Err(Refusal::Locked);
        }
        let locked = |range: &crate::message::RangeCheck| locks.exclusive_holder_within(&range.range, Some(txn)).is_some();
        if !cx.rules.breaks(Planted::RangeLockSkipped) && part.ranges.iter().any(locked) {
            return Err(Refusal::Locked);
        }
        Ok(())
    }

    /// Drops the read locks of gateways that are gone, and of transactions that are over.
    fn drop_dead_locks(&mut self, cx: &Shared) {
        let dead = |txn: &TxnId| {
            let gateway: SiteId = txn.gateway;
            let over = txn.began < cx.peers.oldest(gateway);
            let gone = gateway != cx.me && !cx.peers.is_alive(gateway, cx.now, cx.config.locks_expire_after);
            (over || gone) && self.entry_of(*txn).is_none()
        };
        let dead: BTreeSet<TxnId> = self.locks.holders().inspect(|_| work::add(1)).filter(dead).collect();
        for txn in dead {
            self.release(txn);
        }
    }

    pub(crate) fn on_release(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        if self.entry_of(txn).is_none() {
            self.release(txn);
        } else {
            cx.fx.count("read.release_of_prepared");
        }
    }
}

impl Cohort {
    /// The attempt has aborted, or the region has voted no: lets go of its locks.
    pub(crate) fn unprepare(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        let mut batch = Batch::new();
        self.remove_entry(&attempt, &mut batch);
        if !batch.ops.is_empty() {
            cx.fx.persist(batch);
        }
    }

    /// This region's coordinator will not commit the attempt by its own vote. A carried attempt keeps its locks.
    pub(crate) fn on_unprepare(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        if !self.is_carried(&attempt) {
            self.unprepare(attempt, cx);
        }
    }
}

impl Cohort {
    /// The coordinator of `region` has forgotten `attempt`: if that committed there, its log has it.
    pub(crate) fn on_forgotten(&mut self, attempt: Attempt, region: RegionId, cx: &mut Context<'_>) {
        if region == cx.me.region {
            self.bound.remove(&attempt);
        }
        if let Some(entry) = self.entries.get_mut(&attempt).filter(|entry| entry.as_carried().is_some()) {
            if region != cx.me.region {
                cx.request_stop(region, None);
            } else if let Stage::Carried(carried) = &mut entry.stage {
                carried.without.entry(region).or_default();
            }
        } else if region == cx.me.region {
            // Its own coordinator would remember a commit until this cohort had applied it.
            self.unprepare(attempt, cx);
        }
    }
}

impl Cohort {
    pub(crate) fn recover_prepared(&mut self, cx: &Shared, record: PreparedRecord) {
        self.take_locks(cx, &record.meta, &record.part);
        self.highest = record.meta.at.max(self.highest);
        let attempt = record.meta.attempt;
        self.entries.insert(attempt, Entry::new(record.meta, record.part, Stage::Prepared, cx.now));
    }

    /// Takes the locks that [`check_locks`](Self::check_locks) found free: condition (1) of section 3.2.2.
    fn take_locks(&mut self, cx: &Shared, meta: &Meta, part: &Part) {
        let txn = meta.attempt.txn;
        if cx.rules.breaks(Planted::LocksWalked) {
            walk_locks(part);
        }
        if !cx.rules.breaks(Planted::SharedLockSkipped) {
            for read in &part.reads {
                self.locks.share(&read.key, txn, Strength::Prepared);
            }
        }
        if !cx.rules.breaks(Planted::RangeLockSkipped) {
            for range in &part.ranges {
                self.locks.share_range(&range.range, txn, Strength::Prepared);
            }
        }
        for (key, _) in &part.writes {
            self.locks.exclude(key, txn);
        }
    }
}

impl Cohort {
    /// Releases, after recovery, attempts for which this site is prepared as cohort but on which, as coordinator, it did not vote, voted no, or knows
    /// an abort: the site crashed between two writes, and no message about them will come.
    pub(crate) fn drop_orphans(&mut self, near: &NearCohort<'_>, cx: &mut Context<'_>) {
        let orphaned = |entry: &Entry| {
            let own = matches!(entry.stage, Stage::Prepared) && entry.meta.coordinator == cx.me.shard;
            own && !near.coordinator.may_commit(&entry.meta.attempt)
        };
        let orphans: Vec<Attempt> = self.entries.values().filter(|entry| orphaned(entry)).map(|entry| entry.meta.attempt).collect();
        for attempt in orphans {
            cx.fx.count("commit.recovered_orphan");
            self.unprepare(attempt, cx);
        }
    }

    /// The coordinator of this region asks to prepare.
    pub(crate) fn on_prepare(&mut self, near: &NearCohort<'_>, meta: Meta, part: Part, cx: &mut Context<'_>) -> Option<PreparedHere> {
        cx.clock.observe(meta.at);
        let attempt = meta.attempt;
        if let Some(entry) = self.entries.get(&attempt) {
            return matches!(entry.stage, Stage::Prepared).then(|| self.send_prepared(&meta, Batch::new(), cx)).flatten();
        }
        if self.applied.contains(&attempt) || attempt.made <= near.coordinator.forget_floor(cx) {
            return None; // a Prepare that was long under way; whoever still waits for an answer votes no in time
        }
        if let Some(other) = self.entry_of(attempt.txn).map(|entry| entry.meta.attempt) {
            if other > attempt {
                cx.refuse(&meta, Refusal::Superseded);
                return None;
            }
            self.unprepare(other, cx); // certainly aborted, or there would be no later attempt
        }
        if meta.epoch != cx.placement.epoch || !near.mover.is_settled(cx) {
            cx.refuse(&meta, Refusal::StaleConfiguration);
            return None;
        }
        if let Err(refusal) = near.catch_up.check_placement(cx, &part).and_then(|()| self.check_locks(cx, &meta, &part)) {
            cx.refuse(&meta, refusal);
            return None;
        }
        let validation = self.plan_validation(cx, &part);
        self.take_locks(cx, &meta, &part);
        self.entries.insert(attempt, Entry::new(meta, part, Stage::Validating(validation), cx.now));
        self.validate_next(attempt, cx)
    }

    /// What must be looked up: the newest versions of all that is written and of all that was read. That a lock taken at
    /// the read is still held proves nothing: it may have been lost, in a restart say, and granted again to a message
    /// that the network held back.
    fn plan_validation(&self, cx: &Shared, part: &Part) -> Validation {
        let written = part.writes.iter().map(|(key, _)| key.clone());
        let read = part.reads.iter().map(|read| read.key.clone());
        let keys = if cx.rules.breaks(Planted::SharedLockSkipped) { written.collect() } else { written.chain(read).collect() };
        let ranges = if cx.rules.breaks(Planted::RangeLockSkipped) { VecDeque::new() } else { (0..part.ranges.len()).collect() };
        Validation { keys, ranges, current: None, awaited: None }
    }

    /// Asks for the next rows that must be looked up, or is done.
    fn validate_next(&mut self, attempt: Attempt, cx: &mut Context<'_>) -> Option<PreparedHere> {
        let entry = self.entries.get_mut(&attempt).expect("the entry is being validated");
        let Stage::Validating(validation) = &mut entry.stage else { unreachable!("validated once") };
        let load = if !validation.keys.is_empty() && validation.current.is_none() {
            Load::Stamps { keys: validation.keys.clone() }
        } else if let Some(index) = validation.ranges.pop_front() {
            validation.current = Some(index);
            let check = &entry.part.ranges[index];
            // One row more than was read: if there is a row that was not read, it shows among these.
            Load::ScanStamps { range: check.range.clone(), limit: check.rows.len() + 1, bytes: usize::MAX }
        } else {
            return self.promise(attempt, cx);
        };
        validation.awaited = Some(cx.load(Job::Validate(attempt), load));
        None
    }

    pub(crate) fn on_validation(&mut self, attempt: Attempt, token: Token, loaded: Loaded, cx: &mut Context<'_>) -> Option<PreparedHere> {
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        work::add(rows.len());
        let timestamps_checked = !cx.rules.breaks(Planted::TimestampTooLowSkipped);
        let entry = self.entries.get_mut(&attempt)?; // else it was given up meanwhile
        let Stage::Validating(validation) = &mut entry.stage else { return None };
        if validation.awaited != Some(token) {
            return None;
        }
        let verdict = match validation.current {
            Some(index) => check_range(&entry.part.ranges[index].rows, &rows),
            None => {
                validation.keys.clear();
                check_rows(&entry.meta, &entry.part, &rows, timestamps_checked)
            }
        };
        let meta = entry.meta.clone();
        // This region may have stopped meanwhile.
        let verdict = if meta.epoch < cx.placement.epoch { Err(Refusal::StaleConfiguration) } else { verdict };
        match verdict {
            Ok(()) => self.validate_next(attempt, cx),
            Err(refusal) => {
                self.entries.remove(&attempt);
                self.release(attempt.txn);
                cx.refuse(&meta, refusal);
                None
            }
        }
    }

    /// The number of attempts prepared here, or carried.
    pub(crate) fn prepared(&self) -> usize {
        self.entries.values().filter(|entry| entry.is_promised()).count()
    }

    /// All locks are held and all that was read is current: the promise goes to disk.
    fn promise(&mut self, attempt: Attempt, cx: &mut Context<'_>) -> Option<PreparedHere> {
        let entry = self.entries.get_mut(&attempt).expect("the entry was just validated");
        entry.stage = Stage::Prepared;
        let meta = entry.meta.clone();
        for read in &entry.part.reads {
            self.timestamp_cache.raise(&read.key, meta.at);
        }
        for range in &entry.part.ranges {
            self.timestamp_cache.raise_range(&range.range, meta.at);
        }
        self.highest = meta.at.max(self.highest);
        let record = PreparedRecord { meta: meta.clone(), part: entry.part.clone() };
        let mut batch = Batch::new();
        batch.put_record(PREPARED, records::attempt_key(&attempt), record::encode(&record));
        cx.cover(&mut batch, meta.at);
        self.send_prepared(&meta, batch, cx)
    }

    /// Tells the coordinator, once `batch` is on disk; or returns that for the coordinator of this very site, which has nobody else to ask.
    fn send_prepared(&self, meta: &Meta, batch: Batch, cx: &mut Context<'_>) -> Option<PreparedHere> {
        if meta.participants == [cx.me.shard] {
            return Some(PreparedHere { attempt: meta.attempt, batch });
        }
        let SiteId { region, shard } = cx.me;
        cx.fx.persist(batch).send(meta.coordinator_in(region), Promise::Prepared { attempt: meta.attempt, shard });
        None
    }

    /// A cohort whose coordinator is another site, or of another region, may work the outcome out by itself.
    pub(crate) fn on_vote_as_cohort(&mut self, near: &NearCohort<'_>, voted: &Voted, cx: &mut Context<'_>) {
        let Voted { meta, region, vote, high } = voted;
        let region = *region;
        let carried = self.is_carried(&meta.attempt);
        if meta.coordinator == cx.me.shard && !carried {
            return; // the coordinator of this very site sees to it
        }
        if region == cx.me.region && !vote.is_yes() && !carried {
            return self.unprepare(meta.attempt, cx);
        }
        let Some(entry) = self.entries.get_mut(&meta.attempt) else { return };
        entry.tally.record(region, vote.clone());
        entry.tally.hear_high(voted.coordinator(), *high);
        self.count_as_cohort(near, meta.attempt, cx);
    }

    /// The outcome, which this cohort has concluded from votes, or received because it asked while its coordinator was silent. It leaves the outcome
    /// to the coordinator, which may be bound to another one: if each acted alone, half a transaction could commit.
    pub(crate) fn on_decided_as_cohort(&mut self, meta: &Meta, decision: Decision, cx: &mut Context<'_>) {
        let coordinator = meta.coordinator_in(cx.me.region);
        let waits = self.entries.contains_key(&meta.attempt) || self.bound.contains_key(&meta.attempt);
        if waits && coordinator != cx.me {
            cx.fx.send(coordinator, Note::Decided { meta: meta.clone(), decision });
        }
    }

    /// The gateway decides no more: ask the regions from now on.
    pub(crate) fn on_over_as_cohort(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        if let Some(entry) = self.entries.get_mut(&attempt)
            && !entry.over
            && matches!(entry.stage, Stage::Prepared)
            && entry.meta.coordinator != cx.me.shard
        {
            entry.over = true;
            let meta = entry.meta.clone();
            cx.request_votes(&meta);
        }
    }

    pub(crate) fn cohort_tick(&mut self, near: &NearCohort<'_>, cx: &mut Context<'_>) {
        work::add(self.entries.len());
        let resting = self.resting(near, cx);
        let overdue = |entry: &Entry| {
            let remote = entry.meta.coordinator != cx.me.shard && entry.as_carried().is_none();
            let age = cx.now.since(entry.since);
            let asks = remote && entry.meta.attempt.made > resting && age >= cx.config.ask_after;
            asks.then(|| (entry.meta.clone(), entry.over, age))
        };
        let asks: Vec<(Meta, bool, Span)> = self.entries.values().filter_map(overdue).collect();
        for (meta, over, age) in asks {
            let gateway = meta.attempt.txn.gateway;
            if cx.is_past_asking(gateway, over, age) {
                cx.request_votes(&meta);
            } else {
                cx.send(gateway, Note::AskGateway { meta });
            }
        }
        work::add(self.bound.len());
        for meta in self.bound.values() {
            cx.fx.send(meta.coordinator_in(cx.me.region), Note::AskVote { meta: meta.clone() });
        }
        self.carried_tick(near, cx);
        let floor = near.coordinator.forget_floor(cx);
        let begun_by_then = self.applied.range(..=Attempt::last_begun(floor));
        let old: Vec<Attempt> = begun_by_then.filter(|attempt| attempt.made <= floor).copied().collect();
        work::add(old.len());
        for attempt in old {
            self.applied.remove(&attempt);
        }
        self.drop_old_reads(cx.now.minus(cx.config.read_timeout));
        if cx.rules.breaks(Planted::DeadLocksKept) {
            return;
        }
        self.drop_dead_locks(cx);
    }

    /// Nobody here waits for the outcomes of attempts made at or below it: where there is no copy, a copy brings what the others have forgotten.
    pub(crate) fn resting(&self, near: &NearCohort<'_>, cx: &Shared) -> Timestamp {
        if cx.has_copy() { Timestamp::ZERO } else { near.coordinator.forget_floor(cx) }
    }
}

impl Cohort {
    /// The attempt has committed: applies it, from what was prepared or from `part`; versions of which deletions are collected are not put any more.
    /// None if it was applied before, in this incarnation or in an earlier one whose record is gone with it.
    pub(crate) fn apply(&mut self, meta: &Meta, part: Option<Part>, floor: Timestamp, cx: &mut Context<'_>) -> Option<Applied> {
        let attempt = meta.attempt;
        self.bound.remove(&attempt);
        let mut resolved = Batch::new();
        let known = self.applied.contains(&attempt);
        let prepared = self.remove_entry(&attempt, &mut resolved).map(|entry| entry.part);
        let Some(part) = prepared.or(part.filter(|_| !known)) else {
            cx.fx.count(if known { "commit.applied_again" } else { "commit.applied_earlier" });
            return None;
        };
        cx.fx.agree(ATTEMPT, attempt, &Some(meta.at));
        let mut batch = Batch::new();
        for (key, value) in part.writes.iter().filter(|_| meta.at > self.collected) {
            self.locks.take_over(key, Some(attempt.txn));
            batch.put_version(key.clone(), meta.at, value.clone());
        }
        self.log_end += 1;
        let keys = part.writes.iter().map(|(key, _)| key.clone()).collect();
        let record = LogRecord { attempt, at: meta.at, floor, keys, meta: meta.of_several_shards() };
        batch.put_record(LOG, self.log_end.to_be_bytes().to_vec(), record::encode(&record));
        Number::LogEnd.put(&mut batch, self.log_end);
        batch.ops.append(&mut resolved.ops);
        self.applied.insert(attempt);
        self.keep_floor(meta.at, floor, &mut batch);
        Some(Applied { part, batch })
    }
}

/// Are the rows written below the timestamp proposed, and the rows read not above the versions read?
fn check_rows(meta: &Meta, part: &Part, newest: &[Row], timestamps_checked: bool) -> Result<(), Refusal> {
    let (written, read) = newest.split_at(part.writes.len());
    let mut reads = part.reads.iter();
    for row in read {
        let check = reads.find(|check| check.key == row.key).expect("rows come back in the order asked");
        if row.version > check.version {
            return Err(Refusal::Stale);
        }
    }
    match written.iter().map(|row| row.version).max() {
        Some(version) if version >= meta.at && timestamps_checked => Err(Refusal::TimestampTooLow(version)),
        _ => Ok(()),
    }
}

/// Is every row found in a range known to the reader, at that version or a newer one?
pub(crate) fn check_range(read: &[(Key, Timestamp)], newest: &[Row]) -> Result<(), Refusal> {
    let known = |row: &Row| read.binary_search_by(|(key, _)| key.cmp(&row.key)).is_ok_and(|index| row.version <= read[index].1);
    if newest.iter().all(known) { Ok(()) } else { Err(Refusal::Stale) }
}

impl CohortView for Cohort {
    fn collected(&self) -> Timestamp {
        self.collected
    }

    fn has_applied(&self, attempt: &Attempt) -> bool {
        self.applied.contains(attempt)
    }

    fn has_applied_later(&self, attempt: &Attempt) -> bool {
        let last = Attempt { txn: attempt.txn, made: Timestamp::MAX };
        self.applied.range((Bound::Excluded(*attempt), Bound::Included(last))).next().is_some()
    }

    fn has_entry(&self, attempt: &Attempt) -> bool {
        self.entries.contains_key(attempt)
    }

    fn highest(&self) -> Timestamp {
        self.highest
    }

    fn highest_applied(&self) -> Timestamp {
        self.highest_applied
    }

    fn is_bound(&self, attempt: &Attempt) -> bool {
        self.bound.contains_key(attempt)
    }

    fn log_end(&self) -> u64 {
        self.log_end
    }

    fn read_upto(&self) -> Timestamp {
        self.timestamp_cache.highest().max(self.collected)
    }

    fn votes_heard(&self, attempt: &Attempt) -> Vec<(RegionId, Vote)> {
        let heard = self.entries.get(attempt).into_iter().flat_map(|entry| entry.tally.final_votes());
        heard.map(|(region, vote)| (region, vote.clone())).collect()
    }

    fn lowest_promised_before(&self, epoch: u64) -> Option<Timestamp> {
        work::add(self.entries.len());
        let is_old = |entry: &&Entry| entry.is_promised() && entry.meta.epoch < epoch;
        self.entries.values().filter(is_old).map(|entry| entry.meta.at).min()
    }

    fn promised(&self) -> Box<dyn Iterator<Item = Promised<'_>> + '_> {
        Box::new(self.entries.values().filter(|entry| entry.is_promised()).map(Entry::promised))
    }

    fn promised_entry(&self, attempt: &Attempt) -> Option<Promised<'_>> {
        self.entries.get(attempt).filter(|entry| entry.is_promised()).map(Entry::promised)
    }

    fn promised_to_write(&self, key: &Key) -> Vec<Promised<'_>> {
        let holders = self.locks.exclusive_holders(key).filter_map(|txn| self.entry_of(txn));
        holders.filter(|entry| entry.is_promised()).map(Entry::promised).collect()
    }

    fn has_doubts(&self, cx: &Shared) -> bool {
        self.doubts_after(cx, None).next().is_some()
    }

    fn page_of_doubts(&self, cx: &Shared, after: Option<Attempt>) -> (Vec<Doubt>, bool) {
        let (mut page, mut bytes) = (Vec::new(), 0);
        for entry in self.doubts_after(cx, after) {
            let record = PreparedRecord { meta: entry.meta.clone(), part: entry.part.clone() };
            let doubt = Doubt { record, carried: entry.as_carried().is_some() };
            bytes += record::encoded_bytes(&doubt);
            if bytes > PAGE_BYTES_MAX && !page.is_empty() {
                return (page, true);
            }
            page.push(doubt);
        }
        (page, false)
    }
}

#[cfg(test)]
mod tests;
