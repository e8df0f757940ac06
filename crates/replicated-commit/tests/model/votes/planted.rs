//! The check held against clusters in which one rule is broken: it must find what goes wrong.

use super::cluster::Votes;
use super::properties::{AGREEMENT, CLIENT, EXCLUSION, WRITE_ONCE};
use super::region::Bounds;
use crate::host::Departure;
use rhumb_replicated_commit::planted::Planted;
use rhumb_testkit::model::refute_shown;

const NO_CRASH: Bounds = Bounds { crashes: 0, writes: 1 };
const A_CRASH: Bounds = Bounds { crashes: 1, writes: 1 };

/// A short way to a violation of each of `properties`, as a schedule.
fn counterexamples<const N: usize>(departure: Departure, bounds: Bounds, properties: [&'static str; N]) -> [String; N] {
    let model = Votes::new(departure, bounds);
    properties.map(|property| refute_shown(model.clone(), property, Votes::schedule).join("\n  "))
}

#[test]
fn a_refusal_that_a_crash_forgets_is_refuted() {
    let found = counterexamples(Departure::breaking(Planted::RefusalNotDurable), A_CRASH, [AGREEMENT, CLIENT, WRITE_ONCE]);
    assert!(found.iter().all(|schedule| schedule.contains("Crash")), "only a crash makes a region forget: {found:#?}");
}

#[test]
fn a_vote_sent_before_its_sync_is_refuted() {
    let departure = Departure { sent_before_sync: true, ..Departure::default() };
    let found = counterexamples(departure, A_CRASH, [AGREEMENT, EXCLUSION, CLIENT, WRITE_ONCE]);
    assert!(found.iter().all(|schedule| schedule.contains("Crash")), "only a crash makes a region forget: {found:#?}");
}

#[test]
fn commit_proposed_again_to_regions_that_refused_is_refuted() {
    let found = counterexamples(Departure::breaking(Planted::NaiveBallotOne), NO_CRASH, [AGREEMENT, EXCLUSION, CLIENT, WRITE_ONCE]);
    assert!(found.iter().all(|schedule| schedule.contains("AskVote")), "only who asks proposes again: {found:#?}");
}

#[test]
fn a_provisional_vote_counted_by_others_is_refuted() {
    let found = counterexamples(Departure::breaking(Planted::ProvisionalCounts), NO_CRASH, [AGREEMENT, EXCLUSION, CLIENT]);
    assert!(found.iter().all(|schedule| schedule.contains("Withdraw")), "all is well as long as nothing is withdrawn: {found:#?}");
}

#[test]
fn a_firm_vote_withdrawn_is_refuted() {
    let found = counterexamples(Departure::breaking(Planted::FirmWithdrawn), NO_CRASH, [AGREEMENT, EXCLUSION, CLIENT, WRITE_ONCE]);
    assert!(found.iter().all(|schedule| schedule.contains("AskVote")), "only who asks makes a vote firm: {found:#?}");
}

#[test]
fn a_gateway_that_withdraws_and_counts_on_is_refuted() {
    let found = counterexamples(Departure::breaking(Planted::GatewayCountsOn), NO_CRASH, [AGREEMENT, EXCLUSION, CLIENT]);
    assert!(found.iter().all(|schedule| schedule.contains("Withdraw")), "all is well as long as nothing is withdrawn: {found:#?}");
}
