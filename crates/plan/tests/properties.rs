//! What must hold of any problem: random matrices without a triangle inequality, every protocol, objective and constraint.

mod support;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rhumb_plan::floor::floors_ns;
use rhumb_plan::*;
use support::{any_problem, any_request, choices, naive, satisfies};

/// All placements of `request` that satisfy `constraints`, by their definitions.
fn placements(request: &Request, constraints: &[Constraint]) -> Vec<Vec<usize>> {
    let all = |replicas: &Vec<usize>| constraints.iter().all(|constraint| satisfies(request, replicas, constraint));
    choices(request.matrix.regions(), 2 * request.faults + 1).into_iter().filter(all).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, rng_seed: RngSeed::Fixed(4), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_placement_is_worth_what_the_definition_says(problem in any_problem(9)) {
        let mut evaluator = Evaluator::new(&problem);
        let floors = floors_ns(&problem);
        for replicas in choices(problem.matrix().regions(), problem.replicas()).into_iter().take(40) {
            let (cost, served) = naive::evaluate(&problem, &replicas);
            let evaluation = evaluate(&problem, &replicas);
            let plan = |client: &ClientPlan| (client.latency_ns, client.read_coordinator, client.commit_coordinator);
            prop_assert_eq!(evaluation.clients.iter().map(plan).collect::<Vec<_>>(), served.clone());
            prop_assert_eq!(evaluation.cost, cost);
            prop_assert_eq!(evaluator.latency_cost(&replicas), cost);
            let allowed = placements(problem.request(), &problem.request().constraints).contains(&replicas);
            prop_assert_eq!(evaluator.cost(&replicas), allowed.then_some(cost));
            if allowed {
                prop_assert!(floors.iter().zip(&served).all(|(floor, (latency, ..))| floor <= latency));
            }
        }
    }

    #[test]
    fn so_is_one_of_many_replicas(problem in any_problem(32)) {
        let (n, size) = (problem.matrix().regions(), problem.replicas());
        let mut evaluator = Evaluator::new(&problem);
        for replicas in [(0..size).collect::<Vec<usize>>(), (n - size..n).collect()] {
            let (cost, _) = naive::evaluate(&problem, &replicas);
            prop_assert_eq!(evaluate(&problem, &replicas).cost, cost);
            prop_assert_eq!(evaluator.latency_cost(&replicas), cost);
        }
    }

    #[test]
    fn exhaustive_search_finds_the_first_of_the_best(problem in any_problem(8)) {
        let all = placements(problem.request(), &problem.request().constraints);
        let (cost, replicas) = all.into_iter().map(|replicas| (naive::evaluate(&problem, &replicas).0, replicas)).min().expect("feasible");
        prop_assert_eq!(exhaustive(&problem), Best { replicas, cost });
    }

    #[test]
    fn constraints_conflict_only_if_no_placement_satisfies_them_and_none_named_can_be_spared(request in any_request(8)) {
        let groupings = request.constraints.iter().filter(|constraint| matches!(constraint, Constraint::AtMost { .. })).count();
        prop_assume!(groupings <= 2);
        let feasible = !placements(&request, &request.constraints).is_empty();
        match Problem::new(request.clone()) {
            Ok(_) => prop_assert!(feasible),
            Err(ProblemError::Infeasible { conflicting, constraints: named, .. }) => {
                prop_assert!(!feasible);
                let core: Vec<Constraint> = conflicting.iter().map(|&index| request.constraints[index].clone()).collect();
                let words: Vec<String> = core.iter().map(|constraint| constraint.describe(&request.matrix)).collect();
                prop_assert_eq!(words, named);
                prop_assert!(placements(&request, &core).is_empty());
                for spared in 0..core.len() {
                    let mut rest = core.clone();
                    rest.remove(spared);
                    prop_assert!(!placements(&request, &rest).is_empty(), "{core:?} holds more than conflicts");
                }
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn a_choice_can_be_completed_only_if_a_placement_holds_it(problem in any_problem(8), chosen in proptest::collection::btree_set(0..8usize, 1..4)) {
        let chosen: Vec<usize> = chosen.into_iter().filter(|&region| region < problem.matrix().regions()).collect();
        let holds = |replicas: &Vec<usize>| chosen.iter().all(|region| replicas.contains(region));
        let found = placements(problem.request(), &problem.request().constraints).iter().any(holds);
        prop_assert_eq!(problem.extendable(&chosen), found);
    }

    #[test]
    fn heuristics_end_at_placements_that_are_allowed_and_no_better_than_the_best(problem in any_problem(8)) {
        let best = exhaustive(&problem);
        for found in [greedy(&problem), weighted(&problem)] {
            prop_assert!(problem.admits(&found.replicas));
            prop_assert_eq!(naive::evaluate(&problem, &found.replicas).0, found.cost);
            prop_assert!(found.cost >= best.cost);
        }
    }

    #[test]
    fn the_front_holds_a_placement_for_every_trade_that_nothing_beats(problem in any_problem(7)) {
        let request = problem.request();
        let front: Vec<(u64, u64)> =
            pareto(request, 1_000, exhaustive).expect("feasible").iter().map(|point| (point.price, point.best.cost)).collect();
        let trade = |replicas: &Vec<usize>| (problem.price_of(replicas), naive::evaluate(&problem, replicas).0);
        let all: Vec<(u64, u64)> = placements(request, &request.constraints).iter().map(trade).collect();
        let beaten = |point: &(u64, u64)| all.iter().any(|other| other != point && other.0 <= point.0 && other.1 <= point.1);
        let mut unbeaten: Vec<(u64, u64)> = all.iter().filter(|point| !beaten(point)).copied().collect();
        unbeaten.sort_unstable_by(|a, b| b.cmp(a));
        unbeaten.dedup();
        prop_assert_eq!(front, unbeaten);
    }
}
