//! Moving: from one placement to the next while clients run.
//!
//! Which placement comes next is decided by an ordinary commit of the active regions, which writes it into a row of every
//! shard. What remains is that no commit of the epochs before is missed by those that decide from now on:
//!
//! ```text
//!   replica of the new placement            replicas that were active before
//!     │ AskStopped, with the placement        │
//!     ├──────────────────────────────────────▶│ votes on no attempt of an earlier epoch any more;
//!     │                                       │ waits a while for the outcomes of those that it is prepared for:
//!     │◀──────────────────────────────────────┤ Stopped: log up to 57, read up to t, in doubt about X still
//!     │ Pull, Fetch                           │
//!     ├──────────────────────────────────────▶│
//!     │◀──────────────────────────────────────┤ Log, Entries
//!     │
//!   settled, once a majority of every electorate since the epoch in which it was settled has said so, and their logs are
//!   taken over: keeps the locks of X, votes on attempts of the new epoch, and on none at or below t
//! ```
//!
//! Why that suffices: a commit of an earlier epoch has the votes of a majority of its electorate, each prepared before that
//! region stopped; one of those is among any majority that has stopped, and either it has applied the commit and has it in its log,
//! or it is in doubt about it and says so: see `doubts.rs`. Likewise a read of a majority, and a closed timestamp that somebody counts
//! on, met one of them before it stopped; *t* lies above it. A region that has copied all rows, and with them the outcomes of what it
//! was in doubt about, does not have these in its log: it does not count for the epochs of such attempts.
//!
//! Invariants: a replica adopts placements in the order of their epochs and votes in none but the last; that it has adopted
//! one is on disk before anybody hears that it has stopped, and that it is settled before it votes.

use super::catch_up::CatchUp;
use super::context::{Context, Shared};
use super::message::{Attempt, Doubt, Note, Part, Promise, Stopped};
use super::planted::Planted;
use super::records::{PLACEMENT, PlacementRecord};
use super::site::Roles;
use rhumb_commit::placement::{Placement, Regions};
use rhumb_commit::votes::Refusal;
use rhumb_core::{Batch, Key, RegionId, SiteId, Table, Time, Timestamp, Value, record};
use std::collections::BTreeMap;

/// Messages that wait until this site is settled.
const WAITING_MAX: usize = 8_192;

/// What a replica has said when it had stopped.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) settled: u64,
    pub(super) since: u64,
    pub(super) log_end: u64,
    read_upto: Timestamp,
    pub(super) doubts: Vec<Doubt>,
    /// It has said all that it is in doubt about.
    whole: bool,
}

impl Stop {
    /// The last attempt of which it has said that it is in doubt about it.
    fn last(&self) -> Option<Attempt> {
        self.doubts.last().map(|doubt| doubt.record.meta.attempt)
    }
}

/// How far a site has come in the present epoch.
#[derive(Debug, Default)]
pub(super) struct Moving {
    /// The last epoch of which this site knows every commit of the epochs before.
    settled: u64,
    /// The rows are all here; else they are being copied.
    pub(super) copied: bool,
    /// A new placement was adopted in this step.
    adopted: bool,
    /// What others said for the present epoch.
    stopped: BTreeMap<RegionId, Stop>,
    /// Who waits to hear that this site has stopped, and from which attempt on what it is in doubt about.
    asking: BTreeMap<SiteId, Option<Attempt>>,
    /// When this site stopped, in this life.
    stopped_at: Time,
    /// The log of this site speaks for this epoch and later ones.
    since: u64,
    /// What is to be looked at once settled.
    waiting: Vec<(SiteId, Time, Note)>,
}

impl Moving {
    /// Lists its tables.
    pub(super) fn tables(&self, sites: usize, regions: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("moving.stopped", self.stopped.len(), regions).stays());
        visit(Table::new("moving.asking", self.asking.len(), sites));
        visit(Table::new("moving.waiting", self.waiting.len(), WAITING_MAX));
    }
}

impl Moving {
    /// The electorates of which a majority must have stopped, those of the epochs since this site was settled.
    fn electorates_before<'a>(&self, cx: &'a Shared) -> &'a [Regions] {
        cx.placement.since(self.settled).unwrap_or(&[])
    }

    /// True if this site may vote, promise and be read in the present epoch.
    pub(super) fn is_settled(&self, cx: &Shared) -> bool {
        self.settled == cx.placement.epoch && self.copied
    }

    /// The epoch that this site is settled in, zero as long as not all rows are here.
    pub(super) fn settled(&self) -> u64 {
        if self.copied { self.settled } else { 0 }
    }

    /// True if this site knew, then or later, every commit of the epochs before `epoch`.
    pub(super) fn has_settled_in(&self, epoch: u64) -> bool {
        self.settled >= epoch
    }

    /// The epoch from which on the log of this site has all that it voted for.
    pub(super) fn since(&self) -> u64 {
        self.since
    }

    /// An attempt of `epoch` that this site was prepared for is dropped without its outcome: its log does not speak for that epoch.
    pub(super) fn has_dropped_doubt_of(&mut self, epoch: u64) {
        self.since = self.since.max(epoch + 1);
    }

    /// What the replica in `region` has said since it stopped, if that is all.
    pub(super) fn stop_of(&self, region: RegionId) -> Option<&Stop> {
        self.stopped.get(&region).filter(|stop| stop.whole)
    }

    /// Looks at `note` again once this site is settled.
    pub(super) fn wait_until_settled(&mut self, from: SiteId, note: Note, cx: &mut Context<'_>) {
        cx.fx.count("placement.waits_until_settled");
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push((from, cx.now, note));
        }
    }
}

impl CatchUp {
    /// May what is written come next, if it is a placement? Whom it makes active must be settled in this epoch; whom it declares lost does
    /// not vote for it.
    pub(super) fn check_placement(&self, cx: &Shared, part: &Part) -> Result<(), Refusal> {
        let Some(next) = part.placement() else { return Ok(()) };
        if next.declares_lost().contains(cx.me.region) {
            return Err(Refusal::Moved);
        }
        let unsettled = |region: &RegionId| self.settled(*region) < cx.placement.epoch;
        match next.voters.without(cx.placement.voters).iter().find(unsettled) {
            Some(region) => Err(Refusal::NotWhole(region)),
            None => Ok(()),
        }
    }
}

impl Moving {
    /// All regions of those electorates.
    pub(super) fn regions_before(&self, cx: &Shared) -> Regions {
        self.electorates_before(cx).iter().fold(Regions::NONE, |all, electorate| all.or(*electorate))
    }
}

impl Roles {
    /// The placement that is on disk, or the first one, which is put there.
    pub(super) fn recover_placement(&mut self, record: Option<PlacementRecord>, cx: &mut Context<'_>) {
        match record {
            Some(PlacementRecord { placement, settled, copied, enter, since }) => {
                self.moving.since = since;
                cx.placement = placement;
                self.moving.settled = settled;
                self.moving.copied = copied;
                self.catch_up.enter = enter;
            }
            None => {
                self.moving.settled = cx.placement.epoch;
                self.moving.copied = cx.has_copy();
                let mut batch = Batch::new();
                self.put_placement(cx, &mut batch);
                cx.fx.persist(batch);
            }
        }
        self.moving.adopted = true;
        self.moving.stopped_at = cx.now;
    }

    /// Adds to `batch` which placement this site is in.
    pub(super) fn put_placement(&self, cx: &Shared, batch: &mut Batch) {
        let Moving { settled, copied, since, .. } = self.moving;
        let record = PlacementRecord { placement: cx.placement.clone(), settled, copied, enter: self.catch_up.enter, since };
        batch.put_record(PLACEMENT, Vec::new(), record::encode(&record));
    }

    /// Enters the epoch of `placement`, if it is a later one.
    pub(super) fn adopt(&mut self, placement: Placement, batch: &mut Batch, cx: &mut Context<'_>) {
        if placement.epoch <= cx.placement.epoch {
            return;
        }
        cx.fx.count("placement.adopted");
        cx.fx.trace(|| format!("adopts {placement}"));
        cx.fx.agree("placement", placement.epoch, &placement);
        self.catch_up.begin_epoch(self.safe(cx));
        cx.placement = placement;
        cx.peers.open_all();
        self.moving.stopped.clear();
        self.moving.stopped_at = cx.now;
        self.moving.adopted = true;
        if !cx.has_copy() {
            // What stays on its disk serves peers that still want its log; it is not kept up any more.
            self.moving.copied = false;
            self.join = None;
        }
        self.put_placement(cx, batch);
    }

    /// At the end of every step: goes on with a move as far as it can. False if there is nothing to do.
    pub(super) fn go_on_moving(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.is_serving() {
            return false;
        }
        if std::mem::take(&mut self.moving.adopted) {
            self.gateway.ask_again_in_new_epoch(cx);
            self.begin_to_join(cx);
            self.ask_stopped(cx);
            return true;
        }
        (!self.moving.asking.is_empty() && self.tell_stopped(cx))
            || (self.moving.copied && self.moving.settled < cx.placement.epoch && self.settle(cx))
    }

    /// A row is being applied: it may be the one that says which placement comes next.
    pub(super) fn see_placement(&mut self, key: &Key, value: Option<&Value>, batch: &mut Batch, cx: &mut Context<'_>) {
        if Placement::is_key(key)
            && let Some(placement) = value.and_then(Placement::decode)
        {
            self.adopt(placement, batch, cx);
        }
    }

    /// A site says which placement it has adopted.
    pub(super) fn on_placed(&mut self, placement: Placement, cx: &mut Context<'_>) {
        let mut batch = Batch::new();
        self.adopt(placement, &mut batch, cx);
        if !batch.ops.is_empty() {
            cx.fx.persist(batch);
        }
    }

    fn ask_stopped(&mut self, cx: &mut Context<'_>) {
        if !cx.has_copy() || !self.moving.copied {
            return;
        }
        if cx.placement.since(self.moving.settled).is_none() {
            cx.fx.count("placement.too_far_behind");
            return self.copy_anew(cx);
        }
        for region in self.moving.regions_before(cx).iter() {
            match self.moving.stopped.get(&region) {
                Some(stop) if stop.whole => {}
                partly => cx.ask_to_stop(region, partly.and_then(Stop::last)),
            }
        }
    }

    /// A replica of the new placement asks whether this one has stopped.
    pub(super) fn on_ask_stopped(&mut self, from: SiteId, placement: Placement, after: Option<Attempt>, cx: &mut Context<'_>) {
        if placement.epoch < cx.placement.epoch {
            return cx.tell_placement(from);
        }
        self.on_placed(placement, cx);
        self.moving.asking.insert(from, after);
    }

    /// Tells those who ask; if it is in doubt about attempts of earlier epochs, only after a while, in which most of them end.
    fn tell_stopped(&mut self, cx: &mut Context<'_>) -> bool {
        let hides = cx.rules.breaks(Planted::StopsInDoubt);
        if !hides && cx.now.since(self.moving.stopped_at) < cx.config.withdraw_after && self.cohort.has_doubts(cx) {
            return false;
        }
        for (site, after) in std::mem::take(&mut self.moving.asking) {
            let (doubts, more) = self.cohort.page_of_doubts(cx, after);
            let doubts = if hides { Vec::new() } else { doubts };
            let stopped = Stopped {
                epoch: cx.placement.epoch,
                settled: self.moving.settled(),
                since: self.moving.since,
                log_end: self.cohort.log_end,
                read_upto: self.cohort.ceilings.highest().max(self.catch_up.collected),
                doubts,
                after,
                more,
            };
            cx.fx.persist(Batch::new()).send(site, Promise::Stopped(stopped));
        }
        true
    }

    /// A former active region has stopped.
    pub(super) fn on_stopped(&mut self, from: SiteId, stopped: Stopped, cx: &mut Context<'_>) {
        let Stopped { epoch, settled, since, log_end, read_upto, doubts, after, more } = stopped;
        if epoch != cx.placement.epoch || (more && doubts.is_empty()) {
            return;
        }
        let known = self.moving.stopped.remove(&from.region).filter(|known| after.is_some() && known.last() == after);
        if known.is_none() && after.is_some() {
            return; // an answer to an older question
        }
        let mut stop = known.unwrap_or(Stop { settled, since, log_end, read_upto, doubts: Vec::new(), whole: false });
        (stop.settled, stop.since, stop.log_end, stop.read_upto) = (settled, since, log_end, read_upto);
        stop.doubts.extend(doubts);
        stop.whole = !more;
        let last = stop.last();
        if stop.whole {
            self.replicate(|cohort, near| cohort.hear_of_no_doubt(near, from.region, &stop, cx));
        }
        self.moving.stopped.insert(from.region, stop);
        if more {
            return cx.ask_to_stop(from.region, last);
        }
        if self.lags_behind_stop(cx, from.region) {
            self.pull(from.region, cx);
        }
        self.end_join(from, cx);
    }

    /// True if the log of a region that has stopped is not taken over to its end.
    pub(super) fn lags_behind_stop(&self, cx: &Shared, region: RegionId) -> bool {
        let end = self.moving.stopped.get(&region).map_or(0, |stopped| stopped.log_end);
        region != cx.me.region && self.catch_up.cursor(region) < end
    }

    /// Settles, if enough have stopped and their logs are here.
    fn settle(&mut self, cx: &mut Context<'_>) -> bool {
        if cx.placement.since(self.moving.settled).is_none() {
            return false;
        }
        let has_all = |(region, stop): &(&RegionId, &Stop)| stop.whole && !self.lags_behind_stop(cx, **region);
        let known: BTreeMap<RegionId, &Stop> = self.moving.stopped.iter().filter(has_all).map(|(region, stop)| (*region, stop)).collect();
        let unsettled = cx.rules.breaks(Planted::VotesUnsettled);
        // The latest electorate first.
        let lacks = |(back, electorate): (u64, &Regions)| {
            let epoch = cx.placement.epoch - back;
            let speak: Regions = known.iter().filter(|(_, stop)| stop.since <= epoch).map(|(region, _)| *region).collect();
            electorate.and(speak).len() < electorate.majority()
        };
        if !unsettled && (1..).zip(self.moving.electorates_before(cx)).any(lacks) {
            if self.moving.regions_before(cx).iter().all(|region| known.contains_key(&region)) {
                cx.fx.count("placement.nobody_speaks");
                self.copy_anew(cx);
            }
            return false;
        }
        let read_upto = self.moving.stopped.values().map(|stop| stop.read_upto).max().unwrap_or(Timestamp::ZERO);
        let mut batch = Batch::new();
        cx.cover(&mut batch, read_upto);
        self.cohort.ceilings.raise_floor(read_upto);
        let mut stopped = std::mem::take(&mut self.moving.stopped);
        for stop in stopped.values().filter(|stop| stop.whole) {
            self.cohort.carry(stop.doubts.iter().map(|doubt| doubt.record.clone()), &mut batch, cx);
        }
        cx.fx.count("placement.settled");
        self.moving.settled = cx.placement.epoch;
        self.put_placement(cx, &mut batch);
        cx.fx.persist(batch);
        for (region, stop) in stopped.iter_mut().filter(|(_, stop)| stop.whole) {
            self.replicate(|cohort, near| cohort.hear_of_no_doubt(near, *region, stop, cx));
            stop.doubts = Vec::new(); // on disk here
        }
        self.moving.stopped = stopped;
        self.serve_waiting(cx);
        true
    }

    /// Settled without asking anybody: the rows were copied from a replica that is settled in `epoch`.
    pub(super) fn settle_by_copy(&mut self, epoch: u64, mut batch: Batch, cx: &mut Context<'_>) {
        self.moving.settled = epoch.min(cx.placement.epoch);
        self.moving.copied = true;
        self.moving.adopted = true; // on to the epochs since then
        self.put_placement(cx, &mut batch);
        cx.fx.persist(batch);
        if self.moving.is_settled(cx) {
            self.serve_waiting(cx);
        }
    }

    fn serve_waiting(&mut self, cx: &mut Context<'_>) {
        for (from, _, note) in std::mem::take(&mut self.moving.waiting) {
            self.on_note(from, note, cx);
        }
        self.serve_stale_reads(cx);
    }

    pub(super) fn moving_tick(&mut self, cx: &mut Context<'_>) {
        let limit = cx.now.minus(cx.config.read_timeout);
        self.moving.waiting.retain(|(_, since, _)| *since >= limit);
        if self.moving.settled < cx.placement.epoch {
            self.ask_stopped(cx);
        }
        self.join_tick(cx);
    }
}
