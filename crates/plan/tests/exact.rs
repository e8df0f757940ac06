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

/// A problem of points in a plane, `width_us` wide, with clients everywhere.
fn in_a_plane(regions: usize, width_us: f64, faults: usize, model: Model, objective: Objective) -> Problem {
    let mut rng = Rng::seeded(7);
    let points: Vec<[f64; 2]> = (0..regions).map(|_| [rng.unit() * width_us, rng.unit() * width_us]).collect();
    let names = (0..regions).map(|region| format!("r{region}")).collect();
    let trip = |from: usize, to: usize| (points[from][0] - points[to][0]).hypot(points[from][1] - points[to][1]) as u32;
    let matrix = Arc::new(Matrix::new(names, trip).expect("few regions"));
    let clients = (0..regions).map(|region| Client { region, clients: 1 + rng.below(10), reads_milli: 1_500 }).collect();
    let (constraints, prices) = (Vec::new(), Vec::new());
    Problem::new(Request { matrix, clients, model, faults, objective, constraints, prices }).expect("feasible")
}

/// Large enough that most placements are cut off: 7 of 20. Round trips of up to 49 seconds are more than 32-bit floats hold
/// to the microsecond.
#[test]
fn deep_searches_agree_with_exhaustive_search() {
    for protocol in [Protocol::ReplicatedCommit, Protocol::TwoRounds, Protocol::OneLeader] {
        for (reads, handoff) in [(Reads::Passive, false), (Reads::Majority, true), (Reads::Optimistic, true)] {
            let plain = [Objective::Mean, Objective::Worst, Objective::Percentile(950)].map(|objective| (objective, 350_000.0));
            for (objective, width_us) in plain.into_iter().chain([(Objective::RegionMean, 35_000_000.0)]) {
                let model = Model { protocol, reads, handoff, read_processing_us: 100 };
                let problem = in_a_plane(20, width_us, 3, model, objective);
                let expected = exhaustive(&problem);
                for bounds in [Bounds::ALL, Bounds { clusters: false, ..Bounds::ALL }] {
                    let proof = branch_and_bound(&problem, bounds, |_| true);
                    assert_eq!(proof.best, expected, "{model:?} {objective:?}");
                    assert!(proof.counters.all_nodes() < 77_520, "{model:?} {objective:?}: {:?}", proof.counters);
                }
            }
        }
    }
}

/// With many sites, prices come first and clusters after them, and a search that is stopped keeps what prices have proven.
#[test]
fn clusters_go_on_from_what_prices_have_proven() {
    let model = Model { protocol: Protocol::TwoRounds, reads: Reads::Optimistic, handoff: true, read_processing_us: 0 };
    let problem = in_a_plane(110, 350_000.0, 1, model, Objective::Mean);
    let best = exhaustive(&problem);
    let proof = branch_and_bound(&problem, Bounds::ALL, |_| true);
    assert_eq!((&proof.best, proof.bound, proof.complete), (&best, best.cost, true));
    let priced = branch_and_bound(&problem, Bounds::ALL, |progress| progress.nodes <= 1);
    let stopped = branch_and_bound(&problem, Bounds::ALL, |progress| progress.nodes <= 3);
    assert!(!stopped.complete && 0 < priced.bound && priced.bound <= stopped.bound && stopped.bound <= best.cost);
}
