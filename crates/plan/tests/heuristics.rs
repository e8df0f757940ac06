//! How good the heuristics are: the best of greedy and weighted against the optimum, as in the paper's section 5.2.

mod support;

use rhumb_core::Rng;
use rhumb_plan::*;
use std::sync::Arc;
use support::commits;

/// `n` regions with random round trips up to 500 ms under the triangle inequality (shortest paths over random ones), and
/// one to ten clients in each.
fn random_instance(n: usize, seed: u64) -> (Matrix, Vec<Client>) {
    let mut rng = Rng::seeded(seed);
    let mut trips = vec![0; n * n];
    for from in 0..n {
        for to in 0..from {
            let trip = rng.below(500_001) as u32;
            trips[from * n + to] = trip;
            trips[to * n + from] = trip;
        }
    }
    for by in 0..n {
        for cell in 0..n * n {
            trips[cell] = trips[cell].min(trips[cell / n * n + by] + trips[by * n + cell % n]);
        }
    }
    let names = (0..n).map(|region| format!("r{region}")).collect();
    let clients = (0..n).map(|region| Client { region, clients: rng.between(1, 10), reads_milli: 0 }).collect();
    (Matrix::new(names, |from, to| trips[from * n + to]).expect("few regions"), clients)
}

/// The paper: optimal in 70 % of cases, within 5 to 11 % in the others. Here: 95 instances of 10 to 20 regions with 5 or 7
/// replicas.
#[test]
fn the_better_of_two_heuristics_is_optimal_or_near_in_most_cases() {
    let (mut optimal, mut worst_milli) = (0, 0);
    for (n, faults, seeds) in [(10, 2, 40), (15, 2, 20), (20, 2, 5), (12, 3, 20), (15, 3, 10)] {
        for seed in 0..seeds {
            let (matrix, clients) = random_instance(n, seed);
            let problem = Problem::new(Request {
                matrix: Arc::new(matrix),
                clients,
                model: commits(Protocol::TwoRounds, true),
                faults,
                objective: Objective::Mean,
                constraints: Vec::new(),
                prices: Vec::new(),
            })
            .expect("nothing is constrained");
            let found = greedy(&problem).cost.min(weighted(&problem).cost);
            let best = exhaustive(&problem).cost;
            optimal += u32::from(found == best);
            worst_milli = worst_milli.max(found * 1_000 / best);
        }
    }
    // 76 % of them, and never more than 8 % off.
    assert_eq!((optimal, worst_milli), (72, 1_080));
}
