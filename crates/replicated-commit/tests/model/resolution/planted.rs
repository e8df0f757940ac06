//! The check held against survivors that break a rule: it must find what goes wrong.

use super::cluster::{Cases, Resolution};
use super::properties::{ACKNOWLEDGED, AGREEMENT};
use super::survivor::Bounds;
use super::word::SURVIVORS;
use super::{A_LEADER_CRASHES, NO_CRASH};
use crate::host::Departure;
use rhumb_replicated_commit::planted::Planted;
use rhumb_testkit::model::refute_shown;

/// A short way to a violation of `property`, as a schedule.
fn counterexample(rule: Planted, bounds: [Bounds; SURVIVORS], cases: Cases, property: &'static str) -> Vec<String> {
    refute_shown(Resolution::new(Departure::breaking(rule), bounds, cases), property, Resolution::schedule)
}

#[test]
fn a_leader_that_goes_on_without_a_survivor_is_refuted() {
    counterexample(Planted::MajorityOfSurvivors, NO_CRASH, Cases::Refused, AGREEMENT);
}

#[test]
fn a_leader_that_takes_the_lost_region_to_have_refused_is_refuted() {
    counterexample(Planted::LostRefuses, NO_CRASH, Cases::All, ACKNOWLEDGED);
}

#[test]
fn a_survivor_that_counts_votes_while_it_is_bound_is_refuted() {
    counterexample(Planted::LateWordCounts, NO_CRASH, Cases::Refused, AGREEMENT);
}

#[test]
fn a_survivor_that_believes_an_abort_while_it_is_bound_is_refuted() {
    counterexample(Planted::BoundBelieves, NO_CRASH, Cases::Refused, AGREEMENT);
}

#[test]
fn a_promise_that_a_crash_forgets_is_refuted() {
    let steps = counterexample(Planted::PromiseNotDurable, A_LEADER_CRASHES, Cases::Claimed, AGREEMENT);
    assert!(steps.iter().any(|step| step.contains("Crash")), "only a crash makes a survivor forget: {steps:?}");
}

#[test]
fn a_leader_that_ignores_what_others_have_accepted_is_refuted() {
    counterexample(Planted::AcceptedIgnored, A_LEADER_CRASHES, Cases::Silent, AGREEMENT);
}
