//! Whether new quorums are worth their reconciliation (equations 9 and 10).
//!
//! Equation 10 as printed takes the product of the promoted sites' costs: with none promoted that is 1, more than any gain, and no slave
//! would ever be assigned anew. It is the sum here.

use super::system::Quorums;
use rhumb_core::SiteId;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// What new quorums gain and cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// By how much the mean score of quorums rises.
    pub gain: f64,
    /// What the promoted sites have to take over: the sum of each one's share of all objects.
    pub cost: f64,
}

impl Verdict {
    /// True if the gain is greater.
    pub fn is_worth_it(self) -> bool {
        self.gain > self.cost
    }
}

/// The share of all `objects` that a promoted site has to update.
pub fn reconciliation_cost(to_update: usize, objects: usize) -> f64 {
    if objects == 0 { 0.0 } else { to_update as f64 / objects as f64 }
}

/// Holds `new` against `old`. `cost` has the reconciliation cost of sites; one that is promoted and not in it costs 1, everything.
pub fn weigh(old: &Quorums, new: &Quorums, scores: &BTreeMap<SiteId, f64>, cost: &BTreeMap<SiteId, f64>) -> Verdict {
    let before: BTreeSet<SiteId> = old.cores().iter().copied().collect();
    let promoted = new.cores().iter().filter(|core| !before.contains(core));
    Verdict {
        gain: mean_score(new, scores) - mean_score(old, scores),
        cost: promoted.map(|core| cost.get(core).copied().unwrap_or(1.0)).fold(0.0, |sum, cost| sum + cost),
    }
}

/// The mean over all sites' read and write quorums of the product of their scores (equation 9). A site itself is left out of
/// its quorums as a slave: it is in all of them, before and after. A site without a score counts as one of zero.
pub fn mean_score(quorums: &Quorums, scores: &BTreeMap<SiteId, f64>) -> f64 {
    let all = core_parts(quorums);
    let score = |cores: &Vec<SiteId>| cores.iter().map(|site| scores.get(site).copied().unwrap_or(0.0)).product::<f64>();
    if all.is_empty() { 0.0 } else { all.iter().map(score).sum::<f64>() / all.len() as f64 }
}

/// The sites that are in more quorums of `new` than of `old` as cores, and those that are in fewer.
pub fn asked_more_and_less(old: &Quorums, new: &Quorums) -> (BTreeSet<SiteId>, BTreeSet<SiteId>) {
    let count = |quorums: &Quorums, site: SiteId| core_parts(quorums).iter().filter(|cores| cores.contains(&site)).count();
    let members: BTreeSet<SiteId> = old.members().union(&new.members()).copied().collect();
    let of = |wanted: Ordering| members.iter().copied().filter(|site| count(new, *site).cmp(&count(old, *site)) == wanted).collect();
    (of(Ordering::Greater), of(Ordering::Less))
}

/// The cores of each read and write quorum of all sites.
fn core_parts(quorums: &Quorums) -> Vec<Vec<SiteId>> {
    let members = quorums.members();
    let of_site = |site: &SiteId| [quorums.read(*site, &members, 0), quorums.write(*site, &members, 0)];
    let cores = |quorum: BTreeSet<SiteId>| quorum.into_iter().filter(|site| quorums.cores().contains(site)).collect();
    members.iter().flat_map(of_site).flatten().map(cores).collect()
}
