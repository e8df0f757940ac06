//! The rules that a test may break: a model, a scenario or the simulator must catch each. In the product all [rules](rhumb_core::rules)
//! hold.

/// A way to break a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Planted {
    /// A replica votes for a candidate whose log lacks entries that it has itself.
    ShortLogElected,
    /// A replica does not write down which ballot it has promised.
    PromiseForgotten,
    /// A leader takes an entry of an earlier ballot for chosen as soon as a majority holds it.
    OldBallotCounted,
    /// A replica that restarts votes at once, although the leader that it last heard may hold a lease.
    LeaseNotWaitedOut,
    /// A leader takes its lease for endless.
    LeaseEndless,
    /// A new leader commits below timestamps at which the one before has served snapshots.
    CeilingForgotten,
    /// A new leader does not take the locks of what is prepared.
    PreparedNotRestored,
    /// A leader does not look whether a transaction that prepares still has its locks.
    LocksNotChecked,
    /// What is forgotten is said to be aborted.
    ForgottenIsAborted,
    /// A decision to commit is dropped before all groups have applied it.
    DecisionDropped,
}

impl Planted {
    /// Every planted bug.
    pub const ALL: [Planted; 10] = [
        Planted::ShortLogElected,
        Planted::PromiseForgotten,
        Planted::OldBallotCounted,
        Planted::LeaseNotWaitedOut,
        Planted::LeaseEndless,
        Planted::CeilingForgotten,
        Planted::PreparedNotRestored,
        Planted::LocksNotChecked,
        Planted::ForgottenIsAborted,
        Planted::DecisionDropped,
    ];
}
