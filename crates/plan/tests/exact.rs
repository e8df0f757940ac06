//! Exact search finds what exhaustive search finds, and its bound is one.

mod support;

use proptest::prelude::*;
use rhumb_plan::{Bounds, Proof, branch_and_bound, exact, exhaustive};
use support::any_problem;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_500))]

    #[test]
    fn exact_search_finds_the_first_of_the_best_placements(problem in any_problem(10)) {
        prop_assert_eq!(exact(&problem), exhaustive(&problem));
    }

    #[test]
    fn no_bound_is_needed_for_the_result(problem in any_problem(9), which in 0..64u8) {
        let on = |bit: u8| which & (1 << bit) != 0;
        let bounds = Bounds {
            order_statistic: on(0), site_prices: on(1), intersection: on(2), fixing: on(3), covering: on(4), leader: on(5),
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
