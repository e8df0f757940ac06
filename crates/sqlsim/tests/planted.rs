//! The tests are tested: every bug planted in tables and the catalog must be caught within a stated number of seeds.

use rhumb_core::Rules;
use rhumb_replicated_commit::Site;
use rhumb_sim::{Scenario, all_cores, run_seeds};
use rhumb_sql::planted::Planted;
use rhumb_sqlsim::Sql;

/// Every planted bug is caught by one of so many seeds.
const SEEDS: u64 = 40;
/// Seeds run at once, so that a bug caught early costs little.
const SLICE: u64 = 4;

fn first_caught(scenario: &impl Scenario) -> Option<(u64, String)> {
    (0..SEEDS).step_by(SLICE as usize).find_map(|start| {
        let reports = run_seeds(scenario, start..start + SLICE, all_cores(), |_| {});
        reports.into_iter().find_map(|report| Some((report.seed, report.violation?)))
    })
}

#[test]
#[ignore = "takes minutes: `make soak`"]
fn every_bug_planted_in_sql_is_caught() {
    let mut missed = Vec::new();
    for bug in Planted::ALL {
        match first_caught(&Sql::<Site>::default().with_rules(Rules::breaking(bug))) {
            Some((seed, violation)) => println!("{bug:?}: seed {seed}: {}", violation.lines().next().unwrap_or_default()),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not caught within {SEEDS} seeds: {missed:?}");
}
