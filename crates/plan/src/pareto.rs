//! Price against latency: the placements that are worth a look, since no other is both as cheap and as good.
//!
//! The best placement of all comes first; then the best one that is cheaper, and so on: each step is a problem with a
//! tighter budget, so the front is as exact as the search that is passed in.

use crate::constraints::Constraint;
use crate::exhaustive::Best;
use crate::problem::{Problem, ProblemError};
use crate::request::Request;

/// A placement that no other beats at both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontPoint {
    /// What its replicas cost per month, in millionths of a dollar.
    pub price: u64,
    /// The placement and its objective.
    pub best: Best,
}

/// Up to `points_max` placements from the best downwards in price, and upwards in the objective. `search` finds the best
/// placement of a problem.
pub fn pareto(request: &Request, points_max: usize, mut search: impl FnMut(&Problem) -> Best) -> Result<Vec<FrontPoint>, ProblemError> {
    let mut front: Vec<FrontPoint> = Vec::new();
    let mut problem = Problem::new(request.clone())?;
    while front.len() < points_max {
        let best = search(&problem);
        let price = problem.price_of(&best.replicas);
        // Searches prefer the lexicographically first of equally good placements, not the cheapest.
        if front.last().is_some_and(|dearer| dearer.best.cost == best.cost) {
            front.pop();
        }
        front.push(FrontPoint { price, best });
        let Some(budget) = price.checked_sub(1) else { break };
        let mut tighter = request.clone();
        tighter.constraints.push(Constraint::Budget(budget));
        problem = match Problem::new(tighter) {
            Ok(problem) => problem,
            Err(ProblemError::Infeasible { .. }) => break,
            Err(error) => return Err(error),
        };
    }
    Ok(front)
}
