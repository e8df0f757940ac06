//! Decisions about transactions of two groups, and outcomes: who hears of them, and for how long they are remembered.

use crate::support::messages::{is_decided, is_finished, is_outcome, is_prepared};
use crate::support::{Cluster, R0, R2};
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{Rules, Span};
use rhumb_replicated_log::Config;
use rhumb_replicated_log::planted::Planted;

/// No group remembers more than one outcome.
fn forgetful() -> Config {
    Config { outcomes_max: 1, ..Config::default() }
}

/// Later than what was asked before.
const A_MOMENT: Span = Span::from_millis(200);

/// Many commits of two groups, of which the second one has told the first in vain that it has applied them. It is told of them once more, and if
/// each commit went to another replica of it, hardly any would get to its leader.
#[test]
fn decisions_are_forgotten_soon_however_many_wait() {
    let mut cluster = Cluster::new(2, "");
    cluster.hold(is_finished);
    for number in 0..10 {
        let (a, b) = (cluster.key(0, number), cluster.key(1, number));
        cluster.put(R2, &[(&a, "1"), (&b, "1")]);
    }
    assert_eq!(cluster.table(R0, "state.decided"), 10);
    cluster.lose(is_finished);
    cluster.let_go();
    cluster.advance(Span::from_millis(2_200));
    assert_eq!(cluster.tables(0, "state.decided"), [0; 3]);
}

/// A commit of two groups, of which the second one does not hear before the first one has forgotten its outcome.
fn decided_and_forgotten(rules: Rules<Planted>) -> (Cluster, String) {
    let mut cluster = Cluster::with(2, "", forgetful(), rules);
    let (a, b) = (cluster.key(0, 0), cluster.key(1, 0));
    cluster.hold(is_decided);
    cluster.put(R2, &[(&a, "1"), (&b, "1")]);
    cluster.lose(is_decided);
    cluster.hold(|envelope| is_decided(envelope) || is_prepared(envelope));
    cluster.advance(A_MOMENT);
    for number in 1..3 {
        let other = cluster.key(0, number);
        cluster.put(R2, &[(&other, "1")]);
    }
    assert_eq!(cluster.table(R0, "state.outcomes"), 1);
    cluster.let_go();
    cluster.advance(Span::from_secs(3));
    (cluster, b)
}

#[test]
fn a_decision_outlives_the_outcomes_that_are_remembered() {
    let (cluster, b) = decided_and_forgotten(Rules::HOLD);
    cluster.assert_ended(1, &b, Some("1"));
    assert_eq!(cluster.tables(0, "state.decided"), [0; 3]);
}

#[test]
fn a_decision_dropped_is_caught() {
    let (cluster, b) = decided_and_forgotten(Rules::breaking(Planted::DecisionDropped));
    cluster.assert_ended(1, &b, None);
}

/// A commit whose gateway does not hear of it, and asks once its outcome is forgotten.
fn asked_too_late(rules: Rules<Planted>) -> (Cluster, RequestId) {
    let mut cluster = Cluster::with(1, "", forgetful(), rules);
    cluster.hold(is_outcome);
    let id = cluster.write(R2, &[("k", "1")]);
    cluster.settle();
    cluster.lose(is_outcome);
    cluster.let_go();
    cluster.advance(A_MOMENT);
    cluster.put(R0, &[("m", "1")]);
    cluster.put(R0, &[("n", "1")]);
    cluster.advance(Span::from_secs(1));
    cluster.assert_ended(0, "k", Some("1"));
    (cluster, id)
}

#[test]
fn an_outcome_that_is_forgotten_is_unknown() {
    let (cluster, id) = asked_too_late(Rules::HOLD);
    assert!(matches!(cluster.failed(id), TxnError::Unknown(_)));
}

#[test]
fn a_forgotten_outcome_taken_for_an_abort_is_caught() {
    let (cluster, id) = asked_too_late(Rules::breaking(Planted::ForgottenIsAborted));
    cluster.assert_conflict(id);
}

/// A transaction that is older than all outcomes remembered, so that its own is forgotten as it commits.
#[test]
fn an_outcome_that_is_forgotten_at_once_is_told() {
    let mut cluster = Cluster::configured(1, forgetful());
    let txn = cluster.begin(R2, ReadMode::Locking);
    cluster.advance(A_MOMENT);
    cluster.put(R0, &[("m", "1")]);
    let id = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    cluster.committed(id);
}

/// A transaction has read under locks for so long that outcomes of its age are forgotten. Nobody was asked before to commit it.
#[test]
fn who_has_its_locks_and_began_too_long_ago_is_aborted_not_unknown() {
    let mut cluster = Cluster::configured(1, forgetful());
    let txn = cluster.begin(R2, ReadMode::Locking);
    cluster.get(txn, ReadMode::Locking, &["k"]);
    cluster.advance(A_MOMENT);
    cluster.put(R0, &[("m", "1")]);
    cluster.put(R0, &[("n", "1")]);
    let id = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    cluster.assert_conflict(id);
    cluster.put(R0, &[("k", "2")]);
}
