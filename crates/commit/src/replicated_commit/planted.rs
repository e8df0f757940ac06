//! Planted bugs, for testing the tests: each breaks one rule of the protocol, and the simulator must catch each.
//! Compiled only with the feature `planted`, which no product build has.

use super::message::{Meta, Note};
use super::site::Site;
use crate::votes::{Refusal, Vote};
use rhumb_core::{Batch, Effects};

/// A rule to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Planted {
    /// A refusal is told without being on disk: after a restart the region may vote yes.
    RefusalNotDurable,
    /// A vote does not check the shared locks, nor the versions, of rows read.
    SharedLockSkipped,
    /// A vote neither checks nor keeps range locks.
    RangeLockSkipped,
    /// A commit that is learnt twice is applied again, as a new version.
    AppliedTwice,
    /// Somebody in doubt proposes commit at ballot 1, as plain Paxos would, to regions that refused.
    NaiveBallotOne,
    /// A vote does not compare the commit timestamp with versions and reads.
    TooOldSkipped,
    /// A snapshot read does not wait for prepared transactions below its timestamp.
    SnapshotDoesNotWait,
}

impl Planted {
    /// Every planted bug.
    pub const ALL: [Planted; 7] = [
        Planted::RefusalNotDurable,
        Planted::SharedLockSkipped,
        Planted::RangeLockSkipped,
        Planted::AppliedTwice,
        Planted::NaiveBallotOne,
        Planted::TooOldSkipped,
        Planted::SnapshotDoesNotWait,
    ];
}

impl Site {
    /// The same site with a bug in it.
    pub fn with_planted(mut self, bug: Option<Planted>) -> Site {
        self.planted = bug;
        self
    }

    pub(super) fn has_planted(&self, bug: Planted) -> bool {
        self.planted == Some(bug)
    }

    /// Ballot 1 as plain Paxos runs it: having heard a majority, propose the value that one of them accepted.
    pub(super) fn repropose(&mut self, meta: Meta, fx: &mut Effects<Site>) {
        for site in self.topology.replicas(meta.coordinator) {
            self.send(site, Note::Repropose { meta: meta.clone() }, fx);
        }
    }

    /// Accepts commit at ballot 1, whatever was voted at ballot 0.
    pub(super) fn on_repropose(&mut self, meta: Meta, fx: &mut Effects<Site>) {
        let attempt = meta.attempt;
        let refused = self
            .coordinator
            .ballots
            .get(&attempt)
            .is_some_and(|ballot| matches!(&ballot.vote, Some(Vote::No(refusal)) if *refusal != Refusal::Superseded));
        if refused
            && let Some(ballot) = self.coordinator.ballots.get_mut(&attempt)
            && ballot.outcome.is_none()
        {
            ballot.vote = None;
            self.vote(attempt, Vote::Yes, Batch::new(), fx);
        }
    }
}
