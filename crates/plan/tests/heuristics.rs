//! How good the heuristics are: the best of greedy and weighted against the optimum, as in the paper's section 5.2.

mod support;

use rhumb_core::Rng;
use rhumb_plan::*;
use support::{commits, request};

/// `n` regions with random round trips up to 500 ms, and one to ten clients in each.
fn random_instance(n: usize, seed: u64) -> (Matrix, Vec<Client>) {
    let mut rng = Rng::seeded(seed);
    let matrix = Matrix::random(n, 500_000, &mut rng).expect("few regions");
    let clients = (0..n).map(|region| Client { region, clients: rng.between(1, 10), reads_milli: 0 }).collect();
    (matrix, clients)
}

/// The paper: optimal in 70 % of cases, within 5 to 11 % in the others. Here: 95 instances of 10 to 20 regions with 5 or 7
/// replicas.
#[test]
fn the_better_of_two_heuristics_is_optimal_or_near_in_most_cases() {
    let (mut optimal, mut worst_milli) = (0, 0);
    for (n, faults, seeds) in [(10, 2, 40), (15, 2, 20), (20, 2, 5), (12, 3, 20), (15, 3, 10)] {
        for seed in 0..seeds {
            let (matrix, clients) = random_instance(n, seed);
            let request = Request { clients, ..request(matrix, commits(Protocol::TwoRounds, true), faults) };
            let problem = Problem::new(request).expect("nothing is constrained");
            let found = greedy(&problem).cost.min(weighted(&problem).cost);
            let best = exhaustive(&problem).cost;
            optimal += u32::from(found == best);
            worst_milli = worst_milli.max(found * 1_000 / best);
        }
    }
    // 76 % of them, and never more than 8 % off.
    assert_eq!((optimal, worst_milli), (72, 1_080));
}
