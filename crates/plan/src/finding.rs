//! What any of the searches found, in one form: the placement, what is proven of it, and what that took.

use crate::exact::Proof;
use crate::exhaustive::{Best, Exhausted};
use crate::floor::floor;
use crate::greedy::greedy;
use crate::problem::Problem;
use crate::weighted::weighted;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The placement and its objective.
    pub best: Best,
    /// What no placement goes below: the objective of the best, if that is proven optimal.
    pub bound: u64,
    /// What it took.
    pub effort: Effort,
}

/// Which search it was and how far it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Branch and bound, over so many nodes.
    Exact {
        /// Nodes looked at.
        nodes: u64,
    },
    /// One placement after another, so many of them.
    Exhaustive {
        /// Placements looked at.
        placements: u64,
    },
    /// The greedy heuristic.
    Greedy,
    /// The heuristic of weights that flow.
    Weighted,
}

impl Finding {
    /// What branch and bound proved.
    pub fn of_exact(proof: Proof) -> Finding {
        Finding { best: proof.best, bound: proof.bound, effort: Effort::Exact { nodes: proof.counters.all_nodes() } }
    }

    /// What an exhaustive search saw. If that was not all, the floors of the clients are what is known of the rest; and if
    /// no placement was seen that satisfies the constraints, the greedy one is taken.
    pub fn of_exhaustive(problem: &Problem, exhausted: Exhausted) -> Finding {
        let Exhausted { best, placements, complete } = exhausted;
        let best = best.unwrap_or_else(|| greedy(problem));
        let bound = if complete { best.cost } else { floor(problem) };
        Finding { best, bound, effort: Effort::Exhaustive { placements } }
    }

    /// The greedy placement, held against the floors of the clients.
    pub fn of_greedy(problem: &Problem) -> Finding {
        Finding { best: greedy(problem), bound: floor(problem), effort: Effort::Greedy }
    }

    /// The placement that weights flow to, held against the floors of the clients.
    pub fn of_weighted(problem: &Problem) -> Finding {
        Finding { best: weighted(problem), bound: floor(problem), effort: Effort::Weighted }
    }

    /// Whether no placement is better.
    pub fn is_proven(&self) -> bool {
        self.bound == self.best.cost
    }

    /// By how much the best there is may be better, as a share of what was found.
    pub fn gap(&self) -> f64 {
        if self.is_proven() { 0.0 } else { (self.best.cost - self.bound) as f64 / self.best.cost as f64 }
    }
}
