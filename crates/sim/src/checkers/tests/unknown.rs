//! Transactions whose outcome their clients do not know.

use super::super::no_lost_write;
use super::super::violation::Anomaly;
use super::{Words, assert_caught, assert_clean, begin, history};
use crate::history::TxnNo;

#[test]
fn an_unknown_transaction_may_turn_out_committed() {
    assert_clean([begin(1, 0).append("x", 1).perhaps(10), begin(2, 20).list("x", &[1]).ok(30, 25)]);
    assert_clean([begin(1, 0).write("x", 1).perhaps(10), begin(2, 20).value("x", 1).ok(30, 25)]);
}

#[test]
fn an_unknown_transaction_may_never_have_happened() {
    assert_clean([begin(1, 0).append("x", 1).perhaps(10), begin(2, 20).list("x", &[]).append("x", 2).ok(30, 25)]);
}

#[test]
fn an_unknown_transaction_may_happen_after_its_client_gave_up() {
    assert_clean([begin(1, 0).append("x", 1).perhaps(10), begin(2, 20).list("x", &[]).ok(30, 25), begin(1, 40).list("x", &[1]).ok(50, 45)]);
}

#[test]
fn an_unknown_transaction_does_not_happen_before_it_began() {
    assert_caught([begin(2, 0).list("x", &[1]).ok(10, 5), begin(1, 20).append("x", 1).perhaps(30)], Anomaly::RealTime);
}

#[test]
fn a_pending_transaction_is_as_good_as_unknown() {
    assert_clean([begin(1, 0).append("x", 1), begin(2, 20).list("x", &[1]).ok(30, 25)]);
}

#[test]
fn an_unknown_transaction_observed_and_then_vanished() {
    assert_caught(
        [begin(1, 0).append("x", 1).perhaps(10), begin(2, 20).list("x", &[1]).ok(30, 25), begin(3, 40).list("x", &[]).ok(50, 45)],
        Anomaly::RealTime,
    );
    assert_caught(
        [begin(1, 0).write("x", 1).perhaps(10), begin(2, 20).value("x", 1).ok(30, 25), begin(3, 40).nothing("x").ok(50, 45)],
        Anomaly::RealTime,
    );
}

#[test]
fn an_unknown_transaction_half_observed() {
    let txns = || [begin(1, 0).append("x", 1).append("y", 1).perhaps(10), begin(2, 20).list("x", &[1]).list("y", &[]).ok(30, 25)];
    assert_caught(txns(), Anomaly::SingleAntiDependency);
}

#[test]
fn what_an_unknown_transaction_read_counts_once_it_was_observed() {
    // The second unknown one was seen only by the first; both happened.
    let txns = |seen: &[u64]| {
        [
            begin(1, 0).list("x", &[1]).append("y", 1).perhaps(10),
            begin(2, 0).append("x", 1).perhaps(10),
            begin(3, 20).list("y", &[1]).list("x", seen).ok(30, 25),
        ]
    };
    assert_clean(txns(&[1]));
    assert_caught(txns(&[]), Anomaly::SingleAntiDependency);
}

#[test]
fn an_unknown_write_may_stand_at_the_end_or_not() {
    let txns = |last| {
        history([begin(1, 0).write("x", 1).ok(10, 5), begin(2, 20).write("x", 2).perhaps(30), begin(3, 40).value("x", last).ok(50, 45)])
    };
    assert_eq!(no_lost_write::check(&txns(1), &[TxnNo(2)]), Ok(()));
    assert_eq!(no_lost_write::check(&txns(2), &[TxnNo(2)]), Ok(()));
}
