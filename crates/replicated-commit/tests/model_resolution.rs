//! Resolutions, checked exhaustively in a small configuration, and the check held against protocols with one rule broken.

mod resolution_model;

use resolution_model::{ACKNOWLEDGED, AGREEMENT, Planted, Resolution};
use stateright::{Checker, HasDiscoveries, Model};

fn assert_safe(rounds_max: u64, crashes_max: u8) {
    let model = Resolution { planted: None, rounds_max, crashes_max };
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).threads(2).spawn_bfs().join();
    println!("{} states, {} steps, depth {}", checker.unique_state_count(), checker.state_count(), checker.max_depth());
    checker.assert_properties();
}

#[test]
fn every_reachable_state_of_two_leaders_and_three_survivors_is_safe() {
    assert_safe(1, 1);
}

#[test]
#[ignore = "takes ten minutes and 10 GB: `make soak`"]
fn every_reachable_state_of_four_rounds_and_a_crash_is_safe() {
    assert_safe(2, 1);
}

/// A short way to a violation of `property`, by steps as they print.
fn counterexample(planted: Planted, property: &'static str) -> String {
    // What was accepted matters to a leader that begins again.
    let (rounds_max, crashes_max) = if planted == Planted::AcceptedIgnored { (2, 0) } else { (1, 1) };
    let model = Resolution { planted: Some(planted), rounds_max, crashes_max };
    let checker = model.checker().finish_when(HasDiscoveries::AllOf([property].into())).spawn_bfs().join();
    println!("{planted:?}: {} states", checker.unique_state_count());
    let path = checker.discovery(property).unwrap_or_else(|| panic!("{planted:?} does not violate \"{property}\""));
    let steps: Vec<String> = path.into_actions().iter().map(|action| format!("{action:?}")).collect();
    println!("\"{property}\":\n  {}", steps.join("\n  "));
    steps.join("; ")
}

#[test]
fn a_leader_that_goes_on_without_a_survivor_is_refuted() {
    counterexample(Planted::MajorityOfSurvivors, AGREEMENT);
}

#[test]
fn a_leader_that_takes_the_lost_region_to_have_refused_is_refuted() {
    counterexample(Planted::LostRefuses, ACKNOWLEDGED);
}

#[test]
fn a_promise_that_a_crash_forgets_is_refuted() {
    let steps = counterexample(Planted::PromiseNotDurable, AGREEMENT);
    assert!(steps.contains("Crash"), "only a crash makes a survivor forget: {steps}");
}

#[test]
fn a_survivor_that_counts_a_lost_vote_while_it_is_bound_is_refuted() {
    counterexample(Planted::LateWordCounts, AGREEMENT);
}

#[test]
fn a_survivor_that_believes_an_abort_while_it_is_bound_is_refuted() {
    counterexample(Planted::BoundBelieves, AGREEMENT);
}

#[test]
fn a_leader_that_ignores_what_others_have_accepted_is_refuted() {
    counterexample(Planted::AcceptedIgnored, AGREEMENT);
}
