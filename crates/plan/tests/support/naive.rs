//! The latency model once more, as its definition reads: sorted lists, every alternative tried, nothing shared with the
//! planner's own arithmetic. All in halves of a nanosecond.

use rhumb_plan::{Objective, Problem, Protocol, Reads, TwoPhase};

/// The round trip from `from` to the member that completes its majority.
fn quorum(problem: &Problem, replicas: &[usize], from: usize) -> u64 {
    let mut trips: Vec<u64> = replicas.iter().map(|&replica| u64::from(problem.matrix().rtt_us(from, replica))).collect();
    trips.sort();
    trips[replicas.len() / 2]
}

fn hop(problem: &Problem, from: usize, to: usize) -> u64 {
    if from == to { 0 } else { u64::from(problem.matrix().rtt_us(from, to)) }
}

/// A client region's latency in nanoseconds, and its read and commit coordinators: of equally good ones that in the region
/// itself, then the first.
pub type Served = (u64, usize, usize);

/// How all client regions are served, given who leads everything if anybody does.
fn serve(problem: &Problem, replicas: &[usize], leader: usize) -> Vec<Served> {
    let model = problem.model();
    let hop = |from, to| hop(problem, from, to);
    let quorum = |from| quorum(problem, replicas, from);
    let served = |client: &rhumb_plan::Client| {
        let here = client.region;
        let (mut read_us, mut reads_at) = (quorum(here), here);
        let commits_at;
        let commit_half_ns = match model.protocol {
            Protocol::ReplicatedCommit | Protocol::TwoRounds => {
                let rounds = if model.protocol == Protocol::TwoRounds { 2 } else { 1 };
                let mut alternatives = vec![(rounds * quorum(here), false, here)];
                if model.handoff {
                    alternatives.extend(replicas.iter().map(|&replica| (hop(here, replica) + rounds * quorum(replica), true, replica)));
                }
                let (commit_us, _, coordinator) = alternatives.into_iter().min().expect("itself");
                commits_at = coordinator;
                2_000 * commit_us
            }
            Protocol::OneLeader => {
                read_us = hop(here, leader);
                reads_at = leader;
                commits_at = leader;
                2_000 * (hop(here, leader) + quorum(leader))
            }
            Protocol::SpreadLeaders { multi_partition_milli, two_phase } => {
                let mut order: Vec<(u64, bool, usize)> = replicas
                    .iter()
                    .map(|&replica| (hop(here, replica) + if model.handoff { quorum(replica) } else { 0 }, replica != here, replica))
                    .collect();
                order.sort();
                let home = order[0].2;
                read_us = hop(here, home);
                reads_at = home;
                commits_at = home;
                let farthest = |from: usize| replicas.iter().filter(|&&to| to != from).map(|&to| hop(from, to)).max().unwrap_or(0);
                let spanning_half_us = |coordinator: usize| match two_phase {
                    TwoPhase::LocalParticipantTells if coordinator != home => {
                        hop(here, coordinator)
                            + 2 * farthest(coordinator)
                            + hop(coordinator, home)
                            + hop(home, here)
                            + 2 * quorum(coordinator)
                    }
                    _ => 2 * (hop(here, coordinator) + 2 * farthest(coordinator) + quorum(coordinator)),
                };
                let spanning = match two_phase {
                    TwoPhase::OwnLeader => spanning_half_us(home),
                    _ => replicas.iter().map(|&coordinator| spanning_half_us(coordinator)).min().expect("a replica"),
                };
                let milli = u64::from(multi_partition_milli);
                2 * (1_000 - milli) * (hop(here, home) + quorum(home)) + milli * spanning
            }
        };
        let read_half_ns = match model.reads {
            Reads::Passive => {
                reads_at = here;
                0
            }
            Reads::Majority => 2 * client.reads_milli * (read_us + u64::from(model.read_processing_us)),
            Reads::Optimistic => {
                let hops = replicas.iter().map(|&replica| (hop(here, replica), replica != here, replica));
                let (nearest_us, _, nearest) = hops.min().expect("a replica");
                reads_at = nearest;
                2 * client.reads_milli * (nearest_us + u64::from(model.read_processing_us))
            }
        };
        ((read_half_ns + commit_half_ns) / 2, reads_at, commits_at)
    };
    problem.clients().iter().map(served).collect()
}

fn objective(problem: &Problem, latencies: &[u64]) -> u64 {
    let weights: Vec<u64> = problem.clients().iter().map(|client| client.clients).collect();
    match problem.objective() {
        Objective::Mean => latencies.iter().zip(&weights).map(|(latency, weight)| latency * weight).sum(),
        Objective::RegionMean => latencies.iter().sum(),
        Objective::Worst => *latencies.iter().max().expect("a client"),
        // The least latency such that the clients within it are enough.
        Objective::Percentile(milli) => {
            let within = |most: u64| -> u64 {
                latencies.iter().zip(&weights).filter(|(latency, _)| **latency <= most).map(|(_, weight)| weight).sum()
            };
            let enough = |most: u64| 1_000 * within(most) >= u64::from(milli) * weights.iter().sum::<u64>();
            *latencies.iter().filter(|latency| enough(**latency)).min().expect("the longest is enough")
        }
    }
}

/// The objective at `replicas`, and how clients are served there.
pub fn evaluate(problem: &Problem, replicas: &[usize]) -> (u64, Vec<Served>) {
    let leaders = if problem.model().protocol == Protocol::OneLeader { replicas } else { &replicas[..1] };
    let led = |&leader: &usize| {
        let served = serve(problem, replicas, leader);
        let latencies: Vec<u64> = served.iter().map(|(latency, ..)| *latency).collect();
        (objective(problem, &latencies), leader, served)
    };
    let (cost, _, served) = leaders.iter().map(led).min().expect("a replica");
    (cost, served)
}
