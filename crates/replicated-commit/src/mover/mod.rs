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
//! or it is in doubt about it and says so: see `cohort/doubts.rs`. Likewise a read of a majority, and a closed timestamp that somebody counts
//! on, met one of them before it stopped; *t* lies above it. A region that has copied all rows, and with them the outcomes of what it
//! was in doubt about, does not have these in its log: it does not count for the epochs of such attempts.
//!
//! Invariants: a replica adopts placements in the order of their epochs and votes in none but the last; that it has adopted
//! one is on disk before anybody hears that it has stopped, and that it is settled before it votes.

mod joining;
mod waiting;

pub(crate) use joining::CopyRequest;

use crate::context::{Context, Shared};
use crate::message::{Attempt, Note, Promise, Stopped};
use crate::planted::Planted;
use crate::records::{PLACEMENT, PlacementRecord};
use crate::views::{MoverView, NearMover, Stop};
use joining::Join;
use rhumb_commit::placement::{Placement, Regions};
use rhumb_core::{Batch, RegionId, SiteId, Table, Time, Timestamp, record};
use std::collections::BTreeMap;
use waiting::Waiting;

/// What comes next as a site moves on.
pub(crate) enum Step {
    /// A new placement was adopted: requests of the previous epoch are sent again, and other regions are asked to stop.
    Adopted,
    /// Those who ask are told that this site has stopped.
    SendStopped,
    /// Enough have stopped, and their logs are here: this site settles.
    Settle,
    /// No log holds the missing commits any more: all rows are copied.
    CopyAnew,
    /// Nothing for now.
    Wait,
}

/// How far a site has come in the present epoch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mover {
    /// The last epoch of which this site knows every commit of the epochs before.
    settled: u64,
    /// The rows are all here; else they are being copied.
    copied: bool,
    /// A new placement was adopted in this step.
    adopted: bool,
    /// What others said for the present epoch.
    stopped: BTreeMap<RegionId, Stop>,
    /// The sites that wait for this one's `Stopped`, each with the attempt after which its list of doubts begins.
    asking: BTreeMap<SiteId, Option<Attempt>>,
    /// When this site stopped, in this incarnation.
    stopped_at: Time,
    /// The log of this site speaks for this epoch and later ones.
    since: u64,
    /// What is to be looked at once settled.
    waiting: Waiting,
    /// The logs that may be taken over from wherever they begin, because the rows before that were copied.
    enter: Regions,
    /// A copy on its way here.
    join: Option<Join>,
}

impl Mover {
    /// Lists its tables.
    pub(crate) fn tables(&self, sites: usize, regions: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("moving.stopped", self.stopped.len(), regions).stays());
        visit(Table::new("moving.asking", self.asking.len(), sites));
        self.waiting.tables(visit);
    }

    /// All regions of the electorates before.
    pub(crate) fn regions_before(&self, cx: &Shared) -> Regions {
        self.electorates_before(cx).iter().fold(Regions::NONE, |all, electorate| all.or(*electorate))
    }

    /// The electorates of which a majority must have stopped, those of the epochs since this site was settled.
    fn electorates_before<'a>(&self, cx: &'a Shared) -> &'a [Regions] {
        cx.placement.since(self.settled).unwrap_or(&[])
    }

    /// True if this site knew, then or later, every commit of the epochs before `epoch`.
    pub(crate) fn has_settled_in(&self, epoch: u64) -> bool {
        self.settled >= epoch
    }

    /// True if the log of `region` may be taken over from wherever it begins.
    pub(crate) fn may_enter(&self, region: RegionId) -> bool {
        self.enter.contains(region)
    }

    /// The log of `region` is taken over from now on.
    pub(crate) fn has_entered(&mut self, region: RegionId) {
        self.enter = self.enter.without(region.into());
    }

    /// Looks at `note` again once this site is settled.
    pub(crate) fn wait_until_settled(&mut self, from: SiteId, note: Note, cx: &mut Context<'_>) {
        cx.fx.count("placement.waits_until_settled");
        self.waiting.keep(from, cx.now, note);
    }

    /// What has waited until this site was settled.
    pub(crate) fn take_waiting(&mut self) -> Vec<(SiteId, Note)> {
        self.waiting.take()
    }

    /// The placement that is on disk, or the first one, which is put there.
    pub(crate) fn recover(&mut self, record: Option<PlacementRecord>, cx: &mut Context<'_>) {
        match record {
            Some(PlacementRecord { placement, settled, copied, enter, since }) => {
                cx.placement = placement;
                (self.settled, self.copied, self.enter, self.since) = (settled, copied, enter, since);
            }
            None => {
                self.settled = cx.placement.epoch;
                self.copied = cx.has_copy();
                self.persist(Batch::new(), cx);
            }
        }
        self.adopted = true;
        self.stopped_at = cx.now;
    }

    /// Adds to `batch` which placement this site is in.
    fn put(&self, cx: &Shared, batch: &mut Batch) {
        let Mover { settled, copied, since, enter, .. } = *self;
        let record = PlacementRecord { placement: cx.placement.clone(), settled, copied, enter, since };
        batch.put_record(PLACEMENT, Vec::new(), record::encode(&record));
    }

    fn persist(&self, mut batch: Batch, cx: &mut Context<'_>) {
        self.put(cx, &mut batch);
        cx.fx.persist(batch);
    }

    /// Enters the epoch of `placement`, a later one. Adds that to `batch`.
    pub(crate) fn adopt(&mut self, placement: Placement, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.fx.count("placement.adopted");
        cx.fx.trace(|| format!("adopts {placement}"));
        cx.fx.agree("placement", placement.epoch, &placement);
        cx.placement = placement;
        cx.peers.open_all();
        self.stopped.clear();
        self.stopped_at = cx.now;
        self.adopted = true;
        if !cx.has_copy() {
            // What stays on its disk serves peers that still want its log; it is not kept up any more.
            self.copied = false;
            self.join = None;
        }
        self.put(cx, batch);
    }

    /// What comes next, at the end of a step.
    pub(crate) fn next(&mut self, near: &NearMover<'_>, cx: &mut Context<'_>) -> Step {
        if std::mem::take(&mut self.adopted) {
            return Step::Adopted;
        }
        if !self.asking.is_empty() && self.may_send_stopped(near, cx) {
            return Step::SendStopped;
        }
        if self.copied && self.settled < cx.placement.epoch { self.may_settle(near, cx) } else { Step::Wait }
    }

    /// Asks those of the epochs before whether they have stopped. False if this site is so far behind that nobody can say what it misses.
    pub(crate) fn request_stops(&self, cx: &mut Context<'_>) -> bool {
        if !cx.has_copy() || !self.copied {
            return true;
        }
        if cx.placement.since(self.settled).is_none() {
            cx.fx.count("placement.too_far_behind");
            return false;
        }
        for region in self.regions_before(cx).iter() {
            match self.stopped.get(&region) {
                Some(stop) if stop.whole => {}
                partly => cx.request_stop(region, partly.and_then(Stop::last)),
            }
        }
        true
    }

    /// A replica of the new placement, which is adopted, asks whether this one has stopped.
    pub(crate) fn on_asked(&mut self, from: SiteId, after: Option<Attempt>) {
        self.asking.insert(from, after);
    }

    /// If this site is in doubt about attempts of earlier epochs, it tells so only after a while, in which most of them end.
    fn may_send_stopped(&self, near: &NearMover<'_>, cx: &Shared) -> bool {
        let is_over = cx.now.since(self.stopped_at) >= cx.config.withdraw_after;
        is_over || !near.cohort.has_doubts(cx) || cx.rules.breaks(Planted::StopsInDoubt)
    }

    /// Tells those who ask that this site has stopped.
    pub(crate) fn send_stopped(&mut self, near: &NearMover<'_>, cx: &mut Context<'_>) {
        for (site, after) in std::mem::take(&mut self.asking) {
            let (doubts, more) = near.cohort.page_of_doubts(cx, after);
            let doubts = if cx.rules.breaks(Planted::StopsInDoubt) { Vec::new() } else { doubts };
            let stopped = Stopped {
                epoch: cx.placement.epoch,
                settled: self.settled(),
                since: self.since,
                log_end: near.cohort.log_end(),
                read_upto: near.cohort.read_upto(),
                doubts,
                after,
                more,
            };
            cx.fx.persist(Batch::new()).send(site, Promise::Stopped(stopped));
        }
    }

    /// A former active region has stopped. True once it has said all.
    pub(crate) fn on_stopped(&mut self, from: SiteId, stopped: Stopped, cx: &mut Context<'_>) -> bool {
        let Stopped { epoch, settled, since, log_end, read_upto, doubts, after, more } = stopped;
        if epoch != cx.placement.epoch || (more && doubts.is_empty()) {
            return false;
        }
        let known = self.stopped.remove(&from.region).filter(|known| after.is_some() && known.last() == after);
        if known.is_none() && after.is_some() {
            return false; // an answer to an older question
        }
        let mut stop = known.unwrap_or(Stop { settled, since, log_end, read_upto, doubts: Vec::new(), whole: false });
        (stop.settled, stop.since, stop.log_end, stop.read_upto) = (settled, since, log_end, read_upto);
        stop.doubts.extend(doubts);
        stop.whole = !more;
        if more {
            cx.request_stop(from.region, stop.last());
        }
        self.stopped.insert(from.region, stop);
        !more
    }

    /// May this site settle: have enough stopped, and are their logs here?
    fn may_settle(&self, near: &NearMover<'_>, cx: &mut Context<'_>) -> Step {
        if cx.placement.since(self.settled).is_none() {
            return Step::Wait;
        }
        let has_all = |(region, stop): &(&RegionId, &Stop)| stop.whole && !near.catch_up.lags_behind_stop(self, **region, cx);
        let known: BTreeMap<RegionId, &Stop> = self.stopped.iter().filter(has_all).map(|(region, stop)| (*region, stop)).collect();
        // The latest electorate first.
        let lacks = |(back, electorate): (u64, &Regions)| {
            let epoch = cx.placement.epoch - back;
            let speak: Regions = known.iter().filter(|(_, stop)| stop.since <= epoch).map(|(region, _)| *region).collect();
            electorate.and(speak).len() < electorate.majority()
        };
        if cx.rules.breaks(Planted::VotesUnsettled) || !(1..).zip(self.electorates_before(cx)).any(lacks) {
            return Step::Settle;
        }
        if self.regions_before(cx).iter().all(|region| known.contains_key(&region)) {
            cx.fx.count("placement.nobody_speaks");
            return Step::CopyAnew;
        }
        Step::Wait
    }

    /// Nothing above it was read in the epochs before by those who have stopped.
    pub(crate) fn read_upto(&self) -> Timestamp {
        self.stopped.values().map(|stop| stop.read_upto).max().unwrap_or(Timestamp::ZERO)
    }

    /// This site settles in the present epoch, once `batch` is on disk, and keeps what others are in doubt about.
    pub(crate) fn settle(&mut self, batch: Batch, cx: &mut Context<'_>) {
        cx.fx.count("placement.settled");
        self.settled = cx.placement.epoch;
        self.persist(batch, cx);
    }

    /// What others were in doubt about is on disk here.
    pub(crate) fn drop_doubts(&mut self) {
        self.stopped.values_mut().filter(|stop| stop.whole).for_each(|stop| stop.doubts = Vec::new());
    }

    /// Looks after what is overdue. False if this site is so far behind that nobody can say what it misses.
    pub(crate) fn tick(&mut self, cx: &mut Context<'_>) -> bool {
        let limit = cx.now.minus(cx.config.read_timeout);
        self.waiting.drop_older(limit);
        self.settled >= cx.placement.epoch || self.request_stops(cx)
    }
}

impl MoverView for Mover {
    fn has_rows(&self) -> bool {
        self.copied
    }

    fn is_settled(&self, cx: &Shared) -> bool {
        self.settled == cx.placement.epoch && self.copied
    }

    fn settled(&self) -> u64 {
        if self.copied { self.settled } else { 0 }
    }

    fn since(&self) -> u64 {
        self.since
    }

    fn stop_of(&self, region: RegionId) -> Option<&Stop> {
        self.stopped.get(&region).filter(|stop| stop.whole)
    }

    fn stops(&self) -> Box<dyn Iterator<Item = (RegionId, &Stop)> + '_> {
        Box::new(self.stopped.iter().filter(|(_, stop)| stop.whole).map(|(region, stop)| (*region, stop)))
    }

    fn stopped_log_end(&self, region: RegionId) -> u64 {
        self.stopped.get(&region).map_or(0, |stop| stop.log_end)
    }
}

#[cfg(test)]
mod tests;
