//! Every placement, one after another (GPlacer, Algorithm 1): what all other searches are measured against.

use crate::evaluate::Evaluator;
use crate::problem::Problem;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Best {
    /// The best placement, ascending; of several that are equally good, the lexicographically first.
    pub replicas: Vec<usize>,
    /// The objective there.
    pub cost: u64,
}

/// What an exhaustive search did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// The best placement seen; none if every one seen violates a constraint.
    pub best: Option<Best>,
    /// How many placements were looked at.
    pub placements: u64,
    /// Whether these were all.
    pub complete: bool,
}

/// The best of all placements.
pub fn exhaustive(problem: &Problem) -> Best {
    exhaustive_until(problem, u64::MAX).best.expect("a problem has a placement that satisfies its constraints")
}

/// The best of the first `placements_max` placements, in lexicographic order.
pub fn exhaustive_until(problem: &Problem, placements_max: u64) -> Exhausted {
    exhaustive_while(problem, |placements| placements < placements_max)
}

/// How many placements there are by the constraints on single regions, if so many can be counted.
pub fn placements(problem: &Problem) -> Option<u64> {
    let (from, size) = (problem.candidates().len() as u128, problem.replicas() as u128);
    let count = (0..size).try_fold(1u128, |count, chosen| Some(count.checked_mul(from - chosen)? / (chosen + 1)));
    count.and_then(|count| u64::try_from(count).ok())
}

/// The best of the placements, in lexicographic order, that are looked at while `keep_going` says yes. It is told how many
/// there were so far.
pub fn exhaustive_while(problem: &Problem, mut keep_going: impl FnMut(u64) -> bool) -> Exhausted {
    let candidates = problem.candidates();
    let size = problem.replicas();
    let mut evaluator = Evaluator::new(problem);
    // `chosen` are places in `candidates`, `replicas` the regions there.
    let mut chosen: Vec<usize> = (0..size).collect();
    let mut replicas: Vec<usize> = candidates[..size].to_vec();
    let mut best: Option<Best> = None;
    let mut placements = 0;
    while keep_going(placements) {
        placements += 1;
        if problem.admits_candidates(&replicas) {
            let cost = evaluator.latency_cost(&replicas);
            if best.as_ref().is_none_or(|best| cost < best.cost) {
                best = Some(Best { replicas: replicas.clone(), cost });
            }
        }
        let Some(place) = (0..size).rev().find(|&place| chosen[place] < candidates.len() - size + place) else {
            return Exhausted { best, placements, complete: true };
        };
        chosen[place] += 1;
        for later in place + 1..size {
            chosen[later] = chosen[later - 1] + 1;
        }
        for (replica, &index) in replicas[place..].iter_mut().zip(&chosen[place..]) {
            *replica = candidates[index];
        }
    }
    Exhausted { best, placements, complete: false }
}
