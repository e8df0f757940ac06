//! Catenae, checked exhaustively in small configurations, and the checks held against protocols with one rule broken: what regions say
//! (`streams`), and what follows from it (`epochs`).

#[path = "catenae_model/epochs.rs"]
mod epochs;
#[path = "catenae_model/streams.rs"]
mod streams;

use epochs::{Broken, Epochs};
use stateright::{Checker, HasDiscoveries, Model};
use std::fmt::Debug;
use std::hash::Hash;
use streams::{Rule, Streams};

/// Explores all that `model` can reach: nothing that must not happen does, and everything that should be possible is.
fn check<M>(model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + Debug + PartialEq,
    M::Action: Debug + Clone + PartialEq,
{
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
    println!("{} states, {} steps, depth {}", checker.unique_state_count(), checker.state_count(), checker.max_depth());
    checker.assert_properties();
}

/// Finds a way to a violation of `property`.
fn refute<M>(model: M, property: &'static str)
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + Debug + PartialEq,
    M::Action: Debug + Clone + PartialEq,
{
    let checker = model.checker().finish_when(HasDiscoveries::AllOf([property].into())).spawn_bfs().join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("nothing violates \"{property}\""));
    let steps: Vec<String> = path.into_actions().iter().map(|action| format!("{action:?}")).collect();
    println!("\"{property}\" after {} states:\n  {}", checker.unique_state_count(), steps.join("\n  "));
}

/// A region that is not heard of any more, and one that takes over.
const LOST: Streams = Streams { rule: Rule::AsIs, crashes: false };

#[test]
fn what_a_region_says_is_agreed_on_whoever_takes_over() {
    check(LOST);
}

#[test]
fn what_a_region_says_is_agreed_on_if_who_takes_over_crashes() {
    check(Streams { crashes: true, ..LOST });
}

#[test]
fn an_acceptor_that_forgets_its_promise_is_refuted() {
    refute(Streams { rule: Rule::PromiseForgotten, ..LOST }, streams::AGREEMENT);
}

#[test]
fn an_answered_transaction_of_a_lost_region_is_refuted() {
    refute(Streams { rule: Rule::AnsweredAtHome, ..LOST }, streams::AGREEMENT);
}

#[test]
fn a_late_batch_abandoned_by_a_timer_alone_is_refuted() {
    refute(Streams { rule: Rule::AbandonedByTimer, ..LOST }, streams::AGREEMENT);
}

#[test]
fn three_conflicting_transactions_of_one_epoch_settle_alike_everywhere() {
    check(Epochs::new([1, 1, 1], Broken::Nothing));
}

#[test]
fn transactions_of_two_epochs_settle_alike_everywhere() {
    check(Epochs::new([1, 1, 2], Broken::Nothing));
    check(Epochs::new([1, 2, 2], Broken::Nothing));
}

#[test]
fn non_conflict_judged_by_timing_is_refuted() {
    refute(Epochs::new([1, 1, 1], Broken::ConflictByTiming), epochs::AGREEMENT);
}

#[test]
fn a_vote_that_counts_however_late_is_refuted() {
    refute(Epochs::new([1, 1, 1], Broken::LateVoteCounts), epochs::AGREEMENT);
}

#[test]
fn votes_on_direct_dependencies_are_refuted() {
    refute(Epochs::new([1, 1, 1], Broken::DirectDependencies), epochs::PROGRESS);
}
