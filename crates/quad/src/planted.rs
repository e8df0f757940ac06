//! The rules that a test may break: the simulator must catch each. In the product all [rules](rhumb_core::rules) hold.

/// A way to break a rule.
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
    /// A message of an older epoch counts, and a sealed site goes on.
    OldEpochServed,
    /// Who is to hold all that was committed says so without having got it.
    ActivatedUnreconciled,
    /// A sealed site does not report commits that are not settled.
    CommitsNotCarried,
    /// What the commits wrote that a configuration names is not told with the rows.
    CarriedNotFetched,
    /// A commit is shown to others as soon as it stands at one site.
    ShownUnsettled,
    /// A site claims to hold all that came before an epoch for which it was not reconciled.
    PassedOverClaimed,
    /// A copy counts that is older than what its source has listed.
    OldCopiesTaken,
    /// An acceptor accepts in a ballot below the one that it has promised.
    PromiseForgotten,
    /// A mover proposes what it likes, whatever was accepted before.
    AcceptedIgnored,
    /// A configuration counts as decided once one site has accepted it.
    MinorityDecides,
    /// Any number of sites may be declared lost, and the rest goes on.
    LossUnbounded,
    /// Questions are numbered anew in each incarnation.
    QuestionsNamedAnew,
    /// What a source has told for one change counts as told for the next.
    PullsKeptOverEpochs,
    /// Each lock that a transaction asks for is compared with all that it has.
    LocksWalked,
}

impl Planted {
    /// Every planted bug.
    pub const ALL: [Planted; 20] = [
        Planted::AnsweredAfterFirstRound,
        Planted::FirstForNewest,
        Planted::SessionsIgnored,
        Planted::ClocksIgnored,
        Planted::DoubtEndsInAbort,
        Planted::QuorumTooSmall,
        Planted::OldEpochServed,
        Planted::ActivatedUnreconciled,
        Planted::CommitsNotCarried,
        Planted::CarriedNotFetched,
        Planted::ShownUnsettled,
        Planted::PassedOverClaimed,
        Planted::OldCopiesTaken,
        Planted::PromiseForgotten,
        Planted::AcceptedIgnored,
        Planted::MinorityDecides,
        Planted::LossUnbounded,
        Planted::QuestionsNamedAnew,
        Planted::PullsKeptOverEpochs,
        Planted::LocksWalked,
    ];
}
