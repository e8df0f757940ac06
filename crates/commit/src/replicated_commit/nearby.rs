//! What a coordinator sees of the other roles of its site. It changes nothing there: it tells them, as it tells other sites.

use super::catch_up::CatchUp;
use super::cohort::Cohort;
use super::gateway::Gateway;
use super::message::Attempt;
use super::moving::Moving;
use crate::votes::Vote;
use rhumb_core::RegionId;
use std::collections::BTreeMap;

/// The roles beside the coordinator.
pub(super) struct Nearby<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) cohort: &'a Cohort,
    pub(super) catch_up: &'a CatchUp,
    pub(super) moving: &'a Moving,
}

impl Nearby<'_> {
    /// The final votes that this site has heard as gateway of the attempt, or as cohort.
    pub(super) fn votes_heard(&self, attempt: &Attempt) -> BTreeMap<RegionId, Vote> {
        let mut votes = self.gateway.votes(attempt);
        let heard = self.cohort.entries.get(attempt).into_iter().flat_map(|entry| entry.tally.final_votes());
        votes.extend(heard.map(|(region, vote)| (region, vote.clone())));
        votes
    }
}
