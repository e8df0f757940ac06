//! The planner against an integer program of the same problem, solved by HiGHS.

#[path = "../../crates/plan/tests/support/program.rs"]
mod program;
#[path = "../../crates/plan/tests/support/mod.rs"]
mod support;

use good_lp::solvers::highs::{HighsProblem, highs};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rhumb_plan::{Objective, Problem, Protocol, Reads};
use support::{commits, nine, request};

/// HiGHS, told not to stop short of the optimum.
fn to_the_end(problem: good_lp::variable::UnsolvedProblem) -> HighsProblem {
    highs(problem).set_mip_rel_gap(0.0).expect("zero is a gap").set_threads(1)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(6), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn highs_finds_the_same_optimum(problem in support::coarse_problem(1..=7)) {
        program::check(to_the_end, &problem);
    }
}

#[test]
fn highs_places_replicas_in_the_nine_regions_of_the_paper_alike() {
    for (protocol, handoff, reads) in [
        (Protocol::ReplicatedCommit, false, Reads::Majority),
        (Protocol::TwoRounds, true, Reads::Passive),
        (Protocol::TwoRounds, true, Reads::Optimistic),
        (Protocol::OneLeader, false, Reads::Majority),
    ] {
        for objective in [Objective::Mean, Objective::Worst, Objective::Percentile(700)] {
            let mut nine = request(nine(), rhumb_plan::Model { reads, ..commits(protocol, handoff) }, 1);
            nine.objective = objective;
            for client in &mut nine.clients {
                client.reads_milli = 2_500;
            }
            program::check(to_the_end, &Problem::new(nine).expect("nothing is constrained"));
        }
    }
}
