//! The quorums of one configuration: which sites a transaction that came to a site reads, and which it writes.
//!
//! Asked with the sites that are up as far as the asking site knows. That knowledge may be wrong; the answer is then a quorum that
//! does not respond, never one that misses another: every read quorum that can be answered meets every write quorum that can be, and
//! two write quorums meet, whatever each was told.
//!
//! Source: sections II-A and III-A, "Quorum Construction".

use super::{CORES_MAX, SITES_MAX, grid, majority, tree};
use rhumb_commit::reason::Reason;
use rhumb_core::{Rng, SiteId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Which of many majorities is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Choice {
    /// Any (MQ-RA).
    Random,
    /// The next ones in turn (MQ-RR).
    RoundRobin,
}

/// The quorums of one configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quorums {
    /// QuAD. At a core: reads ask a majority of the cores, writes all of them. At a slave: both ask the slave itself and a majority.
    Cores {
        /// The cores, the strongest first.
        cores: Vec<SiteId>,
        /// For each site the cores in the order in which it asks them: the majority that it is assigned to comes first.
        preference: BTreeMap<SiteId, Vec<SiteId>>,
    },
    /// Votes of one each: writes ask more than half of the sites, reads as many as meet every write.
    Majority {
        /// The sites.
        sites: Vec<SiteId>,
        /// Which of them.
        choice: Choice,
    },
    /// Reads ask one, writes all. Those available only (ROWAA) if a new configuration follows each failure.
    WriteAll {
        /// The sites.
        sites: Vec<SiteId>,
    },
    /// See `tree.rs`.
    Tree {
        /// The sites in the order of the heap.
        sites: Vec<SiteId>,
    },
    /// See `grid.rs`.
    Grid {
        /// The sites in the order of their rows.
        sites: Vec<SiteId>,
    },
}

impl Quorums {
    /// The sites that hold copies which transactions depend on: for QuAD cores and slaves.
    pub fn members(&self) -> BTreeSet<SiteId> {
        match self {
            Quorums::Cores { cores, preference } => cores.iter().chain(preference.keys()).copied().collect(),
            Quorums::Majority { sites, .. } | Quorums::WriteAll { sites } | Quorums::Tree { sites } | Quorums::Grid { sites } => {
                sites.iter().copied().collect()
            }
        }
    }

    /// The cores; those of a system that knows none are all its sites.
    pub fn cores(&self) -> &[SiteId] {
        match self {
            Quorums::Cores { cores, .. } => cores,
            Quorums::Majority { sites, .. } | Quorums::WriteAll { sites } | Quorums::Tree { sites } | Quorums::Grid { sites } => sites,
        }
    }

    /// The same kind of quorums for `members`, of which only those that are `up` can serve. The others are left out, or are slaves. It has as many
    /// cores as before, if that many are up: first those that were cores, then others.
    pub fn among(&self, members: &BTreeSet<SiteId>, up: &BTreeSet<SiteId>) -> Quorums {
        let up: BTreeSet<SiteId> = up.intersection(members).copied().collect();
        let left = |sites: &[SiteId]| sites.iter().copied().filter(|site| up.contains(site)).collect();
        match self {
            Quorums::Cores { cores, preference } => {
                let mut new: Vec<SiteId> = left(cores);
                let others: Vec<SiteId> = up.iter().copied().filter(|site| !cores.contains(site)).collect();
                new.extend(others.into_iter().take(cores.len() - new.len()));
                let order = |site: &SiteId| {
                    let known = preference.get(site).into_iter().flatten().filter(|core| new.contains(core));
                    let mut order: Vec<SiteId> = known.copied().collect();
                    order.extend(new.iter().filter(|core| !order.contains(core)).copied().collect::<Vec<_>>());
                    order
                };
                let preference = members.iter().map(|site| (*site, order(site))).collect();
                Quorums::Cores { cores: new, preference }
            }
            Quorums::Majority { sites, choice } => Quorums::Majority { sites: left(sites), choice: *choice },
            Quorums::WriteAll { sites } => Quorums::WriteAll { sites: left(sites) },
            Quorums::Tree { sites } => Quorums::Tree { sites: left(sites) },
            Quorums::Grid { sites } => Quorums::Grid { sites: left(sites) },
        }
    }

    /// What is wrong with them, if something is.
    pub fn validation_error(&self) -> Option<Reason> {
        let cores = self.cores();
        let (known, members) = (BTreeSet::from_iter(cores), self.members());
        if cores.is_empty() {
            return Some("a configuration has at least one core".into());
        }
        if known.len() < cores.len() {
            return Some("a site stands among the cores twice".into());
        }
        if members.len() > SITES_MAX {
            return Some(format!("{} sites are more than a configuration may have: {SITES_MAX}", members.len()).into());
        }
        let Quorums::Cores { preference, .. } = self else { return None };
        if cores.len() > CORES_MAX {
            return Some(format!("{} cores are more than a configuration may have: {CORES_MAX}", cores.len()).into());
        }
        for site in members {
            let Some(order) = preference.get(&site) else {
                return Some(Reason::from("core ").then(site).then(" has no order in which it asks the cores"));
            };
            let said = |what: Reason| Some(Reason::from("site ").then(site).then(what));
            let asked = BTreeSet::from_iter(order);
            if let Some(other) = order.iter().find(|core| !known.contains(core)) {
                return said(Reason::from(" asks ").then(*other).then(", which is no core"));
            }
            if asked.len() < order.len() {
                return said(" asks a core twice".into());
            }
            if order.len() < majority(cores.len()) {
                return said(format!(" asks {} of {} cores, which is no majority", order.len(), cores.len()).into());
            }
        }
        None
    }

    /// The sites that a read at `at` asks, all of them `up`; `None` if there is no such quorum. `turn` counts the transactions
    /// of the site, for systems that take turns.
    pub fn read(&self, at: SiteId, up: &BTreeSet<SiteId>, turn: u64) -> Option<BTreeSet<SiteId>> {
        match self {
            Quorums::Cores { cores, preference } => some_cores(cores, preference, at, up),
            Quorums::Majority { sites, choice } => some_sites(sites, sites.len() + 1 - majority(sites.len()), *choice, up, turn),
            Quorums::WriteAll { sites } => {
                let nearest = Some(at).filter(|at| sites.contains(at) && up.contains(at));
                let any = || sites.iter().copied().find(|site| up.contains(site));
                nearest.or_else(any).map(|site| BTreeSet::from([site]))
            }
            Quorums::Tree { sites } => tree::read(sites, up),
            Quorums::Grid { sites } => grid::read(sites, up, turn as usize % sites.len()),
        }
    }

    /// The same for a transaction that writes.
    pub fn write(&self, at: SiteId, up: &BTreeSet<SiteId>, turn: u64) -> Option<BTreeSet<SiteId>> {
        match self {
            Quorums::Cores { cores, .. } if cores.contains(&at) => all_up(cores, up),
            Quorums::Cores { cores, preference } => some_cores(cores, preference, at, up),
            Quorums::Majority { sites, choice } => some_sites(sites, majority(sites.len()), *choice, up, turn),
            Quorums::WriteAll { sites } => all_up(sites, up),
            Quorums::Tree { sites } => tree::write(sites, up),
            Quorums::Grid { sites } => grid::write(sites, up, turn as usize % sites.len()),
        }
    }
}

fn all_up(sites: &[SiteId], up: &BTreeSet<SiteId>) -> Option<BTreeSet<SiteId>> {
    sites.iter().all(|site| up.contains(site)).then(|| sites.iter().copied().collect())
}

/// The site itself, and the first majority of the cores in its order that is up. Only sites of the configuration ask.
fn some_cores(cores: &[SiteId], preference: &BTreeMap<SiteId, Vec<SiteId>>, at: SiteId, up: &BTreeSet<SiteId>) -> Option<BTreeSet<SiteId>> {
    let order = preference.get(&at)?.iter().copied().filter(|core| up.contains(core));
    let mut quorum: BTreeSet<SiteId> = order.take(majority(cores.len())).collect();
    if quorum.len() < majority(cores.len()) || !up.contains(&at) {
        return None;
    }
    if !cores.contains(&at) {
        quorum.insert(at);
    }
    Some(quorum)
}

fn some_sites(sites: &[SiteId], count: usize, choice: Choice, up: &BTreeSet<SiteId>, turn: u64) -> Option<BTreeSet<SiteId>> {
    let mut order: Vec<SiteId> = sites.iter().copied().filter(|site| up.contains(site)).collect();
    if order.len() < count {
        return None;
    }
    match choice {
        Choice::Random => Rng::seeded(turn).shuffle(&mut order),
        Choice::RoundRobin => {
            let first = turn as usize % order.len();
            order.rotate_left(first);
        }
    }
    Some(order.into_iter().take(count).collect())
}
