//! The bound for one leader of everything: all clients go to the same member, so it is chosen before them.
//!
//! With [`Protocol::OneLeader`] every client takes the hop to the leader g and waits for g's majority. A placement that g
//! leads costs at least the objective of hops alone (its reads at g, or at the nearest of all sites) where a majority takes
//! what the bound of [`order_statistic`](super::order_statistic) says of g alone; the least over all g that may be chosen
//! bounds every placement. For a sum the majority counts once per unit of weight; for a percentile it lengthens all
//! latencies alike, and so the percentile by as much.

use super::order_statistic::OrderStatistic;
use super::relaxation::{Family, Relaxation};
use crate::model::{Protocol, Reads};
use crate::objective::Objective;
use crate::problem::Problem;

/// What does not depend on the placement.
pub(super) struct Leader {
    /// The trips from each site to each other, as an order statistic per leader.
    trips: Relaxation,
    majorities: OrderStatistic,
    /// The objective of each leader if its majority took no time.
    hops_alone: Vec<u64>,
    /// How often a microsecond of the leader's majority counts, in nanoseconds.
    counts: u64,
}

impl Leader {
    /// The bound, if the problem is one of a single leader.
    pub fn new(problem: &Problem) -> Option<Leader> {
        if problem.model().protocol != Protocol::OneLeader {
            return None;
        }
        let (matrix, candidates) = (problem.matrix(), problem.candidates());
        let sites = candidates.len();
        let rows = candidates.iter().flat_map(|&leader| candidates.iter().map(move |&site| matrix.rtt_us(leader, site))).collect();
        let family = Family { order: problem.replicas() / 2 + 1, of_majority: true, scale: vec![1; sites], halves: false, rows };
        let trips = Relaxation { sites, clients: sites, families: vec![family], constant_ns: vec![0; sites] };
        let counts = match problem.objective() {
            Objective::Mean => problem.weights().iter().sum(),
            Objective::RegionMean => problem.clients().len() as u64,
            Objective::Worst | Objective::Percentile(_) => 1,
        };
        let hops_alone = candidates.iter().map(|&leader| hops_alone(problem, leader)).collect();
        Some(Leader { majorities: OrderStatistic::new(&trips), trips, hops_alone, counts: 1_000 * counts })
    }

    /// The bound where `chosen` are chosen and `missing` more will be, out of `open`.
    pub fn bound(&mut self, chosen: &[usize], open: &[usize], missing: usize) -> u64 {
        let majorities = self.majorities.clients_ns(&self.trips, chosen, open, missing);
        let led_by = |&leader: &usize| self.hops_alone[leader] + self.counts * majorities[leader];
        chosen.iter().chain(open).map(led_by).min().expect("a placement has a leader")
    }
}

/// The objective with `leader`, apart from its majority.
fn hops_alone(problem: &Problem, leader: usize) -> u64 {
    let (matrix, model) = (problem.matrix(), problem.model());
    let latency_ns = |client: &crate::request::Client| {
        let hop = |to: usize| u64::from(matrix.hop_us(client.region, to));
        let nearest = || problem.candidates().iter().map(|&site| hop(site)).min().unwrap_or(0);
        let read_us = match model.reads {
            Reads::Passive => return 1_000 * hop(leader),
            Reads::Majority => hop(leader),
            Reads::Optimistic => nearest(),
        };
        1_000 * hop(leader) + client.reads_milli * (read_us + u64::from(model.read_processing_us))
    };
    let latencies_ns: Vec<u64> = problem.clients().iter().map(latency_ns).collect();
    problem.objective().value(&latencies_ns, problem.weights(), &mut Vec::new())
}
