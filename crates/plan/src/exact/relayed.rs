//! Lengths through the best coordinator: a minimum over all sites for every client and site, looked at in clusters.
//!
//! By itself that is a sum per client, coordinator and site: 64 billion for 4,000 of each. So clients, coordinators and
//! sites are put into clusters. Where the shortest hop from one cluster to another and the least rest from there to a third
//! are no less than what all of the one have found for all of the third, no single coordinator there is better, and none is
//! looked at. Where round trips know the triangle inequality, that leaves some per cent; the result is the same anyway.
//!
//! The sums are of 32-bit floats that hold integers below 2^24, so they are exact: round trips of more than a second or two
//! are first rounded down to units of a few microseconds, and remain lower bounds.

use crate::matrix::Matrix;
use crate::problem::Problem;
use std::ops::Range;

/// How many regions a cluster has on average.
const CLUSTER: usize = 12;
/// Up to here, every integer is a 32-bit float.
const EXACT_MAX: u32 = 1 << f32::MANTISSA_DIGITS;

/// What a length consists of.
struct Parts {
    /// Microseconds, or halves of them, per unit, as a power of two.
    unit_bits: u32,
    hops: u32,
    /// The sites, cluster by cluster. A place is one in this order.
    order: Vec<usize>,
    /// Where each cluster of sites begins in that order, and where the last one ends.
    starts: Vec<usize>,
    /// What follows the hop: by the cluster of the site, then by the coordinator's place, then by the site's.
    rests: Vec<f32>,
    /// The least of that from one cluster to another.
    least_rests: Vec<f32>,
}

/// For every client and site, the least over coordinators g of `hops` · hop(client, g) + `rest`(trip(g, site), ρ(g)), where
/// ρ(g) is the trip from g that completes a majority of all sites; the trip from g to itself, which leaders do not wait for
/// when they look for the farthest of all, counts as nothing if that is less. `rest` grows with both, by no more than
/// sixfold.
pub(super) fn relayed(problem: &Problem, hops: u32, rest: impl Fn(u32, u32) -> u32) -> Vec<u32> {
    let (clients, sites) = (problem.clients(), problem.candidates().len());
    let parts = Parts::new(problem, hops, rest);
    let regions: Vec<usize> = clients.iter().map(|client| client.region).collect();
    let mut least = vec![f32::INFINITY; clients.len() * sites];
    for group in clusters(problem.matrix(), &regions) {
        parts.relay(problem, &group, &mut least);
    }
    let mut lengths = vec![0; least.len()];
    for (lengths, least) in lengths.chunks_exact_mut(sites).zip(least.chunks_exact(sites)) {
        parts.order.iter().zip(least).for_each(|(&site, &length)| lengths[site] = (length as u32) << parts.unit_bits);
    }
    lengths
}

impl Parts {
    fn new(problem: &Problem, hops: u32, rest: impl Fn(u32, u32) -> u32) -> Parts {
        let (matrix, candidates) = (problem.matrix(), problem.candidates());
        let sites = candidates.len();
        let longest = hops * matrix.longest_us() + rest(matrix.longest_us(), matrix.longest_us());
        let unit_bits = (longest / EXACT_MAX + 1).next_power_of_two().ilog2();
        let clusters = clusters(matrix, candidates);
        let order = clusters.concat();
        let mut starts = vec![0];
        clusters.iter().for_each(|cluster| starts.push(starts[starts.len() - 1] + cluster.len()));
        let majority = problem.replicas() / 2 + 1;
        let mut rests = vec![0.0; sites * sites];
        for (place, &coordinator) in order.iter().enumerate() {
            let from = matrix.from(candidates[coordinator]);
            let mut sorted: Vec<u32> = candidates.iter().map(|&site| from[site]).collect();
            let radius = *sorted.select_nth_unstable(majority - 1).1;
            let trip = |site: usize| if site == coordinator { 0 } else { from[candidates[site]] };
            for cluster in starts.windows(2) {
                let of_cluster = &mut rests[cluster[0] * sites + place * (cluster[1] - cluster[0])..];
                for (length, &site) in of_cluster.iter_mut().zip(&order[cluster[0]..cluster[1]]) {
                    *length = (rest(trip(site), radius) >> unit_bits) as f32;
                }
            }
        }
        let mut parts = Parts { unit_bits, hops, order, starts, rests, least_rests: Vec::new() };
        for from in 0..parts.clusters() {
            for to in 0..parts.clusters() {
                let rests = parts.places(from).flat_map(|coordinator| parts.rests(coordinator, to));
                let least = rests.copied().fold(f32::INFINITY, f32::min);
                parts.least_rests.push(least);
            }
        }
        parts
    }

    fn clusters(&self) -> usize {
        self.starts.len() - 1
    }

    /// The places of the sites of a cluster.
    fn places(&self, cluster: usize) -> Range<usize> {
        self.starts[cluster]..self.starts[cluster + 1]
    }

    /// The rests from a coordinator, by its place, to the sites of a cluster.
    fn rests(&self, coordinator: usize, cluster: usize) -> &[f32] {
        let places = self.places(cluster);
        &self.rests[places.start * self.order.len() + coordinator * places.len()..][..places.len()]
    }

    /// Fills in the rows of the clients in `group`, the sites in the order of their clusters.
    fn relay(&self, problem: &Problem, group: &[usize], least: &mut [f32]) {
        let (sites, clusters) = (self.order.len(), self.clusters());
        let hop = |client: usize, coordinator: usize| {
            let hop = problem.matrix().hop_us(problem.clients()[client].region, problem.candidates()[coordinator]);
            ((self.hops * hop) >> self.unit_bits) as f32
        };
        let hops_of = |&client: &usize| self.order.iter().map(|&coordinator| hop(client, coordinator)).collect();
        let hops: Vec<Vec<f32>> = group.iter().map(hops_of).collect();
        let least_hop = |of: usize| hops.iter().flat_map(|hops| &hops[self.places(of)]).copied().fold(f32::INFINITY, f32::min);
        let least_hops: Vec<f32> = (0..clusters).map(least_hop).collect();
        for to in 0..clusters {
            let at_least = |by: usize| least_hops[by] + self.least_rests[by * clusters + to];
            let first = (0..clusters).min_by(|&a, &b| at_least(a).total_cmp(&at_least(b))).expect("there is a cluster");
            let mut longest = f32::INFINITY;
            for by in std::iter::once(first).chain((0..clusters).filter(|&by| by != first)) {
                if at_least(by) >= longest {
                    continue;
                }
                longest = 0.0;
                for (&client, hops) in group.iter().zip(&hops) {
                    let least = &mut least[client * sites..][self.places(to)];
                    for coordinator in self.places(by) {
                        let hop = hops[coordinator];
                        for (least, rest) in least.iter_mut().zip(self.rests(coordinator, to)) {
                            let length = hop + rest;
                            *least = if length < *least { length } else { *least };
                        }
                    }
                    longest = least.iter().copied().fold(longest, |longest, length| if length > longest { length } else { longest });
                }
            }
        }
    }
}

/// The places in `regions` in clusters of [`CLUSTER`] on average around centres, each next one of which is farthest from those
/// before.
fn clusters(matrix: &Matrix, regions: &[usize]) -> Vec<Vec<usize>> {
    let count = regions.len().div_ceil(CLUSTER);
    let mut nearest = vec![(u32::MAX, 0); regions.len()];
    let mut centre = 0;
    for cluster in 0..count {
        for (nearest, &region) in nearest.iter_mut().zip(regions) {
            *nearest = (*nearest).min((matrix.hop_us(regions[centre], region), cluster));
        }
        centre = (0..regions.len()).max_by_key(|&place| nearest[place].0).expect("there are regions");
    }
    let mut clusters = vec![Vec::new(); count];
    for (place, (_, cluster)) in nearest.into_iter().enumerate() {
        clusters[cluster].push(place);
    }
    clusters.retain(|cluster| !cluster.is_empty());
    clusters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, Model, Objective, Protocol, Reads, Request};
    use rhumb_core::Rng;
    use std::sync::Arc;

    /// 40 sites in a plane, or with any trips at all.
    fn problem(plane: bool, rng: &mut Rng) -> Problem {
        let points: Vec<[f64; 2]> = (0..40).map(|_| [rng.unit() * 90_000.0, rng.unit() * 90_000.0]).collect();
        let names = (0..points.len()).map(|region| format!("r{region}")).collect();
        let anyhow: Vec<u32> = (0..points.len() * points.len()).map(|_| rng.below(90_000) as u32).collect();
        let far = |from: usize, to: usize| (points[from][0] - points[to][0]).hypot(points[from][1] - points[to][1]) as u32;
        let trip = |from: usize, to: usize| if plane { far(from, to) } else { anyhow[from * points.len() + to] };
        let matrix = Arc::new(Matrix::new(names, trip).expect("few regions"));
        let clients = (0..points.len()).step_by(3).map(|region| Client { region, clients: 1, reads_milli: 0 }).collect();
        let model = Model { protocol: Protocol::TwoRounds, reads: Reads::Passive, handoff: true, read_processing_us: 0 };
        let (objective, constraints, prices) = (Objective::Mean, Vec::new(), Vec::new());
        Problem::new(Request { matrix, clients, model, faults: 2, objective, constraints, prices }).expect("feasible")
    }

    #[test]
    fn clusters_find_the_same_least_as_looking_at_every_coordinator() {
        let mut rng = Rng::seeded(3);
        for plane in [true, false, true, false] {
            let problem = problem(plane, &mut rng);
            let matrix = problem.matrix();
            let radius = |coordinator: usize| {
                let mut trips = matrix.from(coordinator).to_vec();
                trips.sort_unstable();
                trips[2]
            };
            let through = |from: usize, by: usize, to: usize| matrix.hop_us(from, by) + 2 * matrix.hop_us(by, to).max(radius(by));
            let least = |from: usize, to: usize| (0..40).map(|by| through(from, by, to)).min().expect("coordinators");
            let expected: Vec<u32> =
                (0..40).step_by(3).flat_map(|from| (0..40).map(move |to| (from, to))).map(|(from, to)| least(from, to)).collect();
            assert_eq!(relayed(&problem, 1, |trip, radius| 2 * trip.max(radius)), expected);
        }
    }
}
