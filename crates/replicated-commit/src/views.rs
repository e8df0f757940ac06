//! What the roles of a site show to each other, and hand each other. A role changes nothing of another: it tells it, as it tells other sites, or
//! returns what is to be done.

use super::context::Shared;
use super::message::{Attempt, Doubt, Meta, Part, PreparedRecord};
use super::trace::Dropped;
use rhumb_commit::placement::Regions;
use rhumb_commit::votes::{Decision, Refusal, Vote};
use rhumb_core::{Key, RegionId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What the cohort of a site shows to its other roles.
pub(super) trait CohortView {
    /// Deletions up to here may be gone.
    fn collected(&self) -> Timestamp;

    /// Up to where versions and deletions may be gone.
    fn dropped(&self) -> Dropped;

    /// True if `attempt` is certainly not applied here: it is prepared, or carried and not among the rows.
    fn lacks(&self, attempt: &Attempt) -> bool;

    /// True if `attempt` was applied here, and that is not forgotten.
    fn has_applied(&self, attempt: &Attempt) -> bool;

    /// True if a later attempt of the same transaction is applied here.
    fn has_applied_later(&self, attempt: &Attempt) -> bool;

    /// True if `attempt` holds locks here.
    fn has_entry(&self, attempt: &Attempt) -> bool;

    /// The highest commit timestamp prepared or applied here.
    fn highest(&self) -> Timestamp;

    /// The highest commit timestamp, or floor, applied here.
    fn highest_applied(&self) -> Timestamp;

    /// True if `attempt` is left to its coordinator, another site.
    fn is_bound(&self, attempt: &Attempt) -> bool;

    /// Where the log ends.
    fn log_end(&self) -> u64;

    /// Nothing above it was read here.
    fn read_upto(&self) -> Timestamp;

    /// The final votes on `attempt` that were heard here.
    fn votes_heard(&self, attempt: &Attempt) -> Vec<(RegionId, Vote)>;

    /// The lowest commit timestamp that is promised in an epoch before this one.
    fn lowest_promised_before(&self, epoch: u64) -> Option<Timestamp>;

    /// The attempts that are prepared here, or carried.
    fn promised(&self) -> Box<dyn Iterator<Item = Promised<'_>> + '_>;

    /// What `attempt` is, and has read and writes, if it is prepared here, or carried.
    fn promised_entry(&self, attempt: &Attempt) -> Option<Promised<'_>>;

    /// The attempts that are prepared here, or carried, and write `key`.
    fn promised_to_write(&self, key: &Key) -> Vec<Promised<'_>>;

    /// True if this replica is in doubt about an attempt of an epoch before the present one.
    fn has_doubts(&self, cx: &Shared) -> bool;

    /// A page of them, as told to others. What they have read goes along: it lies below the timestamp above which the new epoch begins, and
    /// needs no lock, but whoever is to assume that they committed has to look at it.
    fn page_of_doubts(&self, cx: &Shared, after: Option<Attempt>) -> (Vec<Doubt>, bool);
}

/// What the coordinator shows.
pub(super) trait CoordinatorView {
    /// No attempt made at or below it is prepared any more, nor remembered as applied.
    fn forget_floor(&self, cx: &Shared) -> Timestamp;

    /// True if this region voted yes on `attempt` and has not heard that it aborted.
    fn may_commit(&self, attempt: &Attempt) -> bool;

    /// The regions of the electorate that are lost, as the placement says, an operator who is about to declare them so, or a round.
    fn lost_of(&self, cx: &Shared, meta: &Meta) -> Regions;
}

/// What the gateway shows.
pub(super) trait GatewayView {
    /// The outcome, if it was concluded here.
    fn decided(&self, attempt: &Attempt) -> Option<Decision>;

    /// The final votes that the gateway at this site has seen, if it is deciding `attempt`.
    fn votes(&self, attempt: &Attempt) -> BTreeMap<RegionId, Vote>;
}

/// What catch-up shows.
pub(super) trait CatchUpView {
    /// How far the log of the peer in `region` is taken over.
    fn cursor(&self, region: RegionId) -> u64;

    /// May what is written come next, if it is a placement? Whom it makes active must be settled in this epoch; whom it declares lost does
    /// not vote for it.
    fn check_placement(&self, cx: &Shared, part: &Part) -> Result<(), Refusal>;

    /// True if the log of a region that has stopped is not taken over to its end.
    fn lags_behind_stop(&self, mover: &dyn MoverView, region: RegionId, cx: &Shared) -> bool;

    /// Every commit at or below it is applied here. What the voters of this epoch promise says nothing of an attempt of an earlier one that is
    /// in doubt here: they may have its rows by a log or a copy, and not in the logs that are read here.
    fn safe(&self, cohort: &dyn CohortView, mover: &dyn MoverView, cx: &Shared) -> Timestamp;
}

/// What the mover shows.
pub(super) trait MoverView {
    /// True if the rows are all here.
    fn has_rows(&self) -> bool;

    /// True if this site may vote, promise and be read in the present epoch.
    fn is_settled(&self, cx: &Shared) -> bool;

    /// The epoch that this site is settled in, zero as long as not all rows are here.
    fn settled(&self) -> u64;

    /// The epoch from which on the log of this site has all that it voted for.
    fn since(&self) -> u64;

    /// What the replica in `region` has said since it stopped, if that is all.
    fn stop_of(&self, region: RegionId) -> Option<&Stop>;

    /// What those who have stopped, and said all, have said.
    fn stops(&self) -> Box<dyn Iterator<Item = (RegionId, &Stop)> + '_>;

    /// Where the log of a region ended that has stopped.
    fn stopped_log_end(&self, region: RegionId) -> u64;
}

/// An attempt that is prepared at a site, or carried there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promised<'a> {
    pub(super) meta: &'a Meta,
    pub(super) part: &'a Part,
}

/// What a replica has said when it had stopped.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    pub(super) settled: u64,
    pub(super) since: u64,
    pub(super) log_end: u64,
    pub(super) read_upto: Timestamp,
    pub(super) doubts: Vec<Doubt>,
    /// It has said all that it is in doubt about.
    pub(super) whole: bool,
}

impl Stop {
    /// The last attempt of which it has said that it is in doubt about it.
    pub(super) fn last(&self) -> Option<Attempt> {
        self.doubts.last().map(|doubt| doubt.record.meta.attempt)
    }
}

/// All rows of another replica are here.
#[derive(Debug)]
pub(super) struct Copied {
    /// They hold every commit of the epochs before this one.
    pub(super) epoch: u64,
    /// The newest version copied.
    pub(super) newest: Timestamp,
    /// No row copied has a floor above it.
    pub(super) highest: Timestamp,
    /// Deletions up to here may be gone.
    pub(super) collected: Timestamp,
    /// What that replica is in doubt about.
    pub(super) doubts: Vec<PreparedRecord>,
}

impl Copied {
    /// The attempts that that replica is in doubt about.
    pub(super) fn attempts(&self) -> BTreeSet<Attempt> {
        self.doubts.iter().map(|doubt| doubt.meta.attempt).collect()
    }
}

/// What the coordinator sees.
pub(super) struct NearCoordinator<'a> {
    pub(super) gateway: &'a dyn GatewayView,
    pub(super) cohort: &'a dyn CohortView,
    pub(super) catch_up: &'a dyn CatchUpView,
    pub(super) mover: &'a dyn MoverView,
}

/// What the cohort sees.
pub(super) struct NearCohort<'a> {
    pub(super) coordinator: &'a dyn CoordinatorView,
    pub(super) catch_up: &'a dyn CatchUpView,
    pub(super) mover: &'a dyn MoverView,
}

/// What catch-up sees.
pub(super) struct NearCatchUp<'a> {
    pub(super) cohort: &'a dyn CohortView,
    pub(super) mover: &'a dyn MoverView,
}

/// What the mover sees.
pub(super) struct NearMover<'a> {
    pub(super) cohort: &'a dyn CohortView,
    pub(super) catch_up: &'a dyn CatchUpView,
}

impl NearCoordinator<'_> {
    /// The final votes that this site has heard as gateway of the attempt, or as cohort.
    pub(super) fn votes_heard(&self, attempt: &Attempt) -> BTreeMap<RegionId, Vote> {
        let mut votes = self.gateway.votes(attempt);
        votes.extend(self.cohort.votes_heard(attempt));
        votes
    }
}
