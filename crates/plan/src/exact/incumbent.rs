//! A good placement to start from: the better a placement is known, the more of all others is cut off.
//!
//! The heuristics of the paper, and clusters around the sites that are best by themselves, are each improved by exchanging
//! one replica at a time for that region which lowers the objective most, until no exchange helps. Of equally good
//! placements the lexicographically first is kept, as the search asks for.

use crate::evaluate::Evaluator;
use crate::exhaustive::Best;
use crate::greedy::greedy;
use crate::problem::Problem;
use crate::weighted::weighted;

/// How much work (placements times clients) a round of exchanges may take before only the most promising are tried.
const EXCHANGES_MAX: usize = 4_000_000;
/// How many regions are tried in the place of a replica at the least.
const TRIED_MIN: usize = 24;
/// How many rounds of exchanges follow each start.
const ROUNDS_MAX: usize = 40;
/// How many clusters are started from.
const CLUSTERS: usize = 3;

/// The best placement found.
pub(super) fn incumbent(problem: &Problem) -> Best {
    let mut evaluator = Evaluator::new(problem);
    let central = by_centrality(problem);
    let mut starts = vec![greedy(problem).replicas, weighted(problem).replicas];
    starts.extend(central.iter().take(CLUSTERS).filter_map(|&centre| cluster(problem, centre)));
    let mut best: Option<Best> = None;
    for replicas in starts {
        let found = descend(problem, &mut evaluator, &central, replicas);
        if best.as_ref().is_none_or(|best| better(&found, best)) {
            best = Some(found);
        }
    }
    best.expect("there are starts")
}

/// Whether `one` is to be preferred to `other`.
pub(super) fn better(one: &Best, other: &Best) -> bool {
    (one.cost, &one.replicas) < (other.cost, &other.replicas)
}

/// Candidates, by their mean distance from all clients.
fn by_centrality(problem: &Problem) -> Vec<usize> {
    let distance = |&region: &usize| -> u128 {
        let of = |client: &crate::request::Client| u128::from(client.clients) * u128::from(problem.matrix().rtt_us(client.region, region));
        problem.clients().iter().map(of).sum()
    };
    let mut central = problem.candidates().to_vec();
    central.sort_by_cached_key(distance);
    central
}

/// `centre` and the candidates nearest to it, if the constraints admit that.
fn cluster(problem: &Problem, centre: usize) -> Option<Vec<usize>> {
    let mut nearest = problem.candidates().to_vec();
    nearest.sort_by_key(|&region| problem.matrix().hop_us(centre, region));
    nearest.truncate(problem.replicas());
    nearest.sort_unstable();
    problem.admits(&nearest).then_some(nearest)
}

/// Exchanges replicas until nothing improves.
fn descend(problem: &Problem, evaluator: &mut Evaluator<'_>, central: &[usize], replicas: Vec<usize>) -> Best {
    let mut best = Best { cost: evaluator.latency_cost(&replicas), replicas };
    let per_region = (problem.replicas() * problem.clients().len()).max(1);
    let tried = (EXCHANGES_MAX / per_region).max(TRIED_MIN);
    for _ in 0..ROUNDS_MAX {
        let start = best.clone();
        for &out in &start.replicas {
            let kept: Vec<usize> = start.replicas.iter().copied().filter(|&replica| replica != out).collect();
            for &region in nearby(problem, central, out, tried).iter().filter(|region| !start.replicas.contains(region)) {
                let mut replicas = kept.clone();
                replicas.insert(replicas.partition_point(|&replica| replica < region), region);
                if let Some(cost) = evaluator.cost(&replicas) {
                    let found = Best { replicas, cost };
                    best = if better(&found, &best) { found } else { best };
                }
            }
        }
        if best == start {
            break;
        }
    }
    best
}

/// All regions, or half of `tried` that are most central and half that are nearest to `out`.
fn nearby(problem: &Problem, central: &[usize], out: usize, tried: usize) -> Vec<usize> {
    if tried >= central.len() {
        return central.to_vec();
    }
    let mut near = central.to_vec();
    near.select_nth_unstable_by_key(tried / 2, |&region| problem.matrix().hop_us(out, region));
    near.truncate(tried / 2);
    near.extend(&central[..tried / 2]);
    near.sort_unstable();
    near.dedup();
    near
}
