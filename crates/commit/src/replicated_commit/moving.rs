//! Moving: from one placement to the next while clients run.
//!
//! Which placement comes next is decided by an ordinary commit of the active regions, which writes it into a row of every
//! shard. What remains is that no commit of the epochs before is missed by those that decide from now on:
//!
//! ```text
//!   replica of the new placement            replicas that were active before
//!     │ AskStopped, with the placement        │
//!     ├──────────────────────────────────────▶│ votes on no attempt of an earlier epoch any more;
//!     │                                       │ once none that it is prepared for is in doubt:
//!     │◀──────────────────────────────────────┤ Stopped: log up to 57, read up to t
//!     │ Pull, Fetch                           │
//!     ├──────────────────────────────────────▶│
//!     │◀──────────────────────────────────────┤ Log, Entries
//!     │
//!   settled, once a majority of every electorate since the epoch in which it was settled has said so, and their logs are
//!   taken over: votes on attempts of the new epoch, and on none at or below t
//! ```
//!
//! Why that suffices: a commit of an earlier epoch has the votes of a majority of its electorate, each prepared before that
//! region stopped; one of those is among any majority that has stopped, and as it is in doubt about nothing it has applied the
//! commit and has it in its log. Likewise a read of a majority, and a closed timestamp that somebody counts on, met one of
//! them before it stopped; *t* lies above it.
//!
//! Invariants: a replica adopts placements in the order of their epochs and votes in none but the last; that it has adopted
//! one is on disk before anybody hears that it has stopped, and that it is settled before it votes.

use super::message::{Note, Part, Promise};
use super::records::{PLACEMENT, PlacementRecord};
use super::site::Site;
use crate::placement::{Placement, Regions};
use crate::votes::Refusal;
use rhumb_core::{Batch, Effects, Key, RegionId, SiteId, Time, Timestamp, Value, record};
use std::collections::{BTreeMap, BTreeSet};

/// Messages that wait until this site is settled.
const WAITING_MAX: usize = 8_192;

/// What a replica said when it had stopped.
#[derive(Clone, Copy, Debug)]
struct Stopped {
    log_end: u64,
    read_upto: Timestamp,
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
    stopped: BTreeMap<RegionId, Stopped>,
    /// Who waits to hear that this site has stopped.
    asking: BTreeSet<SiteId>,
    /// What is to be looked at once settled.
    waiting: Vec<(SiteId, Time, Note)>,
}

impl Site {
    /// The placement that is on disk, or the first one, which is put there.
    pub(super) fn recover_placement(&mut self, record: Option<PlacementRecord>, fx: &mut Effects<Site>) {
        match record {
            Some(PlacementRecord { placement, settled, copied, enter }) => {
                self.placement = placement;
                self.moving.settled = settled;
                self.moving.copied = copied;
                self.catch_up.enter = enter;
            }
            None => {
                self.moving.settled = self.placement.epoch;
                self.moving.copied = self.has_copy();
                let mut batch = Batch::new();
                self.put_placement(&mut batch);
                fx.persist(batch);
            }
        }
        self.moving.adopted = true;
    }

    /// True if this site may vote, promise and be read in the present epoch.
    pub(super) fn is_settled(&self) -> bool {
        self.moving.settled == self.placement.epoch && self.moving.copied
    }

    /// The epoch that this site is settled in, zero as long as not all rows are here.
    pub(super) fn settled(&self) -> u64 {
        if self.moving.copied { self.moving.settled } else { 0 }
    }

    /// May what is written come next, if it is a placement? Whom it makes active must be settled in this epoch.
    pub(super) fn check_placement(&self, part: &Part) -> Result<(), Refusal> {
        let written = part.writes.iter().filter(|(key, _)| Placement::is_key(key));
        let Some(next) = written.filter_map(|(_, value)| value.as_ref().and_then(Placement::decode)).next() else { return Ok(()) };
        let unsettled = |region: &RegionId| self.catch_up.settled(*region) < self.placement.epoch;
        match next.voters.without(self.placement.voters).iter().find(unsettled) {
            Some(region) => Err(Refusal::NotWhole(region)),
            None => Ok(()),
        }
    }

    /// True if this region is to hold a copy.
    pub(super) fn has_copy(&self) -> bool {
        self.placement.copies().contains(self.me.region)
    }

    /// Adds to `batch` which placement this site is in.
    pub(super) fn put_placement(&self, batch: &mut Batch) {
        let Moving { settled, copied, .. } = self.moving;
        let record = PlacementRecord { placement: self.placement.clone(), settled, copied, enter: self.catch_up.enter };
        batch.put_record(PLACEMENT, Vec::new(), record::encode(&record));
    }

    /// Enters the epoch of `placement`, if it is a later one.
    pub(super) fn adopt(&mut self, placement: Placement, batch: &mut Batch, fx: &mut Effects<Site>) {
        if placement.epoch <= self.placement.epoch {
            return;
        }
        fx.count("placement.adopted");
        fx.trace(|| format!("adopts {placement}"));
        self.catch_up.safe_before = self.safe();
        self.placement = placement;
        self.moving.stopped.clear();
        self.moving.adopted = true;
        if !self.has_copy() {
            // What stays on its disk serves peers that still want its log; it is not kept up any more.
            self.moving.copied = false;
            self.join = None;
        }
        self.put_placement(batch);
    }

    /// At the end of every step: goes on with a move as far as it can. False if there is nothing to do.
    pub(super) fn go_on_moving(&mut self, fx: &mut Effects<Site>) -> bool {
        if !self.is_serving() {
            return false;
        }
        if std::mem::take(&mut self.moving.adopted) {
            self.ask_again_in_new_epoch(fx);
            self.begin_to_join();
            self.ask_stopped(fx);
            return true;
        }
        (!self.moving.asking.is_empty() && self.tell_stopped(fx))
            || (self.moving.copied && self.moving.settled < self.placement.epoch && self.settle(fx))
    }

    /// A row is being applied: it may be the one that says which placement comes next.
    pub(super) fn see_placement(&mut self, key: &Key, value: Option<&Value>, batch: &mut Batch, fx: &mut Effects<Site>) {
        if Placement::is_key(key)
            && let Some(placement) = value.and_then(Placement::decode)
        {
            self.adopt(placement, batch, fx);
        }
    }

    /// A site is in an earlier epoch, or asks which one this is.
    pub(super) fn tell_placement(&mut self, to: SiteId, fx: &mut Effects<Site>) {
        if to != self.me {
            fx.persist(Batch::new()).send(to, Promise::Placed { placement: self.placement.clone() });
        }
    }

    /// A site says which placement it has adopted.
    pub(super) fn on_placed(&mut self, placement: Placement, fx: &mut Effects<Site>) {
        let mut batch = Batch::new();
        self.adopt(placement, &mut batch, fx);
        if !batch.ops.is_empty() {
            fx.persist(batch);
        }
    }

    /// Another site is in `epoch`: sees to it that both are in the same one soon.
    pub(super) fn compare_epoch(&mut self, other: SiteId, epoch: u64, fx: &mut Effects<Site>) {
        if epoch > self.placement.epoch {
            self.send(other, Note::AskPlacement, fx);
        } else if epoch < self.placement.epoch {
            self.tell_placement(other, fx);
        }
    }

    /// The electorates of which a majority must have stopped, those of the epochs since this site was settled.
    fn electorates_before(&self) -> &[Regions] {
        self.placement.since(self.moving.settled).unwrap_or(&[])
    }

    /// All regions of those electorates.
    pub(super) fn regions_before(&self) -> Regions {
        self.electorates_before().iter().fold(Regions::NONE, |all, electorate| all.or(*electorate))
    }

    fn ask_stopped(&mut self, fx: &mut Effects<Site>) {
        if !self.has_copy() || !self.moving.copied {
            return;
        }
        if self.placement.since(self.moving.settled).is_none() {
            fx.count("placement.too_far_behind");
            return self.copy_anew(fx);
        }
        let note = Note::AskStopped { placement: self.placement.clone() };
        let unheard: Vec<RegionId> = self.regions_before().iter().filter(|region| !self.moving.stopped.contains_key(region)).collect();
        for region in unheard {
            self.send(self.site(region, self.me.shard), note.clone(), fx);
        }
    }

    /// A replica of the new placement asks whether this one has stopped.
    pub(super) fn on_ask_stopped(&mut self, from: SiteId, placement: Placement, fx: &mut Effects<Site>) {
        if placement.epoch < self.placement.epoch {
            return self.tell_placement(from, fx);
        }
        self.on_placed(placement, fx);
        self.moving.asking.insert(from);
    }

    /// Tells those who ask, once no attempt of an earlier epoch that this site is prepared for is in doubt.
    fn tell_stopped(&mut self, fx: &mut Effects<Site>) -> bool {
        #[cfg(feature = "planted")]
        let doubts = !self.has_planted(super::planted::Planted::StopsInDoubt);
        #[cfg(not(feature = "planted"))]
        let doubts = true;
        if doubts && self.cohort.is_prepared_before(self.placement.epoch) {
            return false;
        }
        let stopped = Promise::Stopped {
            epoch: self.placement.epoch,
            log_end: self.cohort.log_end,
            read_upto: self.cohort.ceilings.highest().max(self.catch_up.collected),
        };
        let mut persist = fx.persist(Batch::new());
        for site in std::mem::take(&mut self.moving.asking) {
            persist = persist.send(site, stopped.clone());
        }
        true
    }

    /// A former active region has stopped.
    pub(super) fn on_stopped(&mut self, from: SiteId, epoch: u64, log_end: u64, read_upto: Timestamp, fx: &mut Effects<Site>) {
        if epoch != self.placement.epoch || self.moving.settled >= epoch {
            return;
        }
        self.moving.stopped.insert(from.region, Stopped { log_end, read_upto });
        if self.lags_behind_stop(from.region) {
            self.pull(from.region, fx);
        }
    }

    /// True if the log of a region that has stopped is not taken over to its end.
    pub(super) fn lags_behind_stop(&self, region: RegionId) -> bool {
        let end = self.moving.stopped.get(&region).map_or(0, |stopped| stopped.log_end);
        region != self.me.region && self.catch_up.cursor(region) < end
    }

    /// Settles, if enough have stopped and their logs are here.
    fn settle(&mut self, fx: &mut Effects<Site>) -> bool {
        if self.placement.since(self.moving.settled).is_none() {
            return false;
        }
        let known: Regions = self.moving.stopped.keys().copied().filter(|region| !self.lags_behind_stop(*region)).collect();
        #[cfg(feature = "planted")]
        let known = match self.has_planted(super::planted::Planted::VotesUnsettled) {
            true => self.regions_before(),
            false => known,
        };
        if self.electorates_before().iter().any(|electorate| electorate.and(known).len() < electorate.majority()) {
            return false;
        }
        let read_upto = self.moving.stopped.values().map(|stopped| stopped.read_upto).max().unwrap_or(Timestamp::ZERO);
        let mut batch = Batch::new();
        self.raise_ceiling_in(&mut batch, read_upto);
        self.cohort.ceilings.raise_floor(read_upto);
        fx.count("placement.settled");
        self.moving.settled = self.placement.epoch;
        self.put_placement(&mut batch);
        fx.persist(batch);
        self.serve_waiting(fx);
        true
    }

    /// Settled without asking anybody: the rows were copied from a replica that is settled in `epoch`.
    pub(super) fn settle_by_copy(&mut self, epoch: u64, fx: &mut Effects<Site>) {
        self.moving.settled = epoch.min(self.placement.epoch);
        self.moving.copied = true;
        self.moving.adopted = true; // on to the epochs since then
        let mut batch = Batch::new();
        self.put_placement(&mut batch);
        fx.persist(batch);
        if self.is_settled() {
            self.serve_waiting(fx);
        }
    }

    /// Looks at `note` again once this site is settled.
    pub(super) fn wait_until_settled(&mut self, from: SiteId, note: Note, fx: &mut Effects<Site>) {
        fx.count("placement.waits_until_settled");
        if self.moving.waiting.len() < WAITING_MAX {
            self.moving.waiting.push((from, self.now, note));
        }
    }

    fn serve_waiting(&mut self, fx: &mut Effects<Site>) {
        for (from, _, note) in std::mem::take(&mut self.moving.waiting) {
            self.on_note(from, note, fx);
        }
        self.serve_stale_reads(fx);
    }

    pub(super) fn moving_tick(&mut self, fx: &mut Effects<Site>) {
        let limit = self.now.minus(self.config.read_timeout);
        self.moving.waiting.retain(|(_, since, _)| *since >= limit);
        if self.moving.settled < self.placement.epoch {
            self.ask_stopped(fx);
        }
        self.join_tick(fx);
    }
}
