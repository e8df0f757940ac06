//! What prices say of a node: whether it is cut off, which sites are closed, and in which order its children come.

use super::{Node, Search, down};
use crate::exact::Progress;
use crate::exact::site_prices::{Bound, LANES, Partial};

/// Rounds of ascent by the number of sites chosen; at the root, if a round takes little.
const ROUNDS: [u32; 5] = [200, 60, 12, 10, 6];
/// Rounds of ascent with more sites chosen.
const ROUNDS_DEEP: u32 = 4;
/// How much work (sites times order statistics) the rounds at the root may take.
const ROOT_WORK_MAX: usize = 6_000_000_000;
/// Whether majorities that meet are worth looking at is tried so often for each number of sites chosen.
const PAIRS_TRIED: u64 = 16;
/// They are worth it if they cut off one node of so many.
const PAIRS_WORTH: u64 = 3;

impl<F: FnMut(&Progress) -> bool> Search<'_, F> {
    /// The sites to choose next, best first, each with a bound of all placements that it is the first to be chosen in.
    pub(super) fn children(&mut self, node: &mut Node, missing: usize, root: bool) -> Vec<(usize, f64)> {
        if self.duals.is_none() {
            return node.open.iter().map(|&site| (site, node.bound as f64)).collect();
        }
        let depth = node.chosen.len();
        let (looked, cut) = self.pairs[depth];
        let pairs = self.groups.len() > 1 && missing > 1 && (root || looked < PAIRS_TRIED || cut * PAIRS_WORTH >= looked);
        let mut kept: Vec<Bound> = Vec::new();
        for groups in (0..=usize::from(pairs)).rev() {
            let mut bound = self.ascend(node, groups, missing, root);
            node.bound = node.bound.max(down(bound.value));
            if groups == 1 {
                self.pairs[depth].0 += 1;
                self.pairs[depth].1 += u64::from(bound.value > self.best.cost as f64);
            }
            if bound.value > self.best.cost as f64 {
                *(if groups == 1 { &mut self.counters.intersection } else { &mut self.counters.site_prices }) += 1;
                return Vec::new();
            }
            if self.bounds.fixing {
                self.fix(node, missing, &mut bound, &mut kept);
                if node.open.len() < missing {
                    return Vec::new();
                }
            }
            kept.push(bound);
        }
        order(node, missing, &kept)
    }

    /// Raises the bound of `node` by prices of one choice of groups. At the root that may take long, so the caller is asked.
    pub(super) fn ascend(&mut self, node: &mut Node, groups: usize, missing: usize, root: bool) -> Bound {
        let active = std::mem::take(&mut self.groups[groups]);
        let mut duals = self.duals.take().expect("prices are used");
        let statistics: usize = active.iter().map(|&group| duals.groups[group].blocks * LANES).sum();
        let affordable = u32::try_from(ROOT_WORK_MAX / (statistics * node.open.len()).max(1)).unwrap_or(u32::MAX).max(1);
        let rounds = match missing {
            1 => 1,
            _ => ROUNDS.get(node.chosen.len()).copied().unwrap_or(ROUNDS_DEEP).min(affordable),
        };
        let incumbent = self.best.cost as f64;
        let partial = Partial { ranked: &node.ranked, open: &node.open, missing };
        let bound = duals.ascend(&active, &partial, &mut node.targets, rounds, incumbent, |value| {
            if root {
                self.proven = self.proven.max(down(value)).min(self.best.cost);
                self.ask();
            }
            !self.stopped
        });
        self.groups[groups] = active;
        self.duals = Some(duals);
        bound
    }

    /// Closes the sites that are in no better placement, by the reduced costs of `bound`.
    pub(super) fn fix(&mut self, node: &mut Node, missing: usize, bound: &mut Bound, others: &mut [Bound]) {
        let mut largest = bound.gains.clone();
        largest.select_nth_unstable_by(missing - 1, |a, b| b.total_cmp(a));
        let rest: f64 = largest[..missing - 1].iter().sum();
        let kept: Vec<bool> = bound.gains.iter().map(|gain| bound.targets - rest - gain <= self.best.cost as f64).collect();
        self.counters.sites_fixed += kept.iter().filter(|kept| !**kept).count() as u64;
        let mut of_site = kept.iter();
        node.open.retain(|_| *of_site.next().expect("a gain per open site"));
        for bound in others.iter_mut().chain([bound]) {
            let mut of_gain = kept.iter();
            bound.gains.retain(|_| *of_gain.next().expect("a gain per open site"));
        }
    }
}

/// The open sites by the gains of the best of `bounds`, with a bound each: what it gains itself, and the largest gains of
/// those after it.
fn order(node: &Node, missing: usize, bounds: &[Bound]) -> Vec<(usize, f64)> {
    let by = bounds.last().expect("prices were looked at");
    let mut order: Vec<usize> = (0..node.open.len()).collect();
    order.sort_by(|&a, &b| by.gains[b].total_cmp(&by.gains[a]));
    let mut children: Vec<(usize, f64)> = order.iter().map(|&index| (node.open[index], 0.0)).collect();
    for bound in bounds {
        // The largest gains of the sites after the one at hand, ascending.
        let mut after: Vec<f64> = Vec::new();
        for (child, &index) in children.iter_mut().zip(&order).rev() {
            let gain = bound.gains[index];
            child.1 = child.1.max(bound.targets - gain - after.iter().sum::<f64>());
            after.insert(after.partition_point(|&other| other < gain), gain);
            if after.len() > missing - 1 {
                after.remove(0);
            }
        }
    }
    children
}
