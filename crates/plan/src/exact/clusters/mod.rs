//! Branch and bound over how many replicas each cluster of sites holds.
//!
//! The first node says that all replicas are among all sites. A node is branched by dividing one of its clusters into its two
//! parts, in every way that the replicas there can be divided; it ends where all clusters are single sites. Where sites are
//! alike, a cluster stands for all of them until the choice among them matters, if it ever does. Which cluster is divided
//! is tried out: the one whose division leaves the least to search.

mod bound;
mod hierarchy;
mod lengths;
mod prices;

use super::incumbent::better;
use super::{Bounds, Counters, Progress, Proof};
use crate::evaluate::Evaluator;
use crate::exhaustive::Best;
use crate::objective::Objective;
use crate::problem::Problem;
use bound::{Bound, Division, Held};
use hierarchy::Hierarchy;
use lengths::Lengths;
use prices::{Prices, Targets};

/// How many numbers the tables may hold.
const TABLES_MAX: usize = 100_000_000;
/// The share of the incumbent by which a bound that is lower leaves e times as much to search, inverted.
const WORK: f64 = 80.0;
/// Rounds of ascent at the root, and at every other node: prices go on from those of the node above.
const ROUNDS_AT_ROOT: u32 = 50;
const ROUNDS: u32 = 3;
/// Whether prices are worth looking at is tried so often for each number of sites chosen.
const PRICES_TRIED: u64 = 64;
/// They are worth it if they cut off one node of so many.
const PRICES_WORTH: u64 = 6;
/// Where they were not, they are looked at once in so many nodes all the same: the next part of the search may be another case.
const PRICES_AGAIN: u64 = 8;
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
    /// Unless they are left out.
    prices: Option<Prices>,
    /// How often prices were looked at, and how often they cut a node off, by the number of sites chosen.
    priced: Vec<(u64, u64)>,
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
    pub fn new(problem: &'p Problem, bounds: Bounds, best: Best, proven: u64, counters: Counters, keep_going: F) -> Search<'p, F> {
        let weights = match problem.objective() {
            Objective::RegionMean => vec![1; problem.clients().len()],
            _ => problem.weights().to_vec(),
        };
        let hierarchy = Hierarchy::new(problem, &weights, &best.replicas);
        let bound = Bound::new(problem, Lengths::new(problem, &hierarchy), &weights);
        let evaluator = Evaluator::new(problem);
        let prices = bounds.site_prices.then(|| Prices::new(problem, &hierarchy.0, &bound, &weights));
        Search {
            problem,
            evaluator,
            hierarchy,
            bound,
            prices,
            priced: vec![(0, 0); problem.replicas()],
            best,
            proven,
            counters,
            keep_going,
            stopped: false,
        }
    }

    pub fn run(mut self) -> Proof {
        let all = vec![Held { cluster: self.hierarchy.all(), replicas: self.problem.replicas() }];
        let targets = self.prices.as_ref().map(Prices::targets).unwrap_or_default();
        let left = self.visit(self.proven, all, &targets, true);
        let bound = if self.stopped { left.max(self.proven).min(self.best.cost) } else { self.best.cost };
        Proof { best: self.best, bound, complete: !self.stopped, counters: self.counters }
    }

    /// Looks at all placements that are `held`, which cost no less than `bound`, with prices from `targets`; what is left when
    /// the search is stopped costs no less than the result.
    fn visit(&mut self, bound: u64, held: Vec<Held>, targets: &Targets, root: bool) -> u64 {
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
        let mut targets = targets.clone();
        let mut priced = None;
        let (looked, cut) = self.priced[chosen.len()];
        let again = self.counters.nodes[chosen.len()].is_multiple_of(PRICES_AGAIN);
        let worth = again || looked < PRICES_TRIED || cut * PRICES_WORTH >= looked;
        if let Some(prices) = self.prices.as_mut().filter(|_| worth) {
            let rounds = if root { ROUNDS_AT_ROOT } else { ROUNDS };
            let value = prices.raise(&self.hierarchy.0, &self.bound, &held, &mut targets, rounds, self.best.cost as f64);
            self.priced[chosen.len()].0 += 1;
            if value > self.best.cost as f64 {
                self.priced[chosen.len()].1 += 1;
                self.counters.site_prices += 1;
                return u64::MAX;
            }
            priced = Some(value);
        }
        let bound = bound.max(priced.map_or(0, down));
        if root {
            self.proven = self.proven.max(bound);
        }
        let mut left = u64::MAX;
        let mut children = self.divide(&held, bound, priced).into_iter().peekable();
        while let Some((bound, child)) = children.next() {
            if self.hopeless(bound, &child) {
                self.counters.clusters += 1;
                continue;
            }
            left = left.min(self.visit(bound, child, &targets, false));
            if root && !self.stopped {
                let next = children.peek().map_or(self.best.cost, |next| next.0.min(self.best.cost));
                self.proven = self.proven.max(next);
            }
        }
        left
    }

    /// The children by the division that leaves the least to search, the most promising first. None costs less than `bound`;
    /// `priced` is what prices have said.
    fn divide(&mut self, held: &[Held], bound: u64, priced: Option<f64>) -> Children {
        let clusters = &self.hierarchy.0;
        let promise = |place: &usize| held[*place].replicas as f64 * clusters[held[*place].cluster].spread;
        let mut places: Vec<usize> = (0..held.len()).filter(|&place| clusters[held[place].cluster].parts.is_some()).collect();
        places.sort_by(|a, b| promise(b).total_cmp(&promise(a)));
        let mut best: Option<(f64, Children)> = None;
        for place in places.into_iter().take(TRIED_MAX) {
            let divisions = self.divisions(held[place], priced);
            let rest = [&held[..place], &held[place + 1..]].concat();
            let (work, children) = self.children(&rest, &divisions, bound);
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

    /// The divisions of `divided` that prices leave, with what they say of each.
    fn divisions(&self, divided: Held, priced: Option<f64>) -> Vec<(u64, Division)> {
        let clusters = &self.hierarchy.0;
        let parts = clusters[divided.cluster].parts.expect("a single site is not divided");
        let count = divided.replicas;
        let [first, second] = parts.map(|part| clusters[part].sites.len());
        let divide =
            |first: usize| Division([Held { cluster: parts[0], replicas: first }, Held { cluster: parts[1], replicas: count - first }]);
        let ways = count.saturating_sub(second)..=count.min(first);
        let Some((prices, priced)) = self.prices.as_ref().zip(priced) else {
            return ways.map(|first| (0, divide(first))).collect();
        };
        let gains = parts.map(|part| prices.largest(&clusters[part].sites, count));
        let gained = |first: usize| gains[0][first] + gains[1][count - first];
        let most = ways.clone().map(gained).fold(0.0, f64::max);
        let divisions = ways.map(|first| (priced + most - gained(first), divide(first)));
        let left = divisions.filter(|(priced, _)| *priced <= self.best.cost as f64);
        left.map(|(priced, division)| (down(priced), division)).collect()
    }

    /// Roughly how much there is to search below a bound, in proportion.
    fn work(&self, bound: u64) -> f64 {
        let gap = (self.best.cost - bound) as f64 / self.best.cost.max(1) as f64;
        (WORK * gap).exp()
    }

    /// The children by `divisions`, each with what prices say of it, next to the `rest`; and how much there is to search in
    /// them. Prices alike for all of them would hide what sets them apart, so they do not count in the latter.
    fn children(&mut self, rest: &[Held], divisions: &[(u64, Division)], bound: u64) -> (f64, Children) {
        let (mut work, mut children) = (0.0, Children::new());
        let by_clients = self.bound.of(rest, divisions.iter().map(|(_, division)| division));
        for (by_clients, (priced, division)) in by_clients.into_iter().zip(divisions) {
            let held = [division.held(), rest].concat();
            let bound = bound.max(by_clients).max(*priced);
            if !self.hopeless(bound, &held) {
                work += self.work(by_clients);
                children.push((bound, held));
            }
        }
        (work, children)
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

/// A cost that a bound proves, rounded down.
fn down(bound: f64) -> u64 {
    bound.max(0.0) as u64
}
