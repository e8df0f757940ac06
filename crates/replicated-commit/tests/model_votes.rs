//! The vote registers of Replicated Commit, checked exhaustively in a small configuration, and the check held against
//! protocols with one rule broken.

mod model;

use model::{AGREEMENT, CLIENT, EXCLUSION, Planted, VoteRegisters, WRITE_ONCE};
use stateright::{Checker, HasDiscoveries, Model};

#[test]
fn every_reachable_state_of_two_conflicting_transactions_in_three_regions_is_safe() {
    let checker = VoteRegisters { planted: None }.checker().finish_when(HasDiscoveries::AnyFailures).symmetry().spawn_dfs().join();
    println!("{} states up to symmetry, {} steps, depth {}", checker.unique_state_count(), checker.state_count(), checker.max_depth());
    checker.assert_properties();
}

/// A short way to a violation of each of `properties`, by steps as they print.
fn counterexamples<const N: usize>(planted: Planted, properties: [&'static str; N]) -> [String; N] {
    let model = VoteRegisters { planted: Some(planted) };
    let checker = model.checker().finish_when(HasDiscoveries::AllOf(properties.into())).spawn_bfs().join();
    println!("{planted:?}: {} states", checker.unique_state_count());
    properties.map(|property| {
        let path = checker.discovery(property).unwrap_or_else(|| panic!("{planted:?} does not violate \"{property}\""));
        let steps: Vec<String> = path.into_actions().iter().map(|action| format!("{action:?}")).collect();
        println!("\"{property}\":\n  {}", steps.join("\n  "));
        steps.join("; ")
    })
}

#[test]
fn a_refusal_that_a_crash_forgets_is_refuted() {
    let found = counterexamples(Planted::RefusalNotDurable, [AGREEMENT, CLIENT, WRITE_ONCE]);
    assert!(found.iter().all(|steps| steps.contains("Crash")), "only a crash makes a region forget: {found:#?}");
}

#[test]
fn a_vote_sent_before_its_sync_is_refuted() {
    let found = counterexamples(Planted::SentBeforeSync, [AGREEMENT, EXCLUSION, CLIENT, WRITE_ONCE]);
    assert!(found.iter().all(|steps| steps.contains("Crash")), "only a crash makes a region forget: {found:#?}");
}

#[test]
fn commit_proposed_again_to_regions_that_refused_is_refuted() {
    let found = counterexamples(Planted::NaiveBallotOne, [AGREEMENT, EXCLUSION, CLIENT, WRITE_ONCE]);
    assert!(found.iter().all(|steps| steps.contains("Repropose")), "without a second ballot all is well: {found:#?}");
}

#[test]
fn a_provisional_vote_counted_by_others_is_refuted() {
    let found = counterexamples(Planted::ProvisionalCounts, [AGREEMENT, EXCLUSION, CLIENT]);
    assert!(found.iter().all(|steps| steps.contains("Withdrawn")), "all is well as long as nothing is withdrawn: {found:#?}");
}

#[test]
fn a_firm_vote_withdrawn_is_refuted() {
    let found = counterexamples(Planted::FirmWithdrawn, [AGREEMENT, EXCLUSION, CLIENT, WRITE_ONCE]);
    assert!(found.iter().all(|steps| steps.contains("AskVote")), "only who asks makes a vote firm: {found:#?}");
}

#[test]
fn a_gateway_that_withdraws_and_counts_on_is_refuted() {
    let found = counterexamples(Planted::GatewayCountsOn, [AGREEMENT, EXCLUSION, CLIENT]);
    assert!(found.iter().all(|steps| steps.contains("Withdrawn")), "all is well as long as nothing is withdrawn: {found:#?}");
}
