//! What is compared: a quorum system, built from the loads and distances of a cluster.

use super::cluster::Cluster;
use rhumb_core::{RegionId, SiteId};
use rhumb_quad::quorums::{CostWeights, Measures, Policy, Quorums, ScoreWeights, Settings, assign};
use std::collections::{BTreeMap, BTreeSet};

/// A quorum system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct System {
    /// How quorums are built.
    pub policy: Policy,
    /// How many cores QuAD has.
    pub cores: usize,
}

impl System {
    /// A system.
    pub const fn new(policy: Policy, cores: usize) -> System {
        System { policy, cores }
    }

    /// Its name in tables and plots.
    pub fn name(self) -> &'static str {
        match self.policy {
            Policy::Quad => "QuAD",
            Policy::QuadInversed => "QuAD, inversed",
            Policy::QuadLoadOnly => "QuAD, load only",
            Policy::QuadRttOnly => "QuAD, RTT only",
            Policy::QuadUnbalanced => "QuAD, unbalanced",
            Policy::QuadStatic => "QuAD, not adaptive",
            Policy::MajorityRandom => "MQ-RA",
            Policy::MajorityRoundRobin => "MQ-RR",
            Policy::Rowa => "ROWA",
            Policy::Rowaa => "ROWAA",
            Policy::Tree => "tree",
            Policy::Grid => "grid",
        }
    }

    /// What it is built with.
    pub fn settings(self) -> Settings {
        Settings { policy: self.policy, cores: self.cores, score: ScoreWeights::default(), cost: CostWeights::default() }
    }

    /// Its quorums in `cluster`, where nobody has failed. The load of a site is its part of the workers, as the paper has it. What does
    /// not adapt is built before there was any.
    pub fn quorums(self, cluster: &Cluster) -> Quorums {
        let load = if self.policy == Policy::QuadStatic { None } else { Some(cluster.shares.as_slice()) };
        self.settings().quorums(&measures(cluster, load), &BTreeSet::new())
    }
}

/// What is known of the sites of `cluster` under these loads, or before any was measured.
fn measures(cluster: &Cluster, load: Option<&[f64]>) -> Measures {
    let sites = cluster.sites();
    let row = |from: &SiteId| sites.iter().map(|to| cluster.rtt.rtt(from.region, to.region).as_millis_f64()).collect();
    let rtt_ms: Vec<Vec<f64>> = sites.iter().map(row).collect();
    let load = (0..sites.len()).map(|site| load.map(|load| load[site])).collect();
    Measures::new(sites.clone(), load, &rtt_ms).expect("a cluster's shares and distances are sound")
}

/// Quorums of given roles: site 0 is the slave, all others are cores, and the slave is assigned by `weights` under these loads.
pub fn one_slave(cluster: &Cluster, load: &[f64], weights: CostWeights) -> Quorums {
    let cores: Vec<usize> = (1..cluster.shares.len()).collect();
    let assigned = assign(&measures(cluster, Some(load)), &cores, &[0], weights).remove(0);
    let site = |index: usize| SiteId { region: RegionId(index as u16), shard: 0 };
    let preferring = |first: &[usize]| {
        let (first, others): (Vec<usize>, Vec<usize>) = cores.iter().partition(|core| first.contains(core));
        first.into_iter().chain(others).map(site).collect::<Vec<SiteId>>()
    };
    let mut preference: BTreeMap<SiteId, Vec<SiteId>> = cores.iter().map(|core| (site(*core), preferring(&[*core]))).collect();
    preference.insert(site(0), preferring(&assigned));
    Quorums::Cores { cores: cores.iter().map(|core| site(*core)).collect(), preference }
}

#[cfg(test)]
mod tests {
    use super::super::parameters::SHARES_4;
    use super::*;
    use rhumb_core::Span;

    fn cores(policy: Policy) -> Vec<u16> {
        let quorums = System::new(policy, 2).quorums(&Cluster::datacenter(&SHARES_4));
        let mut cores: Vec<u16> = quorums.cores().iter().map(|site| site.region.0).collect();
        cores.sort_unstable();
        cores
    }

    #[test]
    fn cores_have_the_fewest_workers_unless_the_system_is_told_otherwise() {
        assert_eq!((cores(Policy::Quad), cores(Policy::QuadInversed)), (vec![2, 3], vec![0, 1]));
        assert_eq!(cores(Policy::QuadStatic), [0, 1], "before any load is known, the first sites are as good as others");
    }

    #[test]
    fn the_slave_is_assigned_by_what_counts() {
        let millis = [0, 100, 200, 400].map(Span::from_millis);
        let cluster = Cluster::delayed(&millis, &[1.0; 4]);
        let load = [60.0, 100.0, 50.0, 25.0];
        let quorum = |weights| {
            let quorums = one_slave(&cluster, &load, weights);
            let all = quorums.members();
            quorums.read(SiteId::new(0, 0), &all, 0).expect("all are up").iter().map(|site| site.region.0).collect::<Vec<_>>()
        };
        let weights = CostWeights::default();
        assert_eq!(quorum(weights), [0, 1, 2], "distance weighs more than the load of others, times the slave's own");
        assert_eq!(quorum(CostWeights { communication: 0.0, ..weights }), [0, 2, 3]);
        assert_eq!(quorum(CostWeights { load: 0.0, ..weights }), [0, 1, 2]);
    }
}
