//! What no placement can go below for a client region: its latency if all replicas stood where they serve it best.
//!
//! A majority of 2f + 1 completes no sooner than the (f+1)-th nearest of all candidates, whichever are chosen; a farthest
//! member is no nearer than the (2f+1)-th. Every term of the model is bounded by itself, so the floor is a lower bound and
//! not always attained.

use crate::model::{Protocol, Reads, TwoPhase};
use crate::problem::Problem;

/// Lower bounds of round trips from one region, in microseconds.
#[derive(Clone, Copy)]
struct Nearest {
    quorum_us: u64,
    farthest_us: u64,
}

/// The floor of every client region in the order of [`Problem::clients`], in nanoseconds. It respects the constraints on
/// single regions, no others.
pub fn floors_ns(problem: &Problem) -> Vec<u64> {
    let model = problem.model();
    let coordinators: Vec<(usize, Nearest)> = problem.candidates().iter().map(|&region| (region, nearest(problem, region))).collect();
    let matrix = problem.matrix();
    problem
        .clients()
        .iter()
        .map(|client| {
            let here = client.region;
            let own = nearest(problem, here);
            let hop = |to: usize| u64::from(matrix.hop_us(here, to));
            let through = |cost: &dyn Fn(u64, Nearest) -> u64| {
                coordinators.iter().map(|&(region, nearest)| cost(hop(region), nearest)).min().unwrap_or(0)
            };
            let nearest_hop_us = coordinators.iter().map(|&(region, _)| hop(region)).min().unwrap_or(0);
            let one_round_us = || through(&|hop, nearest| hop + nearest.quorum_us);
            let commit_ns = match model.protocol {
                Protocol::ReplicatedCommit | Protocol::TwoRounds => {
                    let rounds = model.protocol.rounds();
                    let own_us = rounds * own.quorum_us;
                    1_000 * if model.handoff { own_us.min(through(&|hop, nearest| hop + rounds * nearest.quorum_us)) } else { own_us }
                }
                Protocol::OneLeader => 1_000 * one_round_us(),
                Protocol::SpreadLeaders { multi_partition_milli, two_phase } => {
                    let milli = u64::from(multi_partition_milli);
                    let spanning_us = through(&|hop, nearest| match two_phase {
                        TwoPhase::OwnLeader | TwoPhase::BestLeader => hop + 2 * nearest.farthest_us + nearest.quorum_us,
                        // Half the hop there is certain; the way back may be by a leader right here.
                        TwoPhase::LocalParticipantTells => hop / 2 + nearest.farthest_us + nearest.quorum_us,
                    });
                    (1_000 - milli) * one_round_us() + milli * spanning_us
                }
            };
            let read_us = match (model.reads, model.protocol) {
                (Reads::Passive, _) => return commit_ns,
                (Reads::Majority, Protocol::ReplicatedCommit | Protocol::TwoRounds) => own.quorum_us,
                (Reads::Majority | Reads::Optimistic, _) => nearest_hop_us,
            };
            commit_ns + client.reads_milli * (read_us + u64::from(model.read_processing_us))
        })
        .collect()
}

/// What the objective cannot go below, by the floors alone.
pub fn floor(problem: &Problem) -> u64 {
    problem.objective().value(&floors_ns(problem), problem.weights(), &mut Vec::new())
}

/// The bounds of `region`, over all candidates.
fn nearest(problem: &Problem, region: usize) -> Nearest {
    let from = problem.matrix().from(region);
    let mut quorum: Vec<u32> = problem.candidates().iter().map(|&to| from[to]).collect();
    let mut others: Vec<u32> = problem.candidates().iter().filter(|&&to| to != region).map(|&to| from[to]).collect();
    let majority = problem.replicas() / 2 + 1;
    let far = problem.replicas() - 1;
    let nth = |values: &mut Vec<u32>, count: usize| if count == 0 { 0 } else { u64::from(*values.select_nth_unstable(count - 1).1) };
    Nearest { quorum_us: nth(&mut quorum, majority), farthest_us: nth(&mut others, far) }
}
