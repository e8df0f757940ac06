//! Which nodes are not looked at any further: for constraints, or for a bound other than prices.

use super::{Node, Search};
use crate::exact::Progress;
use crate::exact::covering::Coverage;
use crate::objective::Objective;

impl<F: FnMut(&Progress) -> bool> Search<'_, F> {
    /// Closes the sites that constraints exclude next to those chosen; whether there can be a placement.
    pub(super) fn admit(&self, node: &mut Node) -> bool {
        let problem = self.problem;
        let regions: Vec<usize> = node.chosen.iter().map(|&site| problem.candidates()[site]).collect();
        for (limit, groups) in problem.limits() {
            let full = |site: &usize| {
                let group = groups.of[problem.candidates()[*site]];
                regions.iter().filter(|&&region| groups.of[region] == group).count() >= *limit as usize
            };
            node.open.retain(|site| !full(site));
        }
        let free = problem.limits().is_empty() && problem.budget().is_none();
        node.chosen.len() + node.open.len() >= problem.replicas() && (free || problem.extendable(&regions))
    }

    /// Whether a bound other than prices says that nothing here is better.
    pub(super) fn cut_off(&mut self, node: &mut Node, missing: usize, root: bool) -> bool {
        let a_sum = matches!(self.problem.objective(), Objective::Mean | Objective::RegionMean);
        if let Some(leader) = &mut self.leader {
            node.bound = node.bound.max(leader.bound(&node.chosen, &node.open, missing));
            if self.hopeless(node, missing) {
                self.counters.leader += 1;
                return true;
            }
        }
        // Prices, where they are used, are the stronger bound but at the root, and take no longer.
        if (self.bounds.order_statistic && (root || self.duals.is_none())) || (self.bounds.covering && !a_sum) {
            let bound = self.order_statistic.bound(self.problem, &self.relaxation, &node.chosen, &node.open, missing);
            node.bound = node.bound.max(bound);
            if self.hopeless(node, missing) {
                self.counters.order_statistic += 1;
                return true;
            }
        }
        if root {
            self.proven = self.proven.max(node.bound).min(self.best.cost);
        }
        if self.bounds.covering && !a_sum {
            // Of a tie only what comes first is of use; nothing is less than a cost of zero.
            let tie = self.best.cost == 0 || self.may_come_first(node, missing);
            if !self.serves(node, missing, self.best.cost - u64::from(!tie)) {
                self.counters.covering += 1;
                return true;
            }
        }
        false
    }

    /// Whether nothing that completes `node` is preferred to the best placement.
    pub(super) fn hopeless(&self, node: &Node, missing: usize) -> bool {
        node.bound > self.best.cost || (node.bound == self.best.cost && !self.may_come_first(node, missing))
    }

    /// Closes the sites with which too few clients have a latency of at most `most`; whether there can be a placement.
    pub(super) fn serves(&mut self, node: &mut Node, missing: usize, most: u64) -> bool {
        let needed = match self.problem.objective() {
            Objective::Percentile(milli) => self.problem.objective().clients_covered(milli, self.problem.weights()),
            _ => self.problem.weights().iter().sum(),
        };
        let clients = self.problem.weights();
        for place in 0..self.relaxation.families.len() {
            let partial = (&node.chosen[..], &node.open[..], missing);
            let coverage = Coverage::new(&self.relaxation, place, clients, &self.order_statistic, most, partial);
            let mut kept = coverage.may_serve(needed, missing).into_iter();
            let before = node.open.len();
            node.open.retain(|_| kept.next().unwrap_or(true));
            self.counters.sites_fixed += (before - node.open.len()) as u64;
            if node.open.len() < missing {
                return false;
            }
        }
        true
    }

    /// Whether a completion of `node` that costs as much as the incumbent may come before it lexicographically.
    pub(super) fn may_come_first(&self, node: &Node, missing: usize) -> bool {
        let mut open = node.open.clone();
        open.sort_unstable();
        let mut first: Vec<usize> = node.chosen.iter().chain(&open[..missing]).map(|&site| self.problem.candidates()[site]).collect();
        first.sort_unstable();
        first < self.best.replicas
    }
}
