//! What a role sees of the other roles of its site. It changes nothing there: it tells them, as it tells other sites, or returns what is to be
//! done.

use super::catch_up::CatchUp;
use super::cohort::Cohort;
use super::coordinator::Coordinator;
use super::gateway::Gateway;
use super::message::Attempt;
use super::mover::Mover;
use rhumb_commit::votes::Vote;
use rhumb_core::RegionId;
use std::collections::BTreeMap;

/// What the coordinator sees.
pub(super) struct NearCoordinator<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) cohort: &'a Cohort,
    pub(super) catch_up: &'a CatchUp,
    pub(super) mover: &'a Mover,
}

/// What the cohort sees.
pub(super) struct NearCohort<'a> {
    pub(super) coordinator: &'a Coordinator,
    pub(super) catch_up: &'a CatchUp,
    pub(super) mover: &'a Mover,
}

/// What catch-up sees.
pub(super) struct NearCatchUp<'a> {
    pub(super) cohort: &'a Cohort,
    pub(super) mover: &'a Mover,
}

/// What the mover sees.
pub(super) struct NearMover<'a> {
    pub(super) cohort: &'a Cohort,
    pub(super) catch_up: &'a CatchUp,
}

impl NearCoordinator<'_> {
    /// The final votes that this site has heard as gateway of the attempt, or as cohort.
    pub(super) fn votes_heard(&self, attempt: &Attempt) -> BTreeMap<RegionId, Vote> {
        let mut votes = self.gateway.votes(attempt);
        votes.extend(self.cohort.votes_heard(attempt));
        votes
    }
}
