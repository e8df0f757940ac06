//! The planner against an integer program of the same problem, solved by a solver written in Rust. `crosscheck/` puts the
//! same program to HiGHS, which takes a C++ compiler to build.

#[path = "support/program.rs"]
mod program;
mod support;

use good_lp::microlp;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_integer_program_finds_the_same_optimum(problem in support::coarse_problem(1..=6)) {
        program::check(microlp, &problem);
    }
}
