//! Exact search finds what exhaustive search finds, and its bound is one.

mod support;

use proptest::prelude::*;
use rhumb_core::Rng;
use rhumb_plan::{Bounds, Client, Matrix, Model, Objective, Problem, Proof, Protocol, Reads, Request, branch_and_bound, exact, exhaustive};
use std::sync::Arc;
use support::any_problem;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_500))]

    #[test]
    fn exact_search_finds_the_first_of_the_best_placements(problem in any_problem(10)) {
        prop_assert_eq!(exact(&problem), exhaustive(&problem));
    }

    #[test]
    fn no_bound_is_needed_for_the_result(problem in any_problem(9), which in 0..128u8) {
        let on = |bit: u8| which & (1 << bit) != 0;
        let bounds = Bounds {
            order_statistic: on(0), site_prices: on(1), intersection: on(2), fixing: on(3), covering: on(4), leader: on(5), clusters: on(6),
        };
        let proof = branch_and_bound(&problem, bounds, |_| true);
        prop_assert_eq!(&proof.best, &exhaustive(&problem));
        prop_assert!(proof.complete);
        prop_assert_eq!(proof.bound, proof.best.cost);
    }

    #[test]
    fn a_search_that_is_stopped_has_a_sound_bound(problem in any_problem(10), looks in 0..60u32) {
        let optimum = exhaustive(&problem).cost;
        let mut left = looks;
        let mut bounds = Vec::new();
        let proof: Proof = branch_and_bound(&problem, Bounds::ALL, |progress| {
            bounds.push((progress.bound, progress.incumbent));
            left = left.saturating_sub(1);
            left > 0
        });
        prop_assert!(proof.bound <= optimum && optimum <= proof.best.cost, "{} {optimum} {}", proof.bound, proof.best.cost);
        prop_assert!(bounds.iter().all(|&(bound, incumbent)| bound <= optimum && optimum <= incumbent));
        prop_assert!(!proof.complete || proof.best.cost == optimum);
    }
}

/// Large enough that most placements are cut off: 7 of 20 points in a plane.
#[test]
fn deep_searches_agree_with_exhaustive_search() {
    let mut rng = Rng::seeded(7);
    let points: Vec<[f64; 2]> = (0..20).map(|_| [rng.unit() * 350_000.0, rng.unit() * 350_000.0]).collect();
    let names = (0..points.len()).map(|region| format!("r{region}")).collect();
    let trip = |from: usize, to: usize| (points[from][0] - points[to][0]).hypot(points[from][1] - points[to][1]) as u32;
    let matrix = Arc::new(Matrix::new(names, trip).expect("few regions"));
    let clients = (0..points.len()).map(|region| Client { region, clients: 1 + rng.below(10), reads_milli: 1_500 }).collect::<Vec<_>>();
    for protocol in [Protocol::ReplicatedCommit, Protocol::TwoRounds, Protocol::OneLeader] {
        for (reads, handoff) in [(Reads::Passive, false), (Reads::Majority, true), (Reads::Optimistic, true)] {
            for objective in [Objective::Mean, Objective::Worst, Objective::Percentile(950)] {
                let model = Model { protocol, reads, handoff, read_processing_us: 100 };
                let (matrix, clients) = (Arc::clone(&matrix), clients.clone());
                let request = Request { matrix, clients, model, faults: 3, objective, constraints: Vec::new(), prices: Vec::new() };
                let problem = Problem::new(request).expect("feasible");
                let proof = branch_and_bound(&problem, Bounds::ALL, |_| true);
                assert_eq!(proof.best, exhaustive(&problem), "{model:?} {objective:?}");
                assert!(proof.counters.all_nodes() < 77_520, "{model:?} {objective:?}: {:?}", proof.counters);
            }
        }
    }
}
