//! From measures to quorums: QuAD, its variants, and the quorum systems that it is compared with.
//!
//! Source: section III-A: `cores_and_slaves` takes the strongest sites as cores.

use super::assignment::{CostWeights, assign};
use super::measures::Measures;
use super::scores::{ScoreWeights, scores, strongest};
use super::system::{Choice, Quorums};
use super::{CORES_MAX, majority};
use rhumb_core::SiteId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How quorums are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Policy {
    /// By load and distance.
    Quad,
    /// The weakest sites are cores.
    QuadInversed,
    /// Distance counts nothing.
    QuadLoadOnly,
    /// Load counts nothing.
    QuadRttOnly,
    /// How many slaves a majority has counts nothing.
    QuadUnbalanced,
    /// The first configuration stays.
    QuadStatic,
    /// A majority at random (MQ-RA).
    MajorityRandom,
    /// Majorities in turn (MQ-RR).
    MajorityRoundRobin,
    /// Read one, write all.
    Rowa,
    /// Read one, write all that are available.
    Rowaa,
    /// Tree quorums.
    Tree,
    /// Grid quorums.
    Grid,
}

/// What quorums are built with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// How.
    pub policy: Policy,
    /// How many cores QuAD has; fewer if there are not so many sites, and [`CORES_MAX`] at the most.
    pub cores: usize,
    /// The weights of a score.
    pub score: ScoreWeights,
    /// The weights of an assignment.
    pub cost: CostWeights,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 12] = [
        Policy::Quad,
        Policy::QuadInversed,
        Policy::QuadLoadOnly,
        Policy::QuadRttOnly,
        Policy::QuadUnbalanced,
        Policy::QuadStatic,
        Policy::MajorityRandom,
        Policy::MajorityRoundRobin,
        Policy::Rowa,
        Policy::Rowaa,
        Policy::Tree,
        Policy::Grid,
    ];

    /// True if quorums follow what is measured from period to period.
    pub fn is_adaptive(self) -> bool {
        use Policy::{Quad, QuadInversed, QuadLoadOnly, QuadRttOnly, QuadUnbalanced};
        matches!(self, Quad | QuadInversed | QuadLoadOnly | QuadRttOnly | QuadUnbalanced)
    }

    /// True if a site that fails is left out by a new configuration.
    pub fn replaces_failed(self) -> bool {
        self.is_adaptive() || matches!(self, Policy::QuadStatic | Policy::Rowaa)
    }
}

impl Settings {
    /// The scores that this policy goes by.
    pub fn scores(&self, measures: &Measures) -> Vec<f64> {
        let weights = match self.policy {
            Policy::QuadLoadOnly => ScoreWeights { rtt: 0.0, ..self.score },
            Policy::QuadRttOnly => ScoreWeights { load: 0.0, ..self.score },
            _ => self.score,
        };
        let scores = scores(measures, weights);
        if self.policy == Policy::QuadInversed {
            scores.into_iter().map(|score| weights.rtt + weights.load - score).collect()
        } else {
            scores
        }
    }

    /// The quorums of the sites of `measures`, of which `failed` are down. Failed sites are no cores, and are slaves still, unless
    /// all have failed.
    pub fn quorums(&self, measures: &Measures, failed: &BTreeSet<SiteId>) -> Quorums {
        let sites = measures.sites().to_vec();
        let live: Vec<SiteId> = sites.iter().copied().filter(|site| !failed.contains(site)).collect();
        match self.policy {
            Policy::MajorityRandom => Quorums::Majority { sites, choice: Choice::Random },
            Policy::MajorityRoundRobin => Quorums::Majority { sites, choice: Choice::RoundRobin },
            Policy::Rowa => Quorums::WriteAll { sites },
            Policy::Rowaa => Quorums::WriteAll { sites: if live.is_empty() { sites } else { live } },
            Policy::Tree => Quorums::Tree { sites },
            Policy::Grid => Quorums::Grid { sites },
            _ => self.cores_and_slaves(measures, failed),
        }
    }

    fn cores_and_slaves(&self, measures: &Measures, failed: &BTreeSet<SiteId>) -> Quorums {
        let sites = measures.sites();
        let ranking = strongest(measures, &self.scores(measures), sites.len());
        let live: Vec<usize> = ranking.iter().copied().filter(|site| !failed.contains(&sites[*site])).collect();
        let candidates = if live.is_empty() { ranking } else { live };
        let cores: Vec<usize> = candidates.into_iter().take(self.cores.clamp(1, CORES_MAX)).collect();
        let slaves: Vec<usize> = (0..sites.len()).filter(|site| !cores.contains(site)).collect();
        let weights = match self.policy {
            Policy::QuadLoadOnly => CostWeights { communication: 0.0, ..self.cost },
            Policy::QuadRttOnly => CostWeights { load: 0.0, ..self.cost },
            Policy::QuadUnbalanced => CostWeights { balance: 0.0, ..self.cost },
            _ => self.cost,
        };
        let assigned = assign(measures, &cores, &slaves, weights);
        let mut preference = BTreeMap::new();
        for core in &cores {
            preference.insert(sites[*core], in_order(measures, &cores, *core, &[*core]));
        }
        for (slave, assigned) in slaves.iter().zip(&assigned) {
            preference.insert(sites[*slave], in_order(measures, &cores, *slave, assigned));
        }
        debug_assert!(assigned.iter().all(|assigned| assigned.len() == majority(cores.len())));
        Quorums::Cores { cores: cores.into_iter().map(|core| sites[core]).collect(), preference }
    }
}

/// The cores as a site asks them: those of `first`, then the others, each from the nearest to the farthest.
fn in_order(measures: &Measures, cores: &[usize], site: usize, first: &[usize]) -> Vec<SiteId> {
    let mut order = cores.to_vec();
    order.sort_by(|one, other| {
        let later = |core: &usize| !first.contains(core);
        let near = measures.rtt_ms(site, *one).total_cmp(&measures.rtt_ms(site, *other));
        later(one).cmp(&later(other)).then(near).then(one.cmp(other))
    });
    order.into_iter().map(|core| measures.sites()[core]).collect()
}
