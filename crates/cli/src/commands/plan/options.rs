//! What the options of `rhumb plan` mean to the planner.

use clap::ValueEnum;
use rhumb_plan::decimal::decimal;
use rhumb_plan::{Model, Objective, Protocol, Reads, TwoPhase};

/// How transactions commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProtocolName {
    /// One round to a majority: what Rhumb runs.
    ReplicatedCommit,
    /// Two rounds to a majority: a vote, then its acknowledged application.
    TwoRound,
    /// All partitions are led by one replica; two-phase commit among them costs nothing.
    OneLeader,
    /// Each region's partition is led by a replica near it; two-phase commit where a transaction spans partitions.
    SpreadLeaders,
}

/// Where reads go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReadsName {
    /// A majority, or the leader; nothing to validate.
    Majority,
    /// The nearest replica, validated at commit.
    Optimistic,
    /// A passive replica in the client's own region, validated at commit.
    Passive,
}

/// Who coordinates transactions across partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TwoPhaseName {
    /// The leader of the client's own partition.
    OwnLeader,
    /// The leader that ends soonest.
    BestLeader,
    /// The leader that ends soonest; that of the client's own partition tells the client once it hears the decision.
    LocalParticipant,
}

/// How to find a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Branch and bound: the best there is, with a proof.
    Exact,
    /// One placement after another.
    Exhaustive,
    /// One replica after another, each where it helps most.
    Greedy,
    /// Weights that flow to where majorities are.
    Weighted,
}

impl From<ReadsName> for Reads {
    fn from(name: ReadsName) -> Reads {
        match name {
            ReadsName::Majority => Reads::Majority,
            ReadsName::Optimistic => Reads::Optimistic,
            ReadsName::Passive => Reads::Passive,
        }
    }
}

impl From<TwoPhaseName> for TwoPhase {
    fn from(name: TwoPhaseName) -> TwoPhase {
        match name {
            TwoPhaseName::OwnLeader => TwoPhase::OwnLeader,
            TwoPhaseName::BestLeader => TwoPhase::BestLeader,
            TwoPhaseName::LocalParticipant => TwoPhase::LocalParticipantTells,
        }
    }
}

/// The model, or why the options for it do not go together.
pub fn model(args: &super::Args) -> Result<Model, String> {
    let own = matches!(args.protocol, ProtocolName::ReplicatedCommit | ProtocolName::TwoRound);
    if args.from.is_some() && !own {
        return Err("--from goes with --protocol replicated-commit and two-round: no running cluster has leaders".to_owned());
    }
    // Of a running cluster: what a session does outside of BEGIN.
    let reads = args.reads.unwrap_or(if args.from.is_some() { ReadsName::Optimistic } else { ReadsName::Majority });
    let spread = args.protocol == ProtocolName::SpreadLeaders;
    if !spread && (args.multi_partition.is_some() || args.two_phase.is_some()) {
        return Err("--multi-partition and --two-phase go with --protocol spread-leaders".to_owned());
    }
    if args.handoff && args.protocol == ProtocolName::OneLeader {
        return Err("--handoff does not go with --protocol one-leader: the leader coordinates all commits".to_owned());
    }
    let protocol = match args.protocol {
        ProtocolName::ReplicatedCommit => Protocol::ReplicatedCommit,
        ProtocolName::TwoRound => Protocol::TwoRounds,
        ProtocolName::OneLeader => Protocol::OneLeader,
        ProtocolName::SpreadLeaders => Protocol::SpreadLeaders {
            multi_partition_milli: args.multi_partition.unwrap_or(0),
            two_phase: args.two_phase.unwrap_or(TwoPhaseName::OwnLeader).into(),
        },
    };
    Ok(Model { protocol, reads: reads.into(), handoff: args.handoff, read_processing_us: 0 })
}

/// `mean`, `region-mean`, `worst`, or a percentile such as `p95`.
pub fn objective(text: &str) -> Result<Objective, String> {
    match text {
        "mean" => Ok(Objective::Mean),
        "region-mean" => Ok(Objective::RegionMean),
        "worst" => Ok(Objective::Worst),
        _ => {
            let percentile = text.strip_prefix('p').and_then(|percent| decimal(percent, 1)).and_then(|milli| u32::try_from(milli).ok());
            let percentile = percentile.filter(|milli| (1..=1_000).contains(milli)).map(Objective::Percentile);
            percentile.ok_or_else(|| "expected `mean`, `region-mean`, `worst`, or a percentile such as `p95` or `p99.9`".to_owned())
        }
    }
}

/// A share of transactions in percent, as thousandths.
pub fn percent(text: &str) -> Result<u32, String> {
    let milli = decimal(text, 1).and_then(|milli| u32::try_from(milli).ok()).filter(|&milli| milli <= 1_000);
    milli.ok_or_else(|| "expected a percentage from 0 to 100 with at most one decimal".to_owned())
}

/// A count of reads, in thousandths.
pub fn reads(text: &str) -> Result<u64, String> {
    decimal(text, 3).ok_or_else(|| "expected a number of reads with at most three decimals".to_owned())
}

/// A sum in dollars, in millionths.
pub fn dollars(text: &str) -> Result<u64, String> {
    decimal(text, 6).ok_or_else(|| "expected dollars with at most six decimals".to_owned())
}

/// At most so many replicas in a group of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtMost {
    /// How many.
    pub limit: u32,
    /// `provider`, `continent`, or a column of the table of places.
    pub kind: String,
}

/// `K/KIND`.
pub fn at_most(text: &str) -> Result<AtMost, String> {
    let parts = text.split_once('/').and_then(|(limit, kind)| Some((limit.parse().ok()?, kind)));
    match parts.filter(|(_, kind)| !kind.is_empty()) {
        Some((limit, kind)) => Ok(AtMost { limit, kind: kind.to_owned() }),
        None => Err("expected K/KIND, such as 1/provider or 2/continent".to_owned()),
    }
}
