//! The check held against survivors that break a rule: it must find what goes wrong.

use super::cluster::{Cases, Resolution};
use super::properties::{ACKNOWLEDGED, AGREEMENT};
use super::survivor::Bounds;
use crate::host::Departure;
use rhumb_replicated_commit::planted::Planted;
use rhumb_testkit::model::refute_shown;

/// A short way to a violation of `property`, as a schedule.
fn counterexample(rule: Planted, cases: Cases, property: &'static str) {
    let model = Resolution::new(Departure::breaking(rule), Bounds { crashes: 0, rounds: 1 }, cases);
    refute_shown(model, property, Resolution::schedule);
}

#[test]
fn a_leader_that_goes_on_without_a_survivor_is_refuted() {
    counterexample(Planted::MajorityOfSurvivors, Cases::Refused, AGREEMENT);
}

#[test]
fn a_leader_that_takes_the_lost_region_to_have_refused_is_refuted() {
    counterexample(Planted::LostRefuses, Cases::All, ACKNOWLEDGED);
}

#[test]
fn a_survivor_that_counts_votes_while_it_is_bound_is_refuted() {
    counterexample(Planted::LateWordCounts, Cases::Refused, AGREEMENT);
}

#[test]
fn a_survivor_that_believes_an_abort_while_it_is_bound_is_refuted() {
    counterexample(Planted::BoundBelieves, Cases::Refused, AGREEMENT);
}
