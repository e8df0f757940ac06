//! Reads of nothing: before the first write, or after one of several deletions that look all alike.

use super::super::violation::Anomaly;
use super::{Words, assert_caught, assert_clean, begin, stamp};
use crate::history::{Op, Txn};
use rhumb_core::Row;

/// Written at 5, deleted at 25, written at 45, deleted at 65, written at 85; each acknowledged 5 later.
fn life() -> Vec<Txn> {
    vec![
        begin(1, 0).write("x", 1).ok(10, 5),
        begin(1, 20).delete("x").ok(30, 25),
        begin(1, 40).write("x", 2).ok(50, 45),
        begin(1, 60).delete("x").ok(70, 65),
        begin(1, 80).write("x", 3).ok(90, 85),
    ]
}

fn deleted_at(version: u64) -> Op {
    Op::read(&Row { key: "x".into(), version: stamp(version), value: None }).expect("nothing is no garbage")
}

#[test]
fn nothing_is_there_before_the_first_write_and_between_deletion_and_write() {
    for (begun, ended) in [(0, 4), (0, 200), (20, 30), (31, 41), (65, 75), (75, 200)] {
        assert_clean(life().into_iter().chain([begin(2, begun).nothing("x").ok(ended, begun)]));
    }
}

#[test]
fn nothing_is_not_there_between_write_and_deletion() {
    for (begun, ended) in [(11, 19), (51, 59), (91, 99)] {
        assert_caught(life().into_iter().chain([begin(2, begun).nothing("x").ok(ended, begun)]), Anomaly::RealTime);
    }
}

#[test]
fn the_version_tells_which_deletion_was_read() {
    assert_clean(life().into_iter().chain([begin(2, 28).op(deleted_at(25)).ok(72, 44)]));
    assert_caught(life().into_iter().chain([begin(2, 55).op(deleted_at(25)).ok(72, 44)]), Anomaly::RealTime);
    assert_caught(life().into_iter().chain([begin(2, 0).op(deleted_at(33)).ok(72, 44)]), Anomaly::UnwrittenRead);
}

#[test]
fn a_transaction_that_read_nothing_and_wrote_stands_right_after_a_deletion() {
    // It claims a place after the second write, which it did not see.
    let insert = begin(2, 0).nothing("x").write("x", 4).ok(100, 50);
    assert_caught(life().into_iter().chain([insert]), Anomaly::SingleAntiDependency);
    assert_clean(life().into_iter().chain([begin(2, 0).nothing("x").write("x", 4).ok(100, 30)]));
}

#[test]
fn who_finds_nothing_where_a_write_was_acknowledged_saw_the_deletion() {
    let txns = |seen: &[u64]| {
        [
            begin(1, 0).write("x", 1).ok(10, 5),
            begin(1, 20).delete("x").append("y", 1).ok(60, 25),
            begin(2, 30).nothing("x").list("y", seen).ok(50, 35),
        ]
    };
    assert_clean(txns(&[1]));
    assert_caught(txns(&[]), Anomaly::SingleAntiDependency);
}

#[test]
fn a_deletion_yet_to_begin_explains_nothing() {
    let txns = |later: u64| {
        [
            begin(1, 0).nothing("x").write("x", 1).append("y", 1).ok(60, 25),
            begin(2, 0).nothing("x").list("y", &[1]).ok(50, 35),
            begin(3, later).delete("x").ok(100, 30),
        ]
    };
    assert_clean(txns(40));
    assert_caught(txns(51), Anomaly::SingleAntiDependency);
}

#[test]
fn an_unknown_deletion_may_explain_a_read_of_nothing() {
    let write = || begin(1, 0).write("x", 1).ok(10, 5);
    assert_clean([write(), begin(2, 20).delete("x").perhaps(30), begin(3, 40).nothing("x").ok(50, 45)]);
    assert_caught([write(), begin(2, 20).delete("x").failed(30), begin(3, 40).nothing("x").ok(50, 45)], Anomaly::RealTime);
}

#[test]
fn an_unknown_deletion_seen_by_its_version_happened() {
    let txns = |last: Txn| {
        [
            begin(1, 0).write("x", 1).write("y", 1).ok(10, 5),
            begin(2, 20).delete("x").write("y", 2).perhaps(30),
            begin(3, 40).op(deleted_at(25)).ok(50, 45),
            last,
        ]
    };
    assert_clean(txns(begin(4, 60).value("y", 2).ok(70, 65)));
    assert_caught(txns(begin(4, 60).value("y", 1).ok(70, 65)), Anomaly::RealTime);
}
