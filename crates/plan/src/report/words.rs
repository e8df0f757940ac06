//! What models and objectives are called.

use crate::model::{Protocol, Reads, TwoPhase};
use crate::objective::Objective;

pub(super) fn objective_name(objective: Objective) -> String {
    match objective {
        Objective::Mean => "mean".to_owned(),
        Objective::RegionMean => "region-mean".to_owned(),
        Objective::Worst => "worst".to_owned(),
        Objective::Percentile(milli) => format!("p{}", f64::from(milli) / 10.0),
    }
}

pub(super) fn protocol_name(protocol: Protocol) -> String {
    match protocol {
        Protocol::ReplicatedCommit => "replicated-commit".to_owned(),
        Protocol::TwoRounds => "two-round".to_owned(),
        Protocol::OneLeader => "one-leader".to_owned(),
        Protocol::SpreadLeaders { multi_partition_milli, two_phase } => {
            let coordinator = match two_phase {
                TwoPhase::OwnLeader => "own-leader",
                TwoPhase::BestLeader => "best-leader",
                TwoPhase::LocalParticipantTells => "local-participant",
            };
            format!("spread-leaders, {} % multi-partition by {coordinator}", f64::from(multi_partition_milli) / 10.0)
        }
    }
}

pub(super) const fn reads_name(reads: Reads) -> &'static str {
    match reads {
        Reads::Majority => "majority",
        Reads::Optimistic => "optimistic",
        Reads::Passive => "passive",
    }
}
