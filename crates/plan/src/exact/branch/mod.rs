//! Branch and bound, depth first.
//!
//! A node chooses sites one after another; its children choose, each, one more, and close those of the children before
//! them, so every placement belongs to one path. Children come in the order of their gain: the first leads to good
//! placements early, and the last have only poor sites left, which their parent's prices cut off without a look.
//! `cutting` says which nodes are not looked at any further, `pricing` what prices say of a node's children.

mod cutting;
mod pricing;

use super::incumbent::{better, incumbent};
use super::intersection::group_of_pairs;
use super::leader::Leader;
use super::order_statistic::OrderStatistic;
use super::relaxation::Relaxation;
use super::site_prices::{Duals, Ranked, Targets};
use super::{Bounds, Counters, Progress, Proof};
use crate::evaluate::Evaluator;
use crate::exhaustive::Best;
use crate::objective::Objective;
use crate::problem::Problem;

/// A partial placement.
struct Node {
    /// The sites chosen.
    chosen: Vec<usize>,
    /// The sites that may be chosen besides.
    open: Vec<usize>,
    ranked: Ranked,
    targets: Targets,
    /// What nothing here goes below.
    bound: u64,
}

/// A search under way.
pub(super) struct Search<'p, F> {
    problem: &'p Problem,
    evaluator: Evaluator<'p>,
    relaxation: Relaxation,
    bounds: Bounds,
    order_statistic: OrderStatistic,
    leader: Option<Leader>,
    duals: Option<Duals>,
    /// The groups whose prices count, without pairs and with them.
    groups: Vec<Vec<usize>>,
    /// How often pairs were looked at, and how often they cut a node off, by the number of sites chosen.
    pairs: Vec<(u64, u64)>,
    /// Room for ranked lengths, to be used again.
    spare: Vec<Ranked>,
    best: Best,
    proven: u64,
    counters: Counters,
    keep_going: F,
    stopped: bool,
}

impl<'p, F: FnMut(&Progress) -> bool> Search<'p, F> {
    pub fn new(problem: &'p Problem, bounds: Bounds, keep_going: F) -> Search<'p, F> {
        let relaxation = Relaxation::new(problem);
        let weights = match problem.objective() {
            Objective::RegionMean => vec![1; problem.clients().len()],
            _ => problem.weights().to_vec(),
        };
        let a_sum = matches!(problem.objective(), Objective::Mean | Objective::RegionMean);
        let mut duals = (bounds.site_prices && a_sum).then(|| Duals::new(problem, &relaxation, &weights));
        let mut groups = Vec::new();
        if let Some(duals) = &mut duals {
            let alone: Vec<usize> = (0..duals.groups.len()).collect();
            groups.push(alone.clone());
            let majorities: Vec<usize> = if bounds.intersection {
                alone.iter().copied().filter(|&place| relaxation.families[place].of_majority).collect()
            } else {
                Vec::new()
            };
            if !majorities.is_empty() {
                let mut paired: Vec<usize> = alone.into_iter().filter(|place| !majorities.contains(place)).collect();
                paired.extend(duals.groups.len()..duals.groups.len() + majorities.len());
                groups.push(paired);
                let pairs = majorities.iter().map(|&place| group_of_pairs(&relaxation, place, &weights));
                duals.groups.extend(pairs);
            }
        }
        Search {
            problem,
            evaluator: Evaluator::new(problem),
            order_statistic: OrderStatistic::new(&relaxation),
            relaxation,
            bounds,
            leader: Leader::new(problem).filter(|_| bounds.leader),
            duals,
            groups,
            pairs: vec![(0, 0); problem.replicas() + 1],
            spare: Vec::new(),
            best: incumbent(problem),
            proven: 0,
            counters: Counters { nodes: vec![0; problem.replicas() + 1], ..Counters::default() },
            keep_going,
            stopped: false,
        }
    }

    pub fn run(mut self) -> Proof {
        let site = |region: &usize| self.problem.candidates().binary_search(region);
        let chosen: Vec<usize> = self.problem.required().iter().map(|region| site(region).expect("a required region qualifies")).collect();
        let open = (0..self.relaxation.sites).filter(|site| !chosen.contains(site)).collect();
        let best: Vec<usize> = self.best.replicas.iter().map(|region| site(region).expect("a replica is a candidate")).collect();
        let (mut ranked, mut targets) = (Ranked::new(), Targets(Vec::new()));
        if let Some(duals) = &self.duals {
            ranked = duals.nothing_ranked();
            chosen.iter().for_each(|&site| duals.rank(&mut ranked, site));
            targets = duals.targets(&best);
        }
        let left = self.visit(&mut Node { chosen, open, ranked, targets, bound: 0 }, true);
        let bound = if self.stopped { left.max(self.proven).min(self.best.cost) } else { self.best.cost };
        Proof { best: self.best, bound, complete: !self.stopped, counters: self.counters }
    }

    /// Looks at everything that completes `node`; what is left when the search is stopped goes no lower than the result.
    fn visit(&mut self, node: &mut Node, root: bool) -> u64 {
        self.counters.nodes[node.chosen.len()] += 1;
        self.ask();
        if self.stopped {
            return node.bound;
        }
        if !self.admit(node) {
            self.counters.constraints += 1;
            return u64::MAX;
        }
        let missing = self.problem.replicas() - node.chosen.len();
        if missing == 0 {
            self.consider(&node.chosen);
            return u64::MAX;
        }
        if self.cut_off(node, missing, root) {
            return u64::MAX;
        }
        let children = self.children(node, missing, root);
        if root {
            self.proven = self.proven.max(node.bound).min(self.best.cost);
        }
        self.branch(node, missing, &children, root)
    }

    /// Visits the `children`, sites with a bound each, in their order.
    fn branch(&mut self, node: &Node, missing: usize, children: &[(usize, f64)], root: bool) -> u64 {
        let mut left = u64::MAX;
        // What the children from each one on go no lower than.
        let mut from: Vec<u64> = children
            .iter()
            .rev()
            .scan(u64::MAX, |least, child| {
                *least = (*least).min(down(child.1));
                Some(*least)
            })
            .collect();
        from.reverse();
        for (index, &(site, bound)) in children.iter().enumerate() {
            if index + missing > children.len() {
                break;
            }
            if bound > self.best.cost as f64 {
                self.counters.children_cut += 1;
                continue;
            }
            let bound = node.bound.max(down(bound));
            if self.stopped {
                return left.min(node.bound.max(from[index]));
            }
            let mut chosen = node.chosen.clone();
            chosen.push(site);
            if missing == 1 {
                self.consider(&chosen);
                continue;
            }
            let open: Vec<usize> = children[index + 1..].iter().map(|child| child.0).collect();
            let mut ranked = self.spare.pop().unwrap_or_default();
            if let Some(duals) = &self.duals {
                duals.ranked_with(&node.ranked, site, &mut ranked);
            }
            let mut child = Node { chosen, open, ranked, targets: node.targets.clone(), bound };
            left = left.min(self.visit(&mut child, false));
            self.spare.push(child.ranked);
            if root
                && !self.stopped
                && let Some(&from) = from.get(index + 1)
            {
                self.proven = self.proven.max(from.min(self.best.cost));
            }
        }
        left
    }

    /// Evaluates a complete placement.
    fn consider(&mut self, chosen: &[usize]) {
        self.counters.placements += 1;
        let mut replicas: Vec<usize> = chosen.iter().map(|&site| self.problem.candidates()[site]).collect();
        replicas.sort_unstable();
        if let Some(cost) = self.evaluator.cost(&replicas) {
            let found = Best { replicas, cost };
            if better(&found, &self.best) {
                self.best = found;
            }
        }
    }

    fn ask(&mut self) {
        let progress = Progress { nodes: self.counters.all_nodes(), incumbent: self.best.cost, bound: self.proven };
        self.stopped = self.stopped || !(self.keep_going)(&progress);
    }
}

/// A cost that a bound proves, rounded down.
fn down(bound: f64) -> u64 {
    bound.max(0.0) as u64
}
