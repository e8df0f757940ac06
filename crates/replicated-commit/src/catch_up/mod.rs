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
//! still in doubt about is resolved on the spot by its coordinator. A cohort at another site notifies the coordinator, and takes the log over only up
//! to that entry until the coordinator has answered: if the cursor moved past the entry, its rows would be lost when the cohort releases the attempt
//! for another reason.
//!
//! A passive replica is one that takes everything over. So that it is hardly behind, a gateway sends it the writes of each
//! commit as well, as soon as that is decided; a copy that gets lost comes with the log.
//!
//! With its log a peer promises up to when nothing that has its vote will be missing there (*closed*). By these promises a replica knows up to when
//! it misses nothing (*safe*), and so what it may serve as a stale read and which deletions may go. The rules, and why they hold:
//! `docs/decisions/0004-closed-timestamps.md`.
//!
//! Invariants: a pull is a promise, so a cursor that a peer hears of never lies ahead of the rows on disk, nor behind them in an attempt that is
//! prepared or carried here; a closed
//! promise raises the write floor and the clock bound on disk first; a peer's promise counts only once its log is taken over
//! to its end.

mod serving;

use crate::config::{Config, FETCH_PAGE, TRUNCATE_MIN};
use crate::context::{Context, Local, Shared};
use crate::message::{LogEntry, LogHead, LogPage, Note, Part, Promise, Pulled};
use crate::records::{LOG, Number};
use crate::views::{CatchUpView, CohortView, MoverView, NearCatchUp};
use rhumb_commit::placement::Regions;
use rhumb_commit::votes::Refusal;
use rhumb_core::{Batch, RegionId, SiteId, Table, Time, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Ticks between two rounds of collection.
const COLLECT_TICKS: u64 = 20;

/// What is known of one peer's log.
#[derive(Clone, Debug, Default)]
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

/// A page of a peer's log of which rows are still missing.
#[derive(Clone, Debug)]
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
pub(crate) enum Found {
    /// On disk here, or known to have aborted.
    Known,
    /// Its rows have to come.
    Missing,
    /// It is prepared, carried or in a resolution here, and another site or a round decides first.
    Awaited,
}

/// What the log lists after `after`, up to `end`.
struct Heads {
    after: u64,
    heads: Vec<LogHead>,
    end: u64,
    more: bool,
}

/// Where the look at a page of a peer's log ended: before this place, because that is awaited, or else because it is enough for once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped {
    pub(crate) before: u64,
    pub(crate) awaited: bool,
}

/// How far a replica has taken over the logs of its peers.
#[derive(Clone, Debug, Default)]
pub(crate) struct CatchUp {
    peers: BTreeMap<RegionId, Peer>,
    /// Something is known to be missing: pull at the next tick even if it is not due.
    hurry: bool,
    ticks: u64,
    /// The hybrid clock at each of the last ticks, back to the one before `closed_lag` ago.
    clock_stood: VecDeque<(Time, Timestamp)>,
    /// What was safe when the present epoch began.
    safe_before: Timestamp,
    /// The log holds nothing up to here.
    truncated: u64,
    /// Where the log ended in the tick before.
    ended: Option<u64>,
}

impl CatchUp {
    pub(crate) fn set_cursor(&mut self, region: RegionId, cursor: u64) {
        let peer = self.peers.entry(region).or_default();
        peer.cursor = cursor;
        peer.saved = cursor;
    }

    /// Another placement is adopted; up to `safe` all is known. What is promised beyond that, a replica that votes now promises anew once it
    /// is settled: it may learn of doubts until then that it had no part in.
    pub(crate) fn begin_epoch(&mut self, safe: Timestamp) {
        self.safe_before = safe;
        for peer in self.peers.values_mut() {
            peer.closed = Timestamp::ZERO;
            if let Some(OpenPage { rest: Rest::Nothing { closed }, .. }) = &mut peer.open {
                *closed = Timestamp::ZERO;
            }
        }
    }

    /// Forgets how far the logs of `regions` were taken over: all rows are copied afresh.
    pub(crate) fn begin_anew(&mut self, regions: Regions) {
        for region in regions.iter() {
            let peer = self.peers.entry(region).or_default();
            (peer.cursor, peer.saved, peer.closed, peer.open) = (0, 0, Timestamp::ZERO, None);
        }
        self.safe_before = Timestamp::ZERO;
    }

    /// The epoch that the replica in `region` is settled in, as far as it has said so.
    pub(crate) fn settled(&self, region: RegionId) -> u64 {
        self.peers.get(&region).map_or(0, |peer| peer.settled)
    }

    /// Something is known to be missing here.
    pub(crate) fn hurry(&mut self) {
        self.hurry = true;
    }
}

impl CatchUp {
    /// Lists its tables, and the log of a region that votes, which ends at `log_end`: it is on disk, and has no bound while a region is away.
    pub(crate) fn tables(&self, regions: usize, log_end: Option<u64>, config: &Config, visit: &mut dyn FnMut(Table)) {
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

impl CatchUp {
    /// An earlier incarnation has dropped the log up to here.
    pub(crate) fn recover_truncated(&mut self, upto: u64) {
        self.truncated = upto;
    }

    /// Where the hybrid clock stood a while ago, which a crash or a peer can have put ahead of the time of day.
    pub(crate) fn lagging_clock(&mut self, cx: &Shared) -> Timestamp {
        let then = cx.now.minus(cx.config.closed_lag);
        let stood = &mut self.clock_stood;
        while stood.get(1).is_some_and(|(at, _)| *at <= then) {
            stood.pop_front();
        }
        let stood = stood.front().filter(|(at, _)| *at <= then).map_or(Timestamp::ZERO, |(_, clock)| *clock);
        Timestamp::from_time(then).max(stood)
    }

    /// A tick has passed.
    pub(crate) fn tick(&mut self, cx: &Shared) {
        self.ticks += 1;
        self.clock_stood.push_back((cx.now, cx.clock.last()));
        if self.clock_stood.len() > 2 * cx.config.ticks_of_closed_lag() + 1 {
            // The clock has jumped back. What it showed before that is promised later than it could be.
            self.clock_stood.pop_front();
        }
    }

    /// This replica itself promises to commit nothing more at or below `closed`. A promise to oneself counts when it would outlive a restart,
    /// like any other.
    pub(crate) fn close_own(&mut self, near: &NearCatchUp<'_>, closed: Timestamp, cx: &Shared) {
        if near.mover.is_settled(cx) {
            self.peers.entry(cx.me.region).or_default().closed = closed.min(cx.clock.bound());
        }
    }

    /// True if the logs of others are to be pulled now.
    pub(crate) fn pulls_now(&self) -> bool {
        self.ticks % 2 == 1 || self.hurry
    }

    /// Pulls the logs of `sources`.
    pub(crate) fn pull_all(&mut self, near: &NearCatchUp<'_>, sources: Regions, cx: &mut Context<'_>) {
        self.hurry = false;
        for (region, peer) in &mut self.peers {
            // Nobody sends the rest of a page of a log that is not wanted any more.
            peer.open.take_if(|_| !sources.contains(*region));
        }
        for region in sources.iter() {
            self.pull(near, region, cx);
        }
    }

    /// The regions that take over what is committed here.
    fn followers(cx: &Shared) -> Regions {
        cx.placement.copies().without(cx.me.region.into())
    }

    /// Asks a peer for what comes next in its log, or again for the rows of the page that is open.
    pub(crate) fn pull(&mut self, near: &NearCatchUp<'_>, region: RegionId, cx: &mut Context<'_>) {
        let to = SiteId { region, shard: cx.me.shard };
        let safe = self.safe(near.cohort, near.mover, cx);
        let (epoch, settled) = (cx.placement.epoch, near.mover.settled());
        let now = cx.now;
        let peer = self.peers.entry(region).or_default();
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
        cx.fx.persist(batch).send(to, Promise::Pull(Pulled { after: peer.cursor, safe, epoch, settled }));
    }

    /// True if `page` goes on where this replica left off, and says something of the present epoch.
    pub(crate) fn expects(&self, from: SiteId, page: &LogPage, cx: &mut Context<'_>) -> bool {
        if page.after != self.cursor(from.region) {
            return false; // an answer to an older pull
        }
        if page.epoch > cx.placement.epoch {
            // What it promises is of an epoch in which others vote than this site knows of.
            cx.compare_epoch(from, page.epoch);
            return false;
        }
        true
    }

    /// The log of `region` is taken over from `after` on.
    pub(crate) fn enter(&mut self, region: RegionId, after: u64) {
        self.peers.entry(region).or_default().cursor = after;
    }

    /// A page of the log of `from` of which the rows of `wanted` are missing here, up to where `stopped` says.
    pub(crate) fn open(&mut self, from: SiteId, page: &LogPage, wanted: BTreeSet<u64>, stopped: Option<Stopped>, cx: &mut Context<'_>) {
        // What it promised in an earlier epoch counted beside the promises of those who voted then.
        let closed = if page.epoch == cx.placement.epoch { page.closed } else { Timestamp::ZERO };
        let (end, rest) = match stopped {
            None if page.more => (page.end, Rest::More),
            None => (page.end, Rest::Nothing { closed }),
            Some(Stopped { before, awaited: true }) => (before - 1, Rest::Awaited),
            Some(Stopped { before, awaited: false }) => (before - 1, Rest::More),
        };
        if !wanted.is_empty() {
            cx.fx.count("catch_up.fetch");
            cx.fx.send(from, Note::Fetch { seqs: wanted.iter().copied().collect() });
        }
        self.peers.entry(from.region).or_default().open = Some(OpenPage { wanted, end, rest, since: cx.now, asked: cx.now });
    }

    /// Of these entries of the log of `region`, those that are wanted.
    pub(crate) fn wanted(&self, region: RegionId, mut entries: Vec<LogEntry>) -> Vec<LogEntry> {
        let open = self.peers.get(&region).and_then(|peer| peer.open.as_ref());
        entries.retain(|entry| open.is_some_and(|open| open.wanted.contains(&entry.seq)));
        entries
    }

    /// The places `taken` of the open page of `region` are taken over; `awaited` is not to be yet.
    pub(crate) fn take(&mut self, region: RegionId, taken: &BTreeSet<u64>, awaited: Option<u64>) {
        let Some(open) = self.peers.get_mut(&region).and_then(|peer| peer.open.as_mut()) else { return };
        open.wanted.retain(|seq| !taken.contains(seq));
        if let Some(first) = awaited.or(open.wanted.first().copied()) {
            // Or else the answer was too long for one message, and cut off: the rest is pulled afresh.
            let rest = if awaited.is_some() { Rest::Awaited } else { Rest::More };
            *open = OpenPage { wanted: BTreeSet::new(), end: first - 1, rest, ..*open };
        }
    }

    /// True if the entry comes from a lost region and is a part of a transaction whose coordinator is another site: an earlier incarnation of this
    /// one may have been bound not to take it over.
    pub(crate) fn is_part_of_lost(from: SiteId, entry: &LogEntry, cx: &Shared) -> bool {
        let is_lost = cx.placement.lost.contains_key(&from.region) && !cx.placement.copies().contains(from.region);
        is_lost && entry.meta.as_ref().is_some_and(|meta| meta.coordinator != cx.me.shard)
    }

    /// If all rows of the open page are here, the cursor moves to its end.
    pub(crate) fn turn_page(&mut self, near: &NearCatchUp<'_>, region: RegionId, cx: &mut Context<'_>) {
        let peer = self.peers.entry(region).or_default();
        let Some(open) = peer.open.take_if(|open| open.wanted.is_empty()) else { return };
        peer.cursor = open.end.max(peer.cursor);
        match open.rest {
            Rest::Nothing { closed } => {
                peer.closed = closed.max(peer.closed);
                if self.lags_behind_stop(near.mover, region, cx) {
                    self.pull(near, region, cx);
                }
                cx.notify(Local::SafeHasRisen);
            }
            Rest::More => self.pull(near, region, cx),
            Rest::Awaited => {}
        }
    }

    /// Whether old versions are to be dropped now: up to where every replica that takes over what is committed here is safe.
    pub(crate) fn collects(&self, near: &NearCatchUp<'_>, cx: &Shared) -> Option<Timestamp> {
        let safe_of = |region| self.peers.get(&region).map_or(Timestamp::ZERO, |peer| peer.safe);
        // What one of them waits for, or carries, may yet be committed for the votes of lost regions.
        let closed_at = |region| cx.peers.closed(SiteId { region, shard: cx.me.shard });
        let told = |region| closed_at(region).min(safe_of(region));
        let everywhere = CatchUp::followers(cx).iter().map(told).min().unwrap_or(Timestamp::MAX);
        self.ticks.is_multiple_of(COLLECT_TICKS).then(|| everywhere.min(self.safe(near.cohort, near.mover, cx)))
    }

    /// Drops the part of the log that every peer has taken over, twice as fast as it grows; but not during a move, because a replica that is still in
    /// doubt about an attempt of an earlier epoch may find its commit there.
    pub(crate) fn truncate_log(&mut self, near: &NearCatchUp<'_>, cx: &mut Context<'_>) {
        let log_end = near.cohort.log_end();
        let added = log_end - self.ended.replace(log_end).unwrap_or(log_end);
        let moving = |region| self.settled(region) < cx.placement.epoch;
        if (cx.has_copy() && !near.mover.is_settled(cx)) || CatchUp::followers(cx).iter().any(moving) {
            return;
        }
        let acked = CatchUp::followers(cx).iter().map(|region| self.peers.get(&region).map_or(0, |peer| peer.acked)).min();
        let upto = acked.unwrap_or(log_end).min(self.truncated + TRUNCATE_MIN.max(2 * added)).min(log_end);
        if upto <= self.truncated {
            return;
        }
        let mut batch = Batch::new();
        for seq in self.truncated + 1..=upto {
            batch.delete_record(LOG, seq.to_be_bytes().to_vec());
        }
        self.truncated = upto;
        Number::Truncated.put(&mut batch, upto);
        cx.fx.persist(batch);
    }
}

impl CatchUpView for CatchUp {
    fn cursor(&self, region: RegionId) -> u64 {
        self.peers.get(&region).map_or(0, |peer| peer.cursor)
    }

    fn check_placement(&self, cx: &Shared, part: &Part) -> Result<(), Refusal> {
        let Some(next) = part.placement() else { return Ok(()) };
        if next.declares_lost().contains(cx.me.region) {
            return Err(Refusal::StaleConfiguration);
        }
        let unsettled = |region: &RegionId| self.settled(*region) < cx.placement.epoch;
        match next.voters.without(cx.placement.voters).iter().find(unsettled) {
            Some(region) => Err(Refusal::CopyIncomplete(region)),
            None => Ok(()),
        }
    }

    fn lags_behind_stop(&self, mover: &dyn MoverView, region: RegionId, cx: &Shared) -> bool {
        region != cx.me.region && self.cursor(region) < mover.stopped_log_end(region)
    }

    fn safe(&self, cohort: &dyn CohortView, mover: &dyn MoverView, cx: &Shared) -> Timestamp {
        if !mover.is_settled(cx) {
            return self.safe_before;
        }
        let voters = cx.placement.voters;
        let closed = |region| self.peers.get(&region).map_or(Timestamp::ZERO, |peer| peer.closed);
        let mut closed: Vec<Timestamp> = voters.iter().map(closed).collect();
        closed.sort_unstable_by(|a, b| b.cmp(a));
        let closed = closed[voters.majority() - 1].max(self.safe_before);
        cohort.lowest_promised_before(cx.placement.epoch).map_or(closed, |lowest| closed.min(lowest.previous()))
    }
}

#[cfg(test)]
mod tests;
