//! Branch and bound over how many replicas each cluster of sites holds.
//!
//! The first node says that all replicas are among all sites. A node is branched by dividing one of its clusters into its two
//! parts, in every way that the replicas there can be divided; it ends where all clusters are single sites. Where sites are
//! alike, a cluster stands for all of them until the choice among them matters, if it ever does. Which cluster is divided
//! is tried out: the one whose division leaves the least to search.

mod bound;
mod hierarchy;
mod lengths;

use super::incumbent::better;
use super::{Counters, Progress, Proof};
use crate::evaluate::Evaluator;
use crate::exhaustive::Best;
use crate::objective::Objective;
use crate::problem::Problem;
use bound::{Bound, Division, Held};
use hierarchy::Hierarchy;
use lengths::Lengths;

/// How many numbers the tables may hold.
const TABLES_MAX: usize = 100_000_000;
/// The share of the incumbent by which a bound that is lower leaves e times as much to search, inverted.
const WORK: f64 = 40.0;
/// How many clusters of a node are tried.
const TRIED_MAX: usize = 4;

/// Whether clusters of sites are of use: the objective is a sum over clients, no partition has a leader, and the tables are
/// not too large.
pub(super) fn suit(problem: &Problem) -> bool {
    let clusters = 2 * problem.candidates().len() - 1;
    let tables = clusters * problem.replicas() * clusters.max(problem.clients().len());
    let a_sum = matches!(problem.objective(), Objective::Mean | Objective::RegionMean);
    a_sum && !problem.model().protocol.has_leaders() && tables <= TABLES_MAX
}

/// A search under way.
pub(super) struct Search<'p, F> {
    problem: &'p Problem,
    evaluator: Evaluator<'p>,
    hierarchy: Hierarchy,
    bound: Bound,
    best: Best,
    proven: u64,
    counters: Counters,
    keep_going: F,
    stopped: bool,
}

/// A way to branch: the children that are left, with a bound each.
type Children = Vec<(u64, Vec<Held>)>;

impl<'p, F: FnMut(&Progress) -> bool> Search<'p, F> {
    /// A search that begins with the placement `best`, and knows that none costs less than `proven`.
    pub fn new(problem: &'p Problem, best: Best, proven: u64, counters: Counters, keep_going: F) -> Search<'p, F> {
        let weights = match problem.objective() {
            Objective::RegionMean => vec![1; problem.clients().len()],
            _ => problem.weights().to_vec(),
        };
        let hierarchy = Hierarchy::new(problem, &weights);
        let bound = Bound::new(problem, Lengths::new(problem, &hierarchy), &weights);
        let evaluator = Evaluator::new(problem);
        Search { problem, evaluator, hierarchy, bound, best, proven, counters, keep_going, stopped: false }
    }

    pub fn run(mut self) -> Proof {
        let all = vec![Held { cluster: self.hierarchy.all(), replicas: self.problem.replicas() }];
        let left = self.visit(self.proven, all, true);
        let bound = if self.stopped { left.max(self.proven).min(self.best.cost) } else { self.best.cost };
        Proof { best: self.best, bound, complete: !self.stopped, counters: self.counters }
    }

    /// Looks at all placements that are `held`, which cost no less than `bound`; what is left when the search is stopped costs
    /// no less than the result.
    fn visit(&mut self, bound: u64, mut held: Vec<Held>, root: bool) -> u64 {
        let chosen: Vec<usize> = self.single(&held).collect();
        self.counters.nodes[chosen.len()] += 1;
        let progress = Progress { nodes: self.counters.all_nodes(), incumbent: self.best.cost, bound: self.proven };
        self.stopped = self.stopped || !(self.keep_going)(&progress);
        if self.stopped {
            return bound;
        }
        let free = self.problem.limits().is_empty() && self.problem.budget().is_none() && self.problem.required().is_empty();
        if !free && !self.problem.extendable(&chosen) {
            self.counters.constraints += 1;
            return u64::MAX;
        }
        if chosen.len() == self.problem.replicas() {
            self.consider(chosen);
            return u64::MAX;
        }
        let mut left = u64::MAX;
        let mut children = self.divide(&mut held).into_iter().peekable();
        while let Some((bound, child)) = children.next() {
            if self.hopeless(bound, &child) {
                self.counters.clusters += 1;
                continue;
            }
            left = left.min(self.visit(bound, child, false));
            if root && !self.stopped {
                let next = children.peek().map_or(self.best.cost, |next| next.0.min(self.best.cost));
                self.proven = self.proven.max(next);
            }
        }
        left
    }

    /// The children by the division that leaves the least to search, the most promising first.
    fn divide(&mut self, held: &mut Vec<Held>) -> Children {
        let clusters = &self.hierarchy.0;
        let single = |held: &Held| clusters[held.cluster].parts.is_none();
        let promise = |held: &Held| held.replicas as f64 * clusters[held.cluster].spread;
        held.sort_by(|a, b| single(a).cmp(&single(b)).then(promise(b).total_cmp(&promise(a))));
        let tried = held.iter().take_while(|held| !single(held)).count().min(TRIED_MAX);
        let mut best: Option<(f64, Children)> = None;
        for place in 0..tried {
            let divided = held.swap_remove(place);
            let children = self.children(held, divided);
            held.push(divided);
            let last = held.len() - 1;
            held.swap(place, last);
            let work: f64 = children.iter().map(|child| self.work(child.0)).sum();
            if best.as_ref().is_none_or(|best| work < best.0) {
                best = Some((work, children));
            }
            if work == 0.0 {
                break;
            }
        }
        let mut children = best.expect("a cluster is not a single site").1;
        // Of equal bounds, first what may be lexicographically first: all others are then hopeless.
        children.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| self.first(&a.1).cmp(&self.first(&b.1))));
        children
    }

    /// Roughly how much there is to search below a bound, in proportion.
    fn work(&self, bound: u64) -> f64 {
        let gap = (self.best.cost - bound) as f64 / self.best.cost.max(1) as f64;
        (WORK * gap).exp()
    }

    /// The children by the division of `divided`, next to the `rest`.
    fn children(&mut self, rest: &[Held], divided: Held) -> Children {
        let clusters = &self.hierarchy.0;
        let parts = clusters[divided.cluster].parts.expect("a single site is not divided");
        let [first, second] = parts.map(|part| clusters[part].sites.len());
        let least = divided.replicas.saturating_sub(second);
        let divide = |replicas| [(parts[0], replicas), (parts[1], divided.replicas - replicas)];
        let divisions = (least..=divided.replicas.min(first)).map(divide);
        let divisions: Vec<Division> =
            divisions.map(|parts| Division(parts.map(|(cluster, replicas)| Held { cluster, replicas }))).collect();
        let mut children = Children::new();
        let bounds = self.bound.of(rest, &divisions).to_vec();
        for (bound, division) in bounds.into_iter().zip(divisions) {
            if bound > self.best.cost {
                continue;
            }
            let held = [division.held(), rest].concat();
            if bound < self.best.cost || self.may_come_first(&held) {
                children.push((bound, held));
            }
        }
        children
    }

    /// Whether nothing that is `held` is preferred to the best placement.
    fn hopeless(&self, bound: u64, held: &[Held]) -> bool {
        bound > self.best.cost || (bound == self.best.cost && !self.may_come_first(held))
    }

    /// Whether what is `held` may come before the best placement lexicographically.
    fn may_come_first(&self, held: &[Held]) -> bool {
        self.first(held) < self.best.replicas
    }

    /// The lexicographically first placement that is `held`.
    fn first(&self, held: &[Held]) -> Vec<usize> {
        let sites = held.iter().flat_map(|held| &self.hierarchy.0[held.cluster].sites[..held.replicas]);
        let mut first: Vec<usize> = sites.map(|&site| self.problem.candidates()[site]).collect();
        first.sort_unstable();
        first
    }

    /// The regions that are certain to hold a replica: the single sites among what is `held`.
    fn single(&self, held: &[Held]) -> impl Iterator<Item = usize> {
        let clusters = held.iter().map(|held| &self.hierarchy.0[held.cluster]).filter(|cluster| cluster.parts.is_none());
        clusters.map(|cluster| self.problem.candidates()[cluster.sites[0]])
    }

    /// Evaluates a placement.
    fn consider(&mut self, mut replicas: Vec<usize>) {
        self.counters.placements += 1;
        replicas.sort_unstable();
        if let Some(cost) = self.evaluator.cost(&replicas) {
            let found = Best { replicas, cost };
            if better(&found, &self.best) {
                self.best = found;
            }
        }
    }
}
