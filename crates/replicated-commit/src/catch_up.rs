//! Catch-up: a shard replica takes over from its peers what it missed, and learns up to when it misses nothing.
//!
//! ```text
//!   replica                              peer (the same shard in another region)
//!     │ Pull after 40                      │
//!     ├───────────────────────────────────▶│
//!     │◀───────────────────────────────────┤ Log 41..57: which attempts, closed up to c
//!     │ Fetch 44, 51 (those unknown here)  │
//!     ├───────────────────────────────────▶│
//!     │◀───────────────────────────────────┤ Entries: their rows
//! ```
//!
//! Every replica logs the commits that it applies by its own vote or decision; each peer keeps a cursor into that log.
//! What a peer already knows costs it a head of a few bytes, not the rows. A committed attempt that this region is
//! still in doubt about is resolved on the spot by its coordinator. A cohort at another site tells that one, and takes the log over up to that
//! entry only until it has heard from it: were the cursor to pass, whatever else lets go of the entry would lose its rows.
//!
//! A passive replica is one that takes everything over. So that it is hardly behind, a gateway sends it the writes of each
//! commit as well, as soon as that is decided; a copy that gets lost comes with the log.
//!
//! **Closed timestamps.** With its log a peer promises that nothing at or below `closed` will be committed with its
//! vote that is not in it. A commit has the votes of a majority, so once such promises of any majority of regions (this
//! one among them or not) reach up to *c*, and their logs are taken over, every commit at or below *c* is applied here:
//! *c* is *safe*. Stale reads are served below it.
//!
//! **Collection.** Old versions go after a while; a deletion goes, with all that it covers, once every region is safe
//! beyond it. From then on nothing at or below that timestamp is taken over any more: an old version put again would
//! bring the row back.
//!
//! Invariants: a pull is a promise, so a cursor that a peer hears of never lies ahead of the rows on disk, nor behind them in an attempt that is
//! prepared or carried here; a closed
//! promise raises the write floor and the ceiling on disk first; a peer's promise counts only once its log is taken over
//! to its end.

use super::config::{Config, ENTRY_BYTES_MAX, FETCH_PAGE, FETCH_ROWS_MAX, LOG_PAGE, PAGE_BYTES_MAX, TRUNCATE_MIN};
use super::context::{Context, Shared};
use super::message::{ATTEMPT, LogEntry, LogHead, Note, Promise};
use super::planted::Planted;
use super::records::{LOG, LogRecord, Number};
use super::site::{Pending, Roles};
use rhumb_commit::placement::Regions;
use rhumb_commit::votes::Decision;
use rhumb_core::actor::Collect;
use rhumb_core::{Batch, Load, Loaded, RegionId, SiteId, Table, Time, Timestamp, record, work};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Ticks between two rounds of collection.
const COLLECT_TICKS: u64 = 20;

/// What is known of one peer's log.
#[derive(Debug, Default)]
struct Peer {
    /// Taken over up to here.
    cursor: u64,
    /// The cursor on disk, or on its way there.
    saved: u64,
    /// Nothing at or below it is missing from what was taken over.
    closed: Timestamp,
    /// The page being taken over.
    open: Option<OpenPage>,
    /// How far the peer has taken over this replica's log.
    acked: u64,
    /// Up to when the peer has applied every commit.
    safe: Timestamp,
    /// The epoch that the peer is settled in.
    settled: u64,
}

/// What a peer says as it pulls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pulled {
    pub(super) after: u64,
    pub(super) safe: Timestamp,
    pub(super) epoch: u64,
    pub(super) settled: u64,
}

/// A page of a peer's log of which rows are still missing.
#[derive(Debug)]
struct OpenPage {
    /// The places whose rows are awaited.
    wanted: BTreeSet<u64>,
    /// The last place of the page.
    end: u64,
    /// What comes after it.
    rest: Rest,
    /// When it was opened, and when its rows were asked for last.
    since: Time,
    asked: Time,
}

/// What comes after a page of a peer's log.
#[derive(Clone, Copy, Debug)]
enum Rest {
    /// Nothing: it is the last one, and comes with the peer's promise.
    Nothing { closed: Timestamp },
    /// More, to be pulled at once.
    More,
    /// An entry that is not to be taken over yet. It is asked for again with the next pull.
    Awaited,
}

/// What an entry of a peer's log is to this replica.
enum Found {
    /// On disk here, or known to have aborted.
    Known,
    /// Its rows have to come.
    Missing,
    /// It is prepared, carried or in a resolution here, and another site or a round decides first.
    Awaited,
}

/// One page of a peer's log.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) after: u64,
    pub(super) heads: Vec<LogHead>,
    pub(super) end: u64,
    pub(super) more: bool,
    pub(super) closed: Timestamp,
    pub(super) begins: u64,
    pub(super) collected: Timestamp,
    pub(super) epoch: u64,
}

/// How far a replica has taken over the logs of its peers.
#[derive(Debug, Default)]
pub(super) struct CatchUp {
    peers: BTreeMap<RegionId, Peer>,
    /// Something is known to be missing: pull at the next tick even if it is not due.
    hurry: bool,
    ticks: u64,
    /// The hybrid clock at each of the last ticks, back to the one before `closed_lag` ago.
    clock_stood: VecDeque<(Time, Timestamp)>,
    /// What was safe when the present epoch began.
    pub(super) safe_before: Timestamp,
    /// The logs that may be taken over from wherever they begin: the rows before were copied.
    pub(super) enter: Regions,
    /// The log holds nothing up to here.
    pub(super) truncated: u64,
    /// Where the log ended in the tick before.
    ended: Option<u64>,
    /// Deletions up to here may be gone.
    pub(super) collected: Timestamp,
}

impl CatchUp {
    pub(super) fn set_cursor(&mut self, region: RegionId, cursor: u64) {
        let peer = self.peers.entry(region).or_default();
        peer.cursor = cursor;
        peer.saved = cursor;
    }

    /// How far the log of the peer in `region` is taken over.
    pub(super) fn cursor(&self, region: RegionId) -> u64 {
        self.peers.get(&region).map_or(0, |peer| peer.cursor)
    }

    /// Another placement is adopted; up to `safe` all is known. What is promised beyond that, a replica that votes now promises anew once it
    /// is settled: it may learn of doubts until then that it had no part in.
    pub(super) fn begin_epoch(&mut self, safe: Timestamp) {
        self.safe_before = safe;
        for peer in self.peers.values_mut() {
            peer.closed = Timestamp::ZERO;
            if let Some(OpenPage { rest: Rest::Nothing { closed }, .. }) = &mut peer.open {
                *closed = Timestamp::ZERO;
            }
        }
    }

    /// Forgets how far the logs of `regions` were taken over: all rows are copied afresh.
    pub(super) fn begin_anew(&mut self, regions: Regions) {
        for region in regions.iter() {
            let peer = self.peers.entry(region).or_default();
            (peer.cursor, peer.saved, peer.closed, peer.open) = (0, 0, Timestamp::ZERO, None);
        }
        self.enter = regions;
        self.safe_before = Timestamp::ZERO;
    }

    /// The epoch that the replica in `region` is settled in, as far as it has said so.
    pub(super) fn settled(&self, region: RegionId) -> u64 {
        self.peers.get(&region).map_or(0, |peer| peer.settled)
    }

    /// Something is known to be missing here.
    pub(super) fn hurry(&mut self) {
        self.hurry = true;
    }
}

impl CatchUp {
    /// Lists its tables, and the log of a region that votes, which ends at `log_end`: it is on disk, and has no bound while a region is away.
    pub(super) fn tables(&self, regions: usize, log_end: Option<u64>, config: &Config, visit: &mut dyn FnMut(Table)) {
        let wanted = self.peers.values().filter_map(|peer| peer.open.as_ref()).map(|open| open.wanted.len()).sum();
        let ticks = config.ticks_of_closed_lag();
        visit(Table::new("catch_up.peers", self.peers.len(), regions).stays());
        visit(Table::new("catch_up.wanted", wanted, regions * FETCH_PAGE));
        // Those of a clock that has jumped stay until it has come to where it was.
        visit(Table::new("catch_up.clock_stood", self.clock_stood.len(), 2 * ticks + 1).resting_at(ticks + 3));
        if let Some(log_end) = log_end {
            visit(Table::new("log", (log_end - self.truncated) as usize, usize::MAX));
        }
    }
}

/// Up to where a replica can promise to commit nothing more, and the epoch in which it was settled then, if it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    upto: Timestamp,
    in_epoch: Option<u64>,
}

impl CatchUp {
    /// Nothing below it can be read any more.
    pub(super) fn horizon(&self, cx: &Shared) -> Timestamp {
        Timestamp::from_time(cx.now.minus(cx.config.keep_versions)).max(self.collected)
    }
}

impl Roles {
    /// The regions whose logs together hold every commit that may be missing here.
    fn sources(&self, cx: &Shared) -> Regions {
        let all = if cx.has_copy() { cx.placement.voters.or(self.moving.regions_before(cx)) } else { Regions::NONE };
        all.or(self.coordinator.forgetting(&self.near_coordinator()).or(self.cohort.logs_of_carried(&self.near_cohort())))
            .without(cx.me.region.into())
    }

    /// The regions that take over what is committed here.
    fn followers(&self, cx: &Shared) -> Regions {
        cx.placement.copies().without(cx.me.region.into())
    }

    /// The timestamp up to which this replica can promise to commit nothing more: where its hybrid clock stood a while ago,
    /// which a crash or a peer can have put ahead of the time of day, and below all that is prepared.
    pub(super) fn own_closed(&mut self, cx: &Shared) -> Timestamp {
        let then = cx.now.minus(cx.config.closed_lag);
        let stood = &mut self.catch_up.clock_stood;
        while stood.get(1).is_some_and(|(at, _)| *at <= then) {
            stood.pop_front();
        }
        let stood = stood.front().filter(|(at, _)| *at <= then).map_or(Timestamp::ZERO, |(_, clock)| *clock);
        let lagging = Timestamp::from_time(then).max(stood);
        let closed = self
            .cohort
            .lowest_unresolved(self.cohort.resting(&self.near_cohort(), cx))
            .map_or(lagging, |lowest| lagging.min(lowest.previous()));
        self.cohort.ceilings.raise_floor(closed);
        closed
    }

    /// Every commit at or below it is applied here. What the voters of this epoch promise says nothing of an attempt of an earlier one that is
    /// in doubt here: they may have its rows by a log or a copy, and not in the logs that are read here.
    pub(super) fn safe(&self, cx: &Shared) -> Timestamp {
        if !self.moving.is_settled(cx) {
            return self.catch_up.safe_before;
        }
        let voters = cx.placement.voters;
        let closed = |region| self.catch_up.peers.get(&region).map_or(Timestamp::ZERO, |peer| peer.closed);
        let mut closed: Vec<Timestamp> = voters.iter().map(closed).collect();
        closed.sort_unstable_by(|a, b| b.cmp(a));
        let closed = closed[voters.majority() - 1].max(self.catch_up.safe_before);
        self.cohort.lowest_promised_before(cx.placement.epoch).map_or(closed, |lowest| closed.min(lowest.previous()))
    }

    pub(super) fn catch_up_tick(&mut self, cx: &mut Context<'_>) {
        self.catch_up.ticks += 1;
        self.catch_up.clock_stood.push_back((cx.now, cx.clock.last()));
        if self.catch_up.clock_stood.len() > 2 * cx.config.ticks_of_closed_lag() + 1 {
            // The clock has jumped back. What it showed before that is promised later than it could be.
            self.catch_up.clock_stood.pop_front();
        }
        let closed = self.own_closed(cx);
        // A promise to oneself counts when it would outlive a restart, like any other.
        if self.moving.is_settled(cx) {
            self.catch_up.peers.entry(cx.me.region).or_default().closed = closed.min(cx.clock.bound());
        }
        if self.catch_up.ticks % 2 == 1 || self.catch_up.hurry {
            self.catch_up.hurry = false;
            let sources = self.sources(cx);
            for (region, peer) in &mut self.catch_up.peers {
                // Nobody sends the rest of a page of a log that is not wanted any more.
                peer.open.take_if(|_| !sources.contains(*region));
            }
            for region in sources.iter() {
                self.pull(region, cx);
            }
        }
        self.serve_stale_reads(cx);
        self.truncate_log(cx);
        if self.catch_up.ticks.is_multiple_of(COLLECT_TICKS) {
            self.collect_versions(cx);
        }
    }

    pub(super) fn pull(&mut self, region: RegionId, cx: &mut Context<'_>) {
        let to = SiteId { region, shard: cx.me.shard };
        let safe = self.safe(cx);
        let (epoch, settled) = (cx.placement.epoch, self.moving.settled());
        let now = cx.now;
        let peer = self.catch_up.peers.entry(region).or_default();
        if let Some(open) = peer.open.as_mut().filter(|open| now.since(open.since) < cx.config.read_timeout) {
            // Its rows are under way, or were lost there.
            if now.since(open.asked) >= cx.config.resend_after {
                open.asked = now;
                cx.fx.count("catch_up.fetch_again");
                cx.fx.send(to, Note::Fetch { seqs: open.wanted.iter().copied().collect() });
            }
            return;
        }
        peer.open = None;
        let mut batch = Batch::new();
        if peer.saved != peer.cursor {
            peer.saved = peer.cursor;
            Number::Cursor(region).put(&mut batch, peer.cursor);
        }
        cx.fx.persist(batch).send(to, Promise::Pull { after: peer.cursor, safe, epoch, settled });
    }

    /// A peer pulls.
    pub(super) fn on_pull(&mut self, from: SiteId, pulled: Pulled, cx: &mut Context<'_>) {
        let Pulled { after, safe, epoch, settled } = pulled;
        cx.compare_epoch(from, epoch);
        if epoch > cx.placement.epoch {
            return; // what it wants kept may not be
        }
        let peer = self.catch_up.peers.entry(from.region).or_default();
        // Not the highest ever heard: a copy that was made anew has taken over less than the one before.
        peer.acked = after;
        peer.safe = safe.max(peer.safe);
        peer.settled = settled;
        let closed = Closed { upto: self.own_closed(cx), in_epoch: self.moving.is_settled(cx).then_some(cx.placement.epoch) };
        if after >= self.cohort.log_end {
            let page = self.page(cx, after, Vec::new(), self.cohort.log_end, false, closed);
            return self.tell_log(from, page, cx);
        }
        let from_key = (after + 1).to_be_bytes().to_vec();
        cx.load(
            Pending::Log { to: from, after, closed },
            Load::Records { space: LOG, from: from_key.into(), limit: LOG_PAGE, bytes: PAGE_BYTES_MAX },
        );
    }

    pub(super) fn on_log_loaded(&mut self, to: SiteId, after: u64, closed: Closed, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Records { records, more } = loaded else { unreachable!("records were asked for") };
        work::add(records.len());
        let heads: Vec<LogHead> = records
            .iter()
            .filter_map(decode_log)
            .map(|(seq, record)| LogHead { seq, attempt: record.attempt, at: record.at, floor: record.floor })
            .collect();
        let end = heads.last().map_or(after, |head| head.seq);
        let page = self.page(cx, after, heads, end, more, closed);
        self.tell_log(to, page, cx);
    }

    fn page(&self, cx: &Shared, after: u64, heads: Vec<LogHead>, end: u64, more: bool, closed: Closed) -> Page {
        let CatchUp { truncated, collected, .. } = self.catch_up;
        // What it is in doubt about of earlier epochs it knows once it is settled: it may have settled since it was asked.
        let holds = self.moving.is_settled(cx) && closed.in_epoch == Some(cx.placement.epoch);
        let closed = if holds { closed.upto } else { Timestamp::ZERO };
        Page { after, heads, end, more, closed, begins: truncated, collected, epoch: cx.placement.epoch }
    }

    /// The log is a promise: what it lists, and the floor that `closed` stands for, is on disk first.
    fn tell_log(&mut self, to: SiteId, page: Page, cx: &mut Context<'_>) {
        let mut batch = Batch::new();
        cx.cover(&mut batch, page.closed);
        let Page { after, heads, end, more, closed, begins, collected, epoch } = page;
        cx.fx.persist(batch).send(to, Promise::Log { after, heads, end, more, closed, begins, collected, epoch });
    }

    /// A page of a peer's log.
    pub(super) fn on_log(&mut self, from: SiteId, page: Page, cx: &mut Context<'_>) {
        if page.after != self.catch_up.cursor(from.region) {
            return; // an answer to an older pull
        }
        if page.epoch > cx.placement.epoch {
            // What it promises is of an epoch in which others vote than this site knows of.
            return cx.compare_epoch(from, page.epoch);
        }
        if !self.enters(from.region, &page, cx) {
            return;
        }
        work::add(page.heads.len());
        let mut wanted = BTreeSet::new();
        // What it promised in an earlier epoch counted beside the promises of those who voted then.
        let closed = if page.epoch == cx.placement.epoch { page.closed } else { Timestamp::ZERO };
        let (mut end, mut rest) = (page.end, if page.more { Rest::More } else { Rest::Nothing { closed } });
        for head in &page.heads {
            match self.look_at(head, cx) {
                Found::Known => continue,
                Found::Missing if wanted.len() < FETCH_PAGE => {
                    wanted.insert(head.seq);
                    continue;
                }
                Found::Missing => rest = Rest::More,
                Found::Awaited => rest = Rest::Awaited,
            }
            end = head.seq - 1;
            break;
        }
        if !wanted.is_empty() {
            cx.fx.count("catch_up.fetch");
            cx.fx.send(from, Note::Fetch { seqs: wanted.iter().copied().collect() });
        }
        self.catch_up.peers.entry(from.region).or_default().open = Some(OpenPage { wanted, end, rest, since: cx.now, asked: cx.now });
        self.turn_page(from.region, cx);
    }

    /// True if the page goes on where this replica left off. A log may have lost its beginning: then it goes on from there, if
    /// what was lost has been copied or is going to be.
    fn enters(&mut self, region: RegionId, page: &Page, cx: &mut Context<'_>) -> bool {
        let behind = page.begins > page.after;
        if !self.catch_up.enter.contains(region) {
            if behind && cx.has_copy() {
                cx.fx.count("placement.fell_behind");
                self.copy_anew(cx);
            }
            return !behind;
        }
        if page.epoch < cx.placement.epoch {
            return false; // it may lose more of its log, as it does not know who wants it
        }
        self.catch_up.enter = self.catch_up.enter.without(region.into());
        self.catch_up.peers.entry(region).or_default().cursor = page.begins.max(page.after);
        self.hear_for_join(region, page.collected, cx);
        if behind {
            self.pull(region, cx);
        }
        !behind
    }

    /// A committed attempt: applied here now if it is prepared and this site its coordinator.
    fn look_at(&mut self, head: &LogHead, cx: &mut Context<'_>) -> Found {
        if cx.rules.breaks(Planted::AppliedTwice) {
            return Found::Missing;
        }
        let attempt = head.attempt;
        if head.at <= self.catch_up.collected || self.coordinator.has_aborted(&attempt) {
            return Found::Known;
        }
        self.coordinate(|coordinator, near| coordinator.learn_committed(near, attempt, head.floor, cx));
        if self.cohort.applied.contains(&attempt) {
            return Found::Known;
        }
        let promised = self.cohort.prepared_meta(&attempt);
        if let Some(meta) = promised.as_ref().or(self.cohort.bound.get(&attempt)) {
            let (decision, coordinator) = (Decision::Committed { floor: head.floor }, meta.coordinator_in(cx.me.region));
            if coordinator != cx.me {
                // Half a transaction would remain if that one has agreed otherwise: it says so once it knows.
                cx.fx.send(coordinator, Note::Decided { meta: meta.clone(), decision });
                cx.fx.count("catch_up.awaits_coordinator");
                return Found::Awaited;
            }
        }
        if self.coordinator.is_withheld(&self.near_coordinator(), &attempt) {
            return Found::Awaited;
        }
        let Some(meta) = promised else { return Found::Missing };
        self.on_apply(&meta, None, head.floor, cx);
        Found::Known
    }

    /// A peer wants rows of this replica's log.
    pub(super) fn on_fetch(&mut self, from: SiteId, mut seqs: Vec<u64>, cx: &mut Context<'_>) {
        seqs.truncate(FETCH_PAGE);
        let (Some(first), Some(last)) = (seqs.iter().min().copied(), seqs.iter().max().copied()) else { return };
        let limit = usize::try_from(last - first + 1).unwrap_or(LOG_PAGE).min(LOG_PAGE);
        cx.load(
            Pending::FetchRecords { to: from, seqs: seqs.into_iter().collect() },
            Load::Records { space: LOG, from: first.to_be_bytes().to_vec().into(), limit, bytes: PAGE_BYTES_MAX },
        );
    }

    pub(super) fn on_fetch_records(&mut self, to: SiteId, seqs: &BTreeSet<u64>, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Records { records, .. } = loaded else { unreachable!("records were asked for") };
        work::add(records.len());
        let wanted = records.iter().filter_map(decode_log).filter(|(seq, _)| seqs.contains(seq));
        let mut before = 0;
        let wanted: Vec<(u64, LogRecord)> = wanted
            .take_while(|(_, record)| {
                let is_first = before == 0;
                before += record.keys.len();
                is_first || before <= FETCH_ROWS_MAX
            })
            .collect();
        let versions = wanted.iter().flat_map(|(_, record)| record.keys.iter().map(|key| (key.clone(), record.at))).collect();
        cx.load(Pending::FetchRows { to, records: wanted }, Load::Versions { versions, bytes: ENTRY_BYTES_MAX });
    }

    pub(super) fn on_fetch_rows(&mut self, to: SiteId, records: Vec<(u64, LogRecord)>, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        work::add(rows.len() + records.len());
        let mut rows = rows.into_iter().peekable();
        let mut entries = Vec::new();
        let mut bytes = 0;
        for (seq, record) in records {
            let mut writes = Vec::new();
            for key in &record.keys {
                // Rows come in the order asked, those collected left out.
                if let Some(row) = rows.next_if(|row| row.key == *key && row.version == record.at) {
                    writes.push((row.key, row.value));
                }
            }
            if more && rows.peek().is_none() {
                break; // its last rows may be those cut off
            }
            let partial = writes.len() < record.keys.len();
            let LogRecord { attempt, at, floor, meta, .. } = record;
            let entry = LogEntry { seq, attempt, at, floor, writes, partial, meta };
            bytes += record::encoded_bytes(&entry);
            if bytes > PAGE_BYTES_MAX && !entries.is_empty() {
                break;
            }
            entries.push(entry);
        }
        cx.fx.persist(Batch::new()).send(to, Promise::Entries { entries });
    }

    /// Rows of a peer's log.
    pub(super) fn on_entries(&mut self, from: SiteId, mut entries: Vec<LogEntry>, cx: &mut Context<'_>) {
        let Some(open) = self.catch_up.peers.get(&from.region).and_then(|peer| peer.open.as_ref()) else { return };
        entries.retain(|entry| open.wanted.contains(&entry.seq));
        let (mut taken, mut awaited) = (BTreeSet::new(), None);
        let mut batch = Batch::new();
        for entry in entries {
            let seq = entry.seq;
            // Since its rows were asked for, this region may have prepared for it.
            let found = if self.is_part_of_lost(cx, from, &entry) { Found::Awaited } else { self.look_at(&entry.head(), cx) };
            match found {
                Found::Known => {}
                Found::Missing => {
                    cx.fx.count("catch_up.applied");
                    self.take_over_entry(entry, &mut batch, cx);
                }
                Found::Awaited => {
                    awaited = Some(seq);
                    break;
                }
            }
            taken.insert(seq);
        }
        if !batch.ops.is_empty() {
            cx.fx.persist(batch);
        }
        if let Some(open) = self.catch_up.peers.get_mut(&from.region).and_then(|peer| peer.open.as_mut()) {
            open.wanted.retain(|seq| !taken.contains(seq));
            if let Some(first) = awaited.or(open.wanted.first().copied()) {
                // Or else the answer was too long for one message, and cut off: the rest is pulled afresh.
                let rest = if awaited.is_some() { Rest::Awaited } else { Rest::More };
                *open = OpenPage { wanted: BTreeSet::new(), end: first - 1, rest, ..*open };
            }
        }
        self.turn_page(from.region, cx);
    }

    /// True if the entry comes from a lost region and is a part of a transaction whose coordinator is another site: an earlier life of this one may
    /// have been bound not to take it over.
    fn is_part_of_lost(&self, cx: &Shared, from: SiteId, entry: &LogEntry) -> bool {
        let is_lost = cx.placement.lost.contains_key(&from.region) && !cx.placement.copies().contains(from.region);
        is_lost && entry.meta.as_ref().is_some_and(|meta| meta.coordinator != cx.me.shard)
    }

    /// A gateway sends what was committed.
    pub(super) fn on_copy(&mut self, entry: LogEntry, cx: &mut Context<'_>) {
        cx.clock.observe(entry.at);
        // An earlier life may have been bound not to take it over.
        let is_of_before = entry.meta.is_some() && entry.attempt.made <= cx.life;
        if is_of_before
            || !cx.placement.passives.contains(cx.me.region)
            || entry.attempt.made <= self.coordinator.forget_floor(cx)
            || !matches!(self.look_at(&entry.head(), cx), Found::Missing)
        {
            return cx.fx.count("catch_up.copy_ignored");
        }
        cx.fx.count("catch_up.copied");
        let mut batch = Batch::new();
        self.take_over_entry(entry, &mut batch, cx);
        cx.fx.persist(batch);
    }

    fn take_over_entry(&mut self, entry: LogEntry, batch: &mut Batch, cx: &mut Context<'_>) {
        if entry.partial {
            // Versions in between are gone: history has a hole below now.
            self.cohort.history_floor = cx.timestamp();
            Number::HistoryFloor.put(batch, self.cohort.history_floor.bits());
        }
        let entry = match cx.rules.breaks(Planted::AppliedTwice) {
            true => LogEntry { at: cx.timestamp(), ..entry },
            false => entry,
        };
        cx.fx.agree(ATTEMPT, entry.attempt, &Some(entry.at));
        self.coordinate(|coordinator, near| coordinator.supersede_earlier(near, entry.attempt, batch, cx));
        work::add(1 + entry.writes.len());
        let kept = entry.at > self.catch_up.collected;
        for (key, value) in entry.writes.into_iter().filter(|_| kept) {
            self.cohort.locks.take_over(&key, None);
            self.see_placement(&key, value.as_ref(), batch, cx);
            self.examinations.see(&key, entry.at);
            batch.put_version(key, entry.at, value);
        }
        self.cohort.applied.insert(entry.attempt);
        if let Some(meta) = entry.meta {
            self.coordinate(|coordinator, near| coordinator.keep_commit(near, &meta, entry.floor, batch, cx));
        }
        self.cohort.keep_floor(entry.at, entry.floor, batch);
    }

    /// If all rows of the open page are here, the cursor moves to its end.
    fn turn_page(&mut self, region: RegionId, cx: &mut Context<'_>) {
        let peer = self.catch_up.peers.entry(region).or_default();
        let Some(open) = peer.open.take_if(|open| open.wanted.is_empty()) else { return };
        peer.cursor = open.end.max(peer.cursor);
        match open.rest {
            Rest::Nothing { closed } => {
                peer.closed = closed.max(peer.closed);
                if self.lags_behind_stop(cx, region) {
                    self.pull(region, cx);
                }
                self.serve_stale_reads(cx);
            }
            Rest::More => self.pull(region, cx),
            Rest::Awaited => {}
        }
    }

    /// Has old versions dropped.
    fn collect_versions(&mut self, cx: &mut Context<'_>) {
        let safe_of = |region| self.catch_up.peers.get(&region).map_or(Timestamp::ZERO, |peer| peer.safe);
        let everywhere = self.followers(cx).iter().map(safe_of).min().unwrap_or(Timestamp::MAX);
        let horizon = self.catch_up.horizon(cx);
        let deletions = everywhere.min(self.safe(cx)).min(horizon).max(self.catch_up.collected);
        self.catch_up.collected = deletions;
        self.cohort.ceilings.raise_floor(deletions);
        // The clock of a later life may be behind this one's: what is collected now must not be read then.
        self.cohort.history_floor = horizon.max(self.cohort.history_floor);
        let mut batch = Batch::new();
        Number::Collected.put(&mut batch, deletions.bits());
        Number::HistoryFloor.put(&mut batch, self.cohort.history_floor.bits());
        let token = cx.token(Pending::Collect(Collect { horizon, deletions }));
        cx.fx.persist(batch).notify(token);
    }

    /// Drops the part of the log that every peer has taken over, twice as fast as it grows; not during a move, for whoever is still in doubt about an
    /// attempt of an epoch before reads there that it committed.
    fn truncate_log(&mut self, cx: &mut Context<'_>) {
        let log_end = self.cohort.log_end;
        let added = log_end - self.catch_up.ended.replace(log_end).unwrap_or(log_end);
        let moving = |region| self.catch_up.settled(region) < cx.placement.epoch;
        if (cx.has_copy() && !self.moving.is_settled(cx)) || self.followers(cx).iter().any(moving) {
            return;
        }
        let acked = self.followers(cx).iter().map(|region| self.catch_up.peers.get(&region).map_or(0, |peer| peer.acked)).min();
        let upto = acked.unwrap_or(log_end).min(self.catch_up.truncated + TRUNCATE_MIN.max(2 * added)).min(log_end);
        if upto <= self.catch_up.truncated {
            return;
        }
        let mut batch = Batch::new();
        for seq in self.catch_up.truncated + 1..=upto {
            batch.delete_record(LOG, seq.to_be_bytes().to_vec());
        }
        self.catch_up.truncated = upto;
        Number::Truncated.put(&mut batch, upto);
        cx.fx.persist(batch);
    }
}

fn decode_log(record: &(bytes::Bytes, bytes::Bytes)) -> Option<(u64, LogRecord)> {
    let (key, bytes) = record;
    let seq = u64::from_be_bytes(key.as_ref().try_into().ok()?);
    Some((seq, record::decode(bytes).expect("a record of the log decodes")))
}
