//! What the coordinator, and the cohort, see of the other roles of their site. They change nothing there: they tell them, as they tell other
//! sites, or return what is to be done.

use super::catch_up::CatchUp;
use super::cohort::Cohort;
use super::coordinator::Coordinator;
use super::gateway::Gateway;
use super::message::Attempt;
use super::moving::Moving;
use rhumb_commit::votes::Vote;
use rhumb_core::RegionId;
use std::collections::BTreeMap;

/// What the coordinator sees.
pub(super) struct NearCoordinator<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) cohort: &'a Cohort,
    pub(super) catch_up: &'a CatchUp,
    pub(super) moving: &'a Moving,
}

/// What the cohort sees.
pub(super) struct NearCohort<'a> {
    pub(super) coordinator: &'a Coordinator,
    pub(super) catch_up: &'a CatchUp,
    pub(super) moving: &'a Moving,
}

impl NearCoordinator<'_> {
    /// The final votes that this site has heard as gateway of the attempt, or as cohort.
    pub(super) fn votes_heard(&self, attempt: &Attempt) -> BTreeMap<RegionId, Vote> {
        let mut votes = self.gateway.votes(attempt);
        let heard = self.cohort.entries.get(attempt).into_iter().flat_map(|entry| entry.tally.final_votes());
        votes.extend(heard.map(|(region, vote)| (region, vote.clone())));
        votes
    }
}
