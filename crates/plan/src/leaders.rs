//! Where the leaders of partitions stand (GPlacer, section 6): three heuristics, and the choice among them.
//!
//! | | leaders | majorities |
//! |---|---|---|
//! | [`Heuristic::OnePlace`] (Algorithm 4) | all in the region that is best for all clients | nearest of all regions |
//! | [`Heuristic::WhereAccessed`] | each where its partition is accessed most | nearest of all regions |
//! | [`Heuristic::NearestReplica`] (Algorithm 5) | each at the replica nearest to where it is accessed most | of the placement |
//!
//! A transaction in one partition takes the hop to its leader and that leader's majority. One that spans partitions takes
//! two-phase commit among all leaders besides, nothing if they stand in one place. So the first wins where many
//! transactions span partitions, the second where hardly any do; the crossings depend on the workload and are computed.

use crate::matrix::Matrix;
use crate::model::TwoPhase;
use crate::two_phase::{Leaders, farthest_us};

/// How often a partition is accessed, by region. At least one access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Regions with the number of transactions from there.
    pub accesses: Vec<(usize, u64)>,
}

/// What leaders are placed for.
#[derive(Clone, Copy, Debug)]
pub struct LeaderProblem<'l> {
    /// The round trips.
    pub matrix: &'l Matrix,
    /// The placement, for the third heuristic; as many replicas has every partition in the others.
    pub replicas: &'l [usize],
    /// The partitions.
    pub partitions: &'l [Partition],
    /// How many transactions of a thousand span partitions.
    pub multi_partition_milli: u32,
    /// Who coordinates those.
    pub two_phase: TwoPhase,
}

/// A way of placing leaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heuristic {
    /// All in one place.
    OnePlace,
    /// Each where its partition is accessed most.
    WhereAccessed,
    /// Each at the replica nearest to where its partition is accessed most.
    NearestReplica,
}

/// Where leaders stand, and what to expect of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderPlan {
    /// How they were placed.
    pub heuristic: Heuristic,
    /// The region of each partition's leader.
    pub leaders: Vec<usize>,
    /// The sum over all accesses of the commit latency to expect, in half nanoseconds.
    pub cost: u128,
    /// The mean of it, in nanoseconds, rounded down.
    pub mean_ns: u64,
}

/// The plans of the three heuristics, in their order.
pub fn leader_plans(problem: &LeaderProblem<'_>) -> [LeaderPlan; 3] {
    let majority = problem.replicas.len() / 2 + 1;
    let everywhere: Vec<usize> = (0..problem.matrix.regions()).collect();
    let anywhere = |leader: usize| nearest_majority_us(problem.matrix, leader, &everywhere, majority);
    let at_replicas = |leader: usize| nearest_majority_us(problem.matrix, leader, problem.replicas, majority);
    let homes: Vec<usize> = problem.partitions.iter().map(most_accessed_from).collect();
    let nearest = |home: &usize| {
        let hop = |replica: &&usize| problem.matrix.hop_us(*home, **replica);
        *problem.replicas.iter().min_by_key(|replica| (hop(replica), *replica != home)).expect("a placement has a replica")
    };
    let one = vec![best_place(problem, &anywhere); problem.partitions.len()];
    let independent: Vec<usize> = homes.iter().map(nearest).collect();
    [
        expect(problem, Heuristic::OnePlace, one, &anywhere),
        expect(problem, Heuristic::WhereAccessed, homes, &anywhere),
        expect(problem, Heuristic::NearestReplica, independent, &at_replicas),
    ]
}

/// The plan with the lowest latency to expect; of equals, the first.
pub fn place_leaders(problem: &LeaderProblem<'_>) -> LeaderPlan {
    let [first, second, third] = leader_plans(problem);
    [first, second, third].into_iter().min_by_key(|plan| plan.cost).expect("three plans")
}

/// Algorithm 4: where all leaders together serve all accesses best, given the round trip to a majority.
fn best_place(problem: &LeaderProblem<'_>, majority_us: &impl Fn(usize) -> u32) -> usize {
    let mut from_region = vec![0u128; problem.matrix.regions()];
    for (region, accesses) in problem.partitions.iter().flat_map(|partition| &partition.accesses) {
        from_region[*region] += u128::from(*accesses);
    }
    let cost = |&leader: &usize| -> u128 {
        let commit = |(from, accesses): (usize, &u128)| {
            accesses * (u128::from(problem.matrix.hop_us(from, leader)) + u128::from(majority_us(leader)))
        };
        from_region.iter().enumerate().filter(|(_, accesses)| **accesses > 0).map(commit).sum()
    };
    (0..problem.matrix.regions()).min_by_key(cost).expect("a matrix has regions")
}

/// The region from which a partition is accessed most; of equals, the first.
fn most_accessed_from(partition: &Partition) -> usize {
    let most = partition.accesses.iter().max_by_key(|(region, accesses)| (*accesses, std::cmp::Reverse(*region)));
    most.expect("a partition is accessed from somewhere").0
}

/// The round trip from `leader` to the nearest `majority` of `replicas`.
fn nearest_majority_us(matrix: &Matrix, leader: usize, replicas: &[usize], majority: usize) -> u32 {
    let mut trips: Vec<u32> = replicas.iter().map(|&replica| matrix.rtt_us(leader, replica)).collect();
    *trips.select_nth_unstable(majority - 1).1
}

/// What to expect of `leaders`.
fn expect(problem: &LeaderProblem<'_>, heuristic: Heuristic, leaders: Vec<usize>, majority_us: &impl Fn(usize) -> u32) -> LeaderPlan {
    let mut places = leaders.clone();
    places.sort_unstable();
    places.dedup();
    let quorum: Vec<u32> = places.iter().map(|&place| majority_us(place)).collect();
    let farthest: Vec<u32> = places.iter().map(|&place| farthest_us(problem.matrix, place, &places)).collect();
    let among = Leaders { places: &places, quorum_us: &quorum, farthest_us: &farthest };
    let milli = u64::from(problem.multi_partition_milli);
    let mut cost = 0;
    let mut total: u128 = 0;
    for (partition, leader) in problem.partitions.iter().zip(&leaders) {
        let home = places.binary_search(leader).expect("every leader has a place");
        for &(from, accesses) in &partition.accesses {
            let single_us = u64::from(problem.matrix.hop_us(from, *leader)) + u64::from(quorum[home]);
            let (_, spanning_half_us) = among.commit_half_us(problem.matrix, from, home, problem.two_phase);
            cost += u128::from(accesses) * u128::from((1_000 - milli) * 2 * single_us + milli * spanning_half_us);
            total += u128::from(accesses);
        }
    }
    let mean_ns = u64::try_from(cost / (2 * total.max(1))).expect("the mean of latencies is no longer than the longest");
    LeaderPlan { heuristic, leaders, cost, mean_ns }
}
