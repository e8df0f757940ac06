//! One change of QuAD's configuration with one transaction at four sites, checked exhaustively, and the checks held against protocols with
//! one rule broken.

#[path = "quad_model/change.rs"]
mod change;

use change::{Change, LASTING, Rule};
use stateright::{Checker, HasDiscoveries, Model};

fn check(model: Change) {
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
    println!("{} states, {} steps, depth {}", checker.unique_state_count(), checker.state_count(), checker.max_depth());
    checker.assert_properties();
}

/// Finds a way to a violation of `property`.
fn refute(model: Change, property: &'static str) {
    let checker = model.checker().finish_when(HasDiscoveries::AllOf([property].into())).spawn_bfs().join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("nothing violates \"{property}\""));
    let steps: Vec<String> = path.into_actions().iter().map(|action| format!("{action:?}")).collect();
    println!("\"{property}\" after {} states:\n  {}", checker.unique_state_count(), steps.join("\n  "));
}

/// Of a core: it writes at all cores.
const AT_CORE: Change = Change { rule: Rule::AsIs, writers: &[0, 1, 2], movers: 2 };
/// Of the slave: it writes at itself and at two cores.
const AT_SLAVE: Change = Change { rule: Rule::AsIs, writers: &[0, 1, 3], movers: 2 };

#[test]
fn a_transaction_at_a_core_outlives_a_change_or_never_was() {
    check(AT_CORE);
}

#[test]
fn a_transaction_at_a_slave_outlives_a_change_or_never_was() {
    check(AT_SLAVE);
}

#[test]
fn a_commit_shown_before_it_is_settled_is_refuted() {
    refute(Change { rule: Rule::ShownUnsettled, movers: 1, ..AT_SLAVE }, LASTING);
}

#[test]
fn a_seal_that_does_not_report_commits_is_refuted() {
    refute(Change { rule: Rule::CommitsNotCarried, movers: 1, ..AT_CORE }, LASTING);
}

#[test]
fn an_epoch_activated_before_reconciliation_is_refuted() {
    refute(Change { rule: Rule::Unreconciled, movers: 1, ..AT_CORE }, LASTING);
}

#[test]
fn a_sealed_site_that_goes_on_is_refuted() {
    refute(Change { rule: Rule::OldEpochServed, movers: 1, ..AT_CORE }, LASTING);
}
