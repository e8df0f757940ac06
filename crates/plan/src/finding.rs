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
    /// What branch and bound proved, which may be less than the floors of the clients say if it was stopped early.
    pub fn of_exact(problem: &Problem, proof: Proof) -> Finding {
        let nodes = proof.counters.all_nodes();
        let bound = if proof.complete { proof.bound } else { proof.bound.max(floor(problem)) };
        Finding { best: proof.best, bound, effort: Effort::Exact { nodes } }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::{Bounds, branch_and_bound};
    use crate::exhaustive::{exhaustive_until, exhaustive_while, placements};
    use crate::{Constraint, Matrix, Model, Objective, Protocol, Reads, Request, workload};
    use rhumb_core::wan;
    use std::sync::Arc;

    fn problem(constraints: Vec<Constraint>) -> Problem {
        let matrix = Matrix::try_from(&wan::profile("paper_gplacer_9").expect("shipped").matrix()).expect("nine regions");
        let model = Model { protocol: Protocol::ReplicatedCommit, reads: Reads::Majority, handoff: false, read_processing_us: 0 };
        let clients = workload::uniform(&matrix, 1_000);
        let request =
            Request { matrix: Arc::new(matrix), clients, model, faults: 1, objective: Objective::Mean, constraints, prices: Vec::new() };
        Problem::new(request).expect("it makes sense")
    }

    #[test]
    fn a_search_that_was_stopped_knows_the_floors_and_one_that_ended_the_optimum() {
        let problem = problem(Vec::new());
        let exact = Finding::of_exact(&problem, branch_and_bound(&problem, Bounds::ALL, |_| true));
        assert!(exact.is_proven() && exact.gap() == 0.0);
        let stopped = Finding::of_exact(&problem, branch_and_bound(&problem, Bounds::ALL, |_| false));
        let few = Finding::of_exhaustive(&problem, exhaustive_until(&problem, 1));
        for finding in [stopped, few, Finding::of_greedy(&problem), Finding::of_weighted(&problem)] {
            assert!(floor(&problem) <= finding.bound && finding.bound <= exact.best.cost && exact.best.cost <= finding.best.cost);
            assert_eq!(finding.is_proven(), finding.gap() == 0.0);
        }
    }

    #[test]
    fn an_exhaustive_search_counts_what_it_looks_at() {
        let problem = problem(Vec::new());
        assert_eq!(placements(&problem), Some(84));
        let mut told = Vec::new();
        let all = exhaustive_while(&problem, |seen| {
            told.push(seen);
            true
        });
        assert_eq!((all.placements, all.complete, told), (84, true, (0..84).collect()));
    }

    #[test]
    fn a_search_that_saw_nothing_that_satisfies_the_constraints_takes_the_greedy_placement() {
        // The lexicographically first placements hold neither of the last two regions.
        let problem = problem(vec![Constraint::Required(7), Constraint::Required(8)]);
        let found = Finding::of_exhaustive(&problem, exhaustive_until(&problem, 1));
        assert!(problem.admits(&found.best.replicas) && !found.is_proven());
    }
}
