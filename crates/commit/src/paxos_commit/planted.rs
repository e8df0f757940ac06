//! Planted bugs, for testing the tests: each breaks one rule, and the simulator must catch each. Compiled only with the feature
//! `planted`, which no product build has.

use super::site::Site;

/// A rule to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Planted {
    /// A region votes yes although a row is newer than the one read.
    ValidationSkipped,
    /// Locks are released at the vote, and not at the outcome.
    ReleasedAtVote,
    /// A restarted region does not take the locks of what it has voted for.
    LocksNotRestored,
}

impl Planted {
    /// Every planted bug.
    pub const ALL: [Planted; 3] = [Planted::ValidationSkipped, Planted::ReleasedAtVote, Planted::LocksNotRestored];
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
