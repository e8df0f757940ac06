//! The rules that a test may break: the simulator must catch each. In the product all [rules](rhumb_core::rules) hold.

/// A way to break a rule.
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
