//! Weights that flow to where majorities are (GPlacer, Algorithm 3, after k-means).
//!
//! Every region begins with its clients as its weight, and the 2f + 1 heaviest are the first placement. Then each region's
//! weight goes to every member of its nearest majority, the f + 1 regions that answer it first; with handoff, to that of
//! the coordinator it would hand to; and the heaviest are the next placement.
//!
//! As printed, the loop goes on as long as the latency falls *or* fewer than t rounds did not let it fall, so that a
//! sequence that swings up and down goes on for as long as it likes; it ends with the last placement, which may be the
//! worst; and weights grow by the size of a majority each round until they overflow. Here it takes [`ROUNDS`], fewer only
//! if the weights have come to rest; the best placement is kept; and weights are divided by the size of a majority, in
//! fixed point, so that their sum stays what it was.

use crate::evaluate::Evaluator;
use crate::exhaustive::Best;
use crate::problem::Problem;

/// The rounds that weights flow. Where they come to rest at all, they mostly do so within half of that.
pub const ROUNDS: usize = 50;

/// The fractions of a client that weights are counted in: 2^-`FRACTION_BITS`.
const FRACTION_BITS: u32 = 40;

/// The best placement that comes up while weights flow.
pub fn weighted(problem: &Problem) -> Best {
    let majorities = nearest_majorities(problem);
    let mut evaluator = Evaluator::new(problem);
    let mut weights = vec![0u128; problem.matrix().regions()];
    for client in problem.clients() {
        weights[client.region] = u128::from(client.clients) << FRACTION_BITS;
    }
    let mut best: Option<Best> = None;
    for _ in 0..=ROUNDS {
        let replicas = heaviest(problem, &weights);
        let cost = evaluator.latency_cost(&replicas);
        if best.as_ref().is_none_or(|best| (cost, &replicas) < (best.cost, &best.replicas)) {
            best = Some(Best { replicas, cost });
        }
        let flowed = flow(&weights, &majorities);
        if flowed == weights {
            break;
        }
        weights = flowed;
    }
    best.expect("the first placement at least")
}

/// Where the weights are after they flowed along `majorities` once.
fn flow(weights: &[u128], majorities: &[Vec<usize>]) -> Vec<u128> {
    let mut flowed = vec![0; weights.len()];
    for (weight, majority) in weights.iter().zip(majorities) {
        for &member in majority {
            flowed[member] += weight / majority.len() as u128;
        }
    }
    flowed
}

/// The majority that each region's weight flows to, among all candidates.
fn nearest_majorities(problem: &Problem) -> Vec<Vec<usize>> {
    let matrix = problem.matrix();
    let majority = problem.replicas() / 2 + 1;
    let nearest = |region: usize| {
        let mut near = problem.candidates().to_vec();
        let key = |to: &usize| (matrix.rtt_us(region, *to), *to);
        near.select_nth_unstable_by_key(majority - 1, key);
        near.truncate(majority);
        let quorum_us = near.iter().map(|&to| matrix.rtt_us(region, to)).max().unwrap_or(0);
        near.sort_unstable();
        (near, u64::from(quorum_us))
    };
    let nearest: Vec<(Vec<usize>, u64)> = (0..matrix.regions()).map(nearest).collect();
    let rounds = problem.model().protocol.rounds();
    let coordinator = |here: usize| {
        let others = problem.candidates().iter().copied().filter(|_| problem.model().handoff);
        let length = |to: &usize| u64::from(matrix.hop_us(here, *to)) + rounds * nearest[*to].1;
        std::iter::once(here).chain(others).min_by_key(length).unwrap_or(here)
    };
    (0..matrix.regions()).map(|here| nearest[coordinator(here)].0.clone()).collect()
}

/// The heaviest regions that make a placement, ascending; of equally heavy ones, the first by index. With constraints, one
/// is passed over if no placement holds it together with the heavier ones.
fn heaviest(problem: &Problem, weights: &[u128]) -> Vec<usize> {
    let mut order = problem.candidates().to_vec();
    order.sort_unstable_by_key(|&region| (std::cmp::Reverse(weights[region]), region));
    let mut replicas = Vec::with_capacity(problem.replicas());
    for region in order {
        replicas.push(region);
        if !problem.extendable(&replicas) {
            replicas.pop();
        } else if replicas.len() == problem.replicas() {
            break;
        }
    }
    replicas.sort_unstable();
    replicas
}
