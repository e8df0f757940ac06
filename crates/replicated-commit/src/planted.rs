//! The rules that a test may break, and what is done instead: the simulator must catch each, or a scenario or model written for it. In
//! the product all [rules](rhumb_core::rules) hold.

use super::message::Part;
use rhumb_core::work;

/// A way to break a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Planted {
    /// A refusal is told without being on disk: after a restart the region may vote yes.
    RefusalNotDurable,
    /// A vote does not check the shared locks, nor the versions, of rows read.
    SharedLockSkipped,
    /// A writer takes over the lock of a reader that is prepared, as it does that of one still reading.
    PreparedTakenOver,
    /// A vote neither checks nor keeps range locks.
    RangeLockSkipped,
    /// A commit that is learnt twice is applied again, as a new version.
    AppliedTwice,
    /// Somebody in doubt proposes commit at ballot 1, as plain Paxos would, to regions that refused.
    NaiveBallotOne,
    /// Somebody in doubt counts yes-votes that are provisional still, and does not make them firm.
    ProvisionalCounts,
    /// A gateway withdraws yes-votes that have become firm.
    FirmWithdrawn,
    /// A gateway that has withdrawn goes on counting provisional votes.
    GatewayCountsOn,
    /// A vote does not compare the commit timestamp with versions and reads.
    TimestampTooLowSkipped,
    /// A snapshot read does not wait for prepared transactions below its timestamp.
    SnapshotDoesNotWait,
    /// A commit that another gateway hands over is run each time that it arrives, in every incarnation.
    HandoffTakenAgain,
    /// What a gateway handed over in an earlier incarnation counts as awaited if it was made after the oldest that the present one awaits.
    EarlierHandoffTaken,
    /// A region says that it has stopped at once, and not what it is in doubt about.
    StopsInDoubt,
    /// A page of an earlier copy of all rows is taken for one of the present copy.
    EarlierCopyTaken,
    /// What others are in doubt about is not kept over a restart.
    DoubtsNotDurable,
    /// The vote of a lost region counts as a refusal.
    LostRefuses,
    /// The leader of a round goes on once a majority of the survivors has answered.
    MajorityOfSurvivors,
    /// A region that has promised a round still works the outcome out from votes.
    LateWordCounts,
    /// A region that has promised a round believes a claim that the attempt aborted.
    BoundBelieves,
    /// What a region has promised and accepted in rounds is gone after a restart.
    PromiseNotDurable,
    /// The leader of a round takes what survivors have accepted for nothing, and counts votes.
    AcceptedIgnored,
    /// Two attempts in each other's way both commit by assumption.
    RivalsBothCommit,
    /// Nobody looks whether what is committed by assumption had read the newest versions.
    StaleUnseen,
    /// A vote takes what is missing for what is yet to come, also where deletions have been collected.
    DeletionsForgotten,
    /// A read does not look whether its versions were collected while they were loaded.
    CollectedUnseen,
    /// Versions that were current when an attempt in doubt would have committed are collected like others.
    DoubtsCollected,
    /// What a region does not remember to have taken over from a log was not in it.
    TakenOverIsAbsent,
    /// What was overwritten, and collected, counts as never written.
    CoveredIsAbsent,
    /// A region votes in a new epoch before it knows the commits of the one before.
    VotesUnsettled,
    /// A read shows what the only site of a cluster is about to commit.
    CommittingShown,
    /// What the only site of a cluster is about to commit may be withdrawn.
    CommittingTakenBack,
    /// Readers of a commit need not reach beyond its timestamp.
    FloorsIgnored,
    /// Each lock that a transaction takes is compared with all that it has.
    LocksWalked,
    /// The read locks of gateways that are gone are never dropped.
    DeadLocksKept,
}

impl Planted {
    /// Every planted bug.
    pub const ALL: [Planted; 35] = [
        Planted::RefusalNotDurable,
        Planted::SharedLockSkipped,
        Planted::PreparedTakenOver,
        Planted::RangeLockSkipped,
        Planted::AppliedTwice,
        Planted::NaiveBallotOne,
        Planted::ProvisionalCounts,
        Planted::FirmWithdrawn,
        Planted::GatewayCountsOn,
        Planted::TimestampTooLowSkipped,
        Planted::SnapshotDoesNotWait,
        Planted::HandoffTakenAgain,
        Planted::EarlierHandoffTaken,
        Planted::StopsInDoubt,
        Planted::EarlierCopyTaken,
        Planted::DoubtsNotDurable,
        Planted::LostRefuses,
        Planted::MajorityOfSurvivors,
        Planted::LateWordCounts,
        Planted::BoundBelieves,
        Planted::PromiseNotDurable,
        Planted::AcceptedIgnored,
        Planted::RivalsBothCommit,
        Planted::StaleUnseen,
        Planted::DeletionsForgotten,
        Planted::CollectedUnseen,
        Planted::DoubtsCollected,
        Planted::TakenOverIsAbsent,
        Planted::CoveredIsAbsent,
        Planted::VotesUnsettled,
        Planted::CommittingShown,
        Planted::CommittingTakenBack,
        Planted::FloorsIgnored,
        Planted::LocksWalked,
        Planted::DeadLocksKept,
    ];
}

/// Compares each lock that `part` takes with all of them.
pub(crate) fn walk_locks(part: &Part) {
    for (key, _) in &part.writes {
        work::add(part.writes.iter().filter(|(other, _)| other <= key).count());
    }
}
