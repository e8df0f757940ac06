//! Sites in clusters of sites, down to single ones: a binary tree.
//!
//! Sites are alike if all clients are about as far from one as from the other; a client for which both are too far to be of
//! use does not tell them apart. The two clusters that are most alike are joined, again and again, by the mean difference of
//! their sites. Any tree would do for the result; a good one lets clusters stand for their sites for long.

use crate::evaluate::quorum_us;
use crate::problem::Problem;

/// A site is of use to a client up to so many times the round trip to its majority in a good placement.
const OF_USE: f64 = 1.35;

/// Some sites.
pub(super) struct Cluster {
    /// The sites, ascending.
    pub sites: Vec<usize>,
    /// The two clusters that these sites are divided into; none for a single site.
    pub parts: Option<[usize; 2]>,
    /// By how much the lengths to the sites of both parts differ on average, summed over clients. It only says what to try
    /// first.
    pub spread: f64,
}

/// Clusters that come after their parts; the last holds all sites.
pub(super) struct Hierarchy(pub Vec<Cluster>);

impl Hierarchy {
    /// The clusters of the candidates of `problem`, whose clients count by `weights` and would be served well by `replicas`.
    pub fn new(problem: &Problem, weights: &[u64], replicas: &[usize]) -> Hierarchy {
        let sites = problem.candidates().len();
        let mut clusters: Vec<Cluster> = (0..sites).map(|site| Cluster { sites: vec![site], parts: None, spread: 0.0 }).collect();
        let mut unlike = differences(problem, weights, replicas);
        // The clusters not joined yet, each with the place that its differences stand at and the one that it is most like.
        let mut live: Vec<(usize, usize)> = (0..sites).map(|site| (site, site)).collect();
        let mut nearest: Vec<(f64, usize)> = (0..sites).map(|place| most_alike(&unlike, sites, &live, place)).collect();
        while live.len() > 1 {
            let alike = |live: &(usize, usize)| nearest[live.1].0;
            let one = (0..live.len()).min_by(|&a, &b| alike(&live[a]).total_cmp(&alike(&live[b]))).expect("clusters are left");
            let (first, place) = live[one];
            let (spread, other_place) = nearest[place];
            let other = live.iter().position(|&(_, place)| place == other_place).expect("what is most alike is left");
            let second = live.swap_remove(other).0;
            let [a, b] = [first, second].map(|part| clusters[part].sites.len() as f64);
            let mut joined = [&clusters[first].sites[..], &clusters[second].sites[..]].concat();
            joined.sort_unstable();
            live.iter_mut().filter(|live| live.1 == place).for_each(|live| live.0 = clusters.len());
            clusters.push(Cluster { sites: joined, parts: Some([first, second]), spread });
            for &(_, to) in live.iter().filter(|live| live.1 != place) {
                let mean = (a * unlike[place * sites + to] + b * unlike[other_place * sites + to]) / (a + b);
                unlike[place * sites + to] = mean;
                unlike[to * sites + place] = mean;
            }
            for &(_, to) in &live {
                if to == place || nearest[to].1 == place || nearest[to].1 == other_place {
                    nearest[to] = most_alike(&unlike, sites, &live, to);
                }
            }
        }
        Hierarchy(clusters)
    }

    /// The cluster of all sites.
    pub fn all(&self) -> usize {
        self.0.len() - 1
    }
}

/// By how much the round trips to each site differ from those to each other, as far as they are of use, summed over clients.
fn differences(problem: &Problem, weights: &[u64], replicas: &[usize]) -> Vec<f64> {
    let sites = problem.candidates().len();
    let mut unlike = vec![0.0; sites * sites];
    for (client, &weight) in problem.clients().iter().zip(weights) {
        let from = problem.matrix().from(client.region);
        let of_use = OF_USE * f64::from(quorum_us(from, replicas));
        let length = |region: &usize| weight as f64 * f64::from(from[*region]).min(of_use);
        let lengths: Vec<f64> = problem.candidates().iter().map(length).collect();
        for (row, length) in unlike.chunks_exact_mut(sites).zip(&lengths) {
            for (unlike, other) in row.iter_mut().zip(&lengths) {
                *unlike += (length - other).abs();
            }
        }
    }
    unlike
}

/// The place of the live cluster that is most like the one at `place`, and how unlike it is.
fn most_alike(unlike: &[f64], sites: usize, live: &[(usize, usize)], place: usize) -> (f64, usize) {
    let others = live.iter().filter(|live| live.1 != place).map(|live| (unlike[place * sites + live.1], live.1));
    others.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::uniform;
    use crate::{Matrix, Model, Objective, Protocol, Reads, Request};
    use std::sync::Arc;

    #[test]
    fn the_sites_most_alike_are_joined_first() {
        // On a line, a to d at 0, 100, 110 and 1.
        let at = [0u32, 100, 110, 1];
        let names = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let matrix = Arc::new(Matrix::new(names, |from, to| at[from].abs_diff(at[to])).expect("few regions"));
        let clients = uniform(&matrix, 0);
        let model = Model { protocol: Protocol::TwoRounds, reads: Reads::Passive, handoff: false, read_processing_us: 0 };
        let (objective, constraints, prices) = (Objective::Mean, Vec::new(), Vec::new());
        let problem = Problem::new(Request { matrix, clients, model, faults: 1, objective, constraints, prices }).expect("feasible");
        let clusters = Hierarchy::new(&problem, problem.weights(), &[0, 1, 2]).0;
        let joined: Vec<(&[usize], f64)> = clusters[4..].iter().map(|cluster| (&cluster.sites[..], cluster.spread)).collect();
        // Between 0 and 1 the clients there differ by one each. Those at 100 and 110 have their majority within 10 and do not care;
        // between 100 and 110 all four differ by ten each.
        assert_eq!(joined[0], (&[0, 3][..], 2.0));
        assert_eq!(joined[1], (&[1, 2][..], 40.0));
        assert_eq!(joined[2].0, &[0, 1, 2, 3]);
        assert_eq!(clusters[6].parts.map(|parts| parts[0] + parts[1]), Some(4 + 5));
    }
}
