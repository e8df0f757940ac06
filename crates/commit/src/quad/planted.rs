//! Planted bugs, for testing the tests: each breaks one rule of the protocol, and the simulator must catch each. Compiled only with the
//! feature `planted`, which no product build has.

use super::site::Site;

/// A rule to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Planted {
    /// A client is told "committed" once all are prepared, before the decision is on disk anywhere.
    AnsweredAfterFirstRound,
    /// A read takes what one site of its quorum says, not what the newest says.
    FirstForNewest,
    /// A transaction may prepare in another session than that in which it read.
    SessionsIgnored,
    /// A commit's timestamp is the gateway's own clock, not above the clocks of all who prepared.
    ClocksIgnored,
    /// Whoever is prepared for long aborts without asking.
    DoubtEndsInAbort,
    /// A write leaves out one site of its quorum.
    QuorumTooSmall,
}

impl Planted {
    /// Every planted bug.
    pub const ALL: [Planted; 6] = [
        Planted::AnsweredAfterFirstRound,
        Planted::FirstForNewest,
        Planted::SessionsIgnored,
        Planted::ClocksIgnored,
        Planted::DoubtEndsInAbort,
        Planted::QuorumTooSmall,
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
}
