//! How long a transaction takes, by protocol: what the planner knows of round trips, reads and coordinators.
//!
//! ```text
//!   L(c) = reads · (hop(c, read coordinator) + P)  +  hop(c, commit coordinator) + rounds · q(commit coordinator)
//! ```
//!
//! `q(r)` is the round trip from region r to that member of the placement which completes r's majority, r itself included
//! if it is a member. `hop` is the round trip to the coordinator, nothing within a region. (GPlacer, EDBT 2018, sections 2
//! and 6.) Handing a commit over is one hop: no coordinator hands it further.
//!
//! Latencies are integers of nanoseconds. Times come in microseconds, average counts of reads and shares of transactions
//! in thousandths, so nothing is rounded but one case: a share of one-way trips may end in half a nanosecond, which is dropped.

/// The protocol, its reads, and whether commits may be handed to another coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// How transactions commit.
    pub protocol: Protocol,
    /// Where reads go.
    pub reads: Reads,
    /// Whether a region may hand its commits to a replica that ends them sooner. Without it a region coordinates its own,
    /// whether it holds a replica or not. With [`Protocol::SpreadLeaders`]: whether a region's partition is led by the
    /// replica that commits soonest for it instead of by the nearest. [`Protocol::OneLeader`] has no choice.
    pub handoff: bool,
    /// What serving one read takes at its coordinator beyond messages over the network, in microseconds.
    pub read_processing_us: u32,
}

/// How transactions commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// One round to a majority: hop + q.
    ReplicatedCommit,
    /// Two rounds, a vote and its acknowledged application: hop + 2 q.
    TwoRounds,
    /// All partitions are led by one member, that which is best for the objective: hop + q, and two-phase commit among
    /// leaders in one place costs nothing.
    OneLeader,
    /// Each region's own partition is led by a member near it. A transaction that stays in the partition takes hop + q of
    /// its leader; one that spans partitions takes two-phase commit among the leaders at all members besides.
    SpreadLeaders {
        /// How many transactions of a thousand span partitions; 1,000 at the most.
        multi_partition_milli: u32,
        /// Who coordinates those.
        two_phase: TwoPhase,
    },
}

/// Who coordinates two-phase commit among leaders, and who tells the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwoPhase {
    /// The leader of the client's own partition, which answers after two rounds to the farthest leader.
    OwnLeader,
    /// Whichever leader ends soonest, the hop to it included.
    BestLeader,
    /// As [`TwoPhase::BestLeader`], and where the coordinator is another than the leader of the client's own partition,
    /// that leader tells the client as soon as it is told the decision: after one round, not two. (GPlacer, section 4.1.)
    LocalParticipantTells,
}

/// Where reads go, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// What is safe without validation: a majority, asked by the region itself; under a protocol with leaders, the leader.
    Majority,
    /// The nearest replica, validated at commit.
    Optimistic,
    /// A passive replica in the client's own region, validated at commit: no time at all.
    Passive,
}

impl Protocol {
    /// Whether partitions have leaders.
    pub const fn has_leaders(self) -> bool {
        matches!(self, Protocol::OneLeader | Protocol::SpreadLeaders { .. })
    }

    /// The rounds to a majority that a commit takes.
    pub const fn rounds(self) -> u64 {
        match self {
            Protocol::TwoRounds => 2,
            Protocol::ReplicatedCommit | Protocol::OneLeader | Protocol::SpreadLeaders { .. } => 1,
        }
    }
}
