//! The best placement with a proof, and the best found so far with a proven gap.
//!
//! A lower bound of all placements that a node stands for cuts the node off once it exceeds the incumbent. There are two
//! kinds of nodes. In `clusters`, a node says how many replicas each cluster of sites holds, from all sites together down to
//! single ones. In `branch`, a node has chosen sites and closed sites. Each bound has a file with the proof of its soundness:
//!
//! | bound | file | for |
//! |---|---|---|
//! | what clusters of sites are at best for each client | `clusters/bound` | sums over clients, without leaders |
//! | a price per site: clients share what clusters hold | `clusters/prices` | the same |
//! | what each client could have at best | `order_statistic` | every objective |
//! | a price per site: clients share the missing picks | `site_prices` | sums over clients |
//! | two majorities meet | `intersection` | sums over clients |
//! | clients that can be served in time | `covering` | worst client, percentile |
//! | one member leads all | `leader` | [`Protocol::OneLeader`](crate::Protocol::OneLeader) |
//!
//! All but the first rest on `relaxation`: latencies bounded below by order statistics of lengths to sites. Clusters are
//! searched wherever they suit and their tables fit; with many sites, prices bound the whole first. Bounds only ever cut
//! off what is provably no better; placements are compared by their exact integer cost, and of equally good ones the
//! lexicographically first is found, as by [`exhaustive`](crate::exhaustive()). `incumbent` gives a good placement to
//! start from.

mod branch;
mod clusters;
mod covering;
mod incumbent;
mod intersection;
mod leader;
mod order_statistic;
mod relaxation;
mod relayed;
mod site_prices;

use crate::exhaustive::Best;
use crate::problem::Problem;

/// With so many sites, prices bound all placements before clusters are searched. With fewer, that search ends as soon.
const PRICED_FIRST_MIN: usize = 100;

/// Which bounds a search uses. All but a few of them may be left out to see what each buys; the result is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How many replicas each cluster of sites holds.
    pub clusters: bool,
    /// What each client could have at best.
    pub order_statistic: bool,
    /// A price per site, in the search by sites and among clusters.
    pub site_prices: bool,
    /// Two majorities meet. Needs prices.
    pub intersection: bool,
    /// Sites closed because no better placement holds them. Needs prices.
    pub fixing: bool,
    /// Clients that can be served in time.
    pub covering: bool,
    /// One member leads all.
    pub leader: bool,
}

/// What was cut off by what, in nodes unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Nodes looked at, by the number of sites chosen.
    pub nodes: Vec<u64>,
    /// Cut off by what clusters of sites are at best.
    pub clusters: u64,
    /// Cut off by what each client could have at best.
    pub order_statistic: u64,
    /// Cut off by prices of sites.
    pub site_prices: u64,
    /// Cut off because two majorities meet.
    pub intersection: u64,
    /// Cut off because too few clients can be served in time.
    pub covering: u64,
    /// Cut off because one member leads all.
    pub leader: u64,
    /// Cut off because constraints admit no completion.
    pub constraints: u64,
    /// Sites closed for a subtree because no better placement holds them.
    pub sites_fixed: u64,
    /// Children never looked at, for their parent's prices said enough.
    pub children_cut: u64,
    /// Complete placements evaluated, apart from those of the heuristics.
    pub placements: u64,
}

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Nodes looked at.
    pub nodes: u64,
    /// The objective of the best placement so far.
    pub incumbent: u64,
    /// What no placement goes below.
    pub bound: u64,
}

/// What a search found, and what it proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The best placement found; of equally good ones, the lexicographically first if the proof is complete.
    pub best: Best,
    /// What no placement goes below: the objective of the best, if the proof is complete.
    pub bound: u64,
    /// Whether the best is proven to be that.
    pub complete: bool,
    /// What was cut off by what.
    pub counters: Counters,
}

impl Bounds {
    /// All of them.
    pub const ALL: Bounds =
        Bounds { clusters: true, order_statistic: true, site_prices: true, intersection: true, fixing: true, covering: true, leader: true };
    /// None: every placement is looked at.
    pub const NONE: Bounds = Bounds {
        clusters: false,
        order_statistic: false,
        site_prices: false,
        intersection: false,
        fixing: false,
        covering: false,
        leader: false,
    };
}

impl Proof {
    /// By how much the best found may exceed the best there is, as a share of the former.
    pub fn gap(&self) -> f64 {
        if self.best.cost == 0 { 0.0 } else { (self.best.cost - self.bound) as f64 / self.best.cost as f64 }
    }
}

impl Counters {
    /// All nodes looked at.
    pub fn all_nodes(&self) -> u64 {
        self.nodes.iter().sum()
    }
}

/// The best of all placements, as [`exhaustive`](crate::exhaustive()) finds it.
pub fn exact(problem: &Problem) -> Best {
    branch_and_bound(problem, Bounds::ALL, |_| true).best
}

/// The best placement that is found while `keep_going` says yes, and how much better any other can be. It is asked at every
/// node, and is where a caller looks at a clock or draws a bar.
pub fn branch_and_bound(problem: &Problem, bounds: Bounds, mut keep_going: impl FnMut(&Progress) -> bool) -> Proof {
    if !bounds.clusters || !clusters::suit(problem) {
        return branch::Search::new(problem, bounds, keep_going).run();
    }
    if problem.candidates().len() < PRICED_FIRST_MIN {
        let counters = Counters { nodes: vec![0; problem.replicas() + 1], ..Counters::default() };
        return clusters::Search::new(problem, bounds, incumbent::incumbent(problem), 0, counters, keep_going).run();
    }
    let mut refused = false;
    let first_node = |progress: &Progress| {
        refused = refused || (progress.nodes <= 1 && !keep_going(progress));
        progress.nodes <= 1 && !refused
    };
    let priced = branch::Search::new(problem, bounds, first_node).run();
    if priced.complete || refused {
        return priced;
    }
    clusters::Search::new(problem, bounds, priced.best, priced.bound, priced.counters, keep_going).run()
}
