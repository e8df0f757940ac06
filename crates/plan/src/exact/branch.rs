//! Branch and bound, depth first.
//!
//! A node chooses sites one after another; its children choose, each, one more, and close those of the children before
//! them, so every placement belongs to one path. Children come in the order of their gain: the first leads to good
//! placements early, and the last have only poor sites left, which their parent's prices cut off without a look.

use super::covering::Coverage;
use super::incumbent::{better, incumbent};
use super::intersection::Pairs;
use super::leader::Leader;
use super::order_statistic::OrderStatistic;
use super::relaxation::Relaxation;
use super::site_prices::{Bound, Duals, LANES, Partial, Ranked, Targets};
use super::{Bounds, Counters, Progress, Proof};
use crate::evaluate::Evaluator;
use crate::exhaustive::Best;
use crate::objective::Objective;
use crate::problem::Problem;

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
            // Of several families of majorities the first, that of commits, is paired; the others stay as they are.
            let paired = relaxation.families.iter().position(|family| family.of_majority).filter(|_| bounds.intersection);
            groups.push(alone.clone());
            if let Some(paired) = paired {
                groups.push(alone.iter().copied().filter(|&group| group != paired).chain([duals.groups.len()]).collect());
                duals.groups.push(Pairs::group(&relaxation, paired, &weights));
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

    /// Closes the sites that constraints exclude next to those chosen; whether there can be a placement.
    fn admit(&self, node: &mut Node) -> bool {
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
    fn cut_off(&mut self, node: &mut Node, missing: usize, root: bool) -> bool {
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
    fn hopeless(&self, node: &Node, missing: usize) -> bool {
        node.bound > self.best.cost || (node.bound == self.best.cost && !self.may_come_first(node, missing))
    }

    /// Closes the sites with which too few clients have a latency of at most `most`; whether there can be a placement.
    fn serves(&mut self, node: &mut Node, missing: usize, most: u64) -> bool {
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

    /// The sites to choose next, best first, each with a bound of all placements that it is the first to be chosen in.
    fn children(&mut self, node: &mut Node, missing: usize, root: bool) -> Vec<(usize, f64)> {
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
    fn ascend(&mut self, node: &mut Node, groups: usize, missing: usize, root: bool) -> Bound {
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
    fn fix(&mut self, node: &mut Node, missing: usize, bound: &mut Bound, others: &mut [Bound]) {
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

    /// Whether a completion of `node` that costs as much as the incumbent may come before it lexicographically.
    fn may_come_first(&self, node: &Node, missing: usize) -> bool {
        let mut open = node.open.clone();
        open.sort_unstable();
        let mut first: Vec<usize> = node.chosen.iter().chain(&open[..missing]).map(|&site| self.problem.candidates()[site]).collect();
        first.sort_unstable();
        first < self.best.replicas
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

/// A cost that a bound proves, rounded down.
fn down(bound: f64) -> u64 {
    bound.max(0.0) as u64
}
