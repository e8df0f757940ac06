//! Rows that scans should have returned, or should not have.

use super::super::no_phantom;
use super::super::violation::Anomaly;
use super::{Words, assert_caught, assert_clean, begin, history, range};
use crate::history::Txn;

fn assert_phantom(txns: impl IntoIterator<Item = Txn>) -> String {
    let violation = no_phantom::check(&history(txns)).expect_err("the phantom is caught");
    assert_eq!(violation.anomaly, Anomaly::Phantom, "{violation}");
    violation.story
}

#[test]
fn phantom_write_skew() {
    let txns = || {
        [begin(1, 0).values(range("a", "d"), &[]).write("a", 1).ok(10, 5), begin(2, 0).values(range("a", "d"), &[]).write("b", 1).ok(10, 6)]
    };
    assert_eq!(
        assert_phantom(txns()),
        "T0 -rw[b absent]-> T1 -rw[a absent]-> T0\n  T0 scanned and found no b, before T1 wrote b:=1\n  T1 scanned and found no a, \
         before T0 wrote a:=1"
    );
    assert_caught(txns(), Anomaly::AntiDependencies);
}

#[test]
fn phantom_in_lists() {
    let nothing: [(&str, crate::history::Cell); 0] = [];
    assert_phantom([
        begin(1, 0).append("a", 1).append("z", 1).ok(10, 5),
        begin(2, 0).scan(range("a", "d"), nothing).list("z", &[1]).ok(10, 6),
    ]);
}

#[test]
fn a_scan_that_misses_a_row_acknowledged_before_it() {
    assert_phantom([begin(1, 0).write("b", 1).ok(10, 5), begin(2, 20).values(range("a", "d"), &[]).ok(30, 25)]);
    // Not if the row lies outside the range.
    assert_clean([begin(1, 0).write("d", 1).ok(10, 5), begin(2, 20).values(range("a", "d"), &[]).ok(30, 25)]);
}

#[test]
fn a_phantom_that_was_also_read_by_its_key() {
    let reader = begin(2, 20).nothing("b").values(range("a", "d"), &[]).ok(30, 25);
    assert_eq!(assert_phantom([begin(1, 0).write("b", 1).ok(10, 5), reader]).lines().next(), Some("T1 -rw[b absent]-> T0 -rt-> T1"));
}

#[test]
fn a_row_that_appears_between_two_scans_of_a_transaction() {
    let scans = begin(2, 0).values(range("a", "d"), &[]).values(range("a", "d"), &[("b", 1)]).ok(10, 6);
    assert_eq!(assert_phantom([begin(1, 0).write("b", 1).ok(10, 5), scans]), "T1 read b=1, against what it read there before");
}

#[test]
fn a_deleted_row_that_a_scan_still_returns() {
    let txns = || {
        [
            begin(1, 0).write("b", 1).ok(10, 5),
            begin(2, 20).delete("b").ok(30, 25),
            begin(3, 40).values(range("a", "d"), &[("b", 1)]).ok(50, 45),
        ]
    };
    assert_caught(txns(), Anomaly::RealTime);
}

#[test]
fn a_scan_misses_a_row_inserted_again_after_a_deletion() {
    assert_phantom([
        begin(1, 0).write("b", 1).ok(10, 5),
        begin(2, 20).delete("b").ok(30, 25),
        begin(3, 40).write("b", 2).ok(50, 45),
        begin(4, 60).values(range("a", "d"), &[]).ok(70, 65),
    ]);
}

#[test]
fn another_anomaly_is_no_phantom() {
    let skew =
        [begin(1, 0).nothing("x").nothing("y").write("x", 1).ok(10, 5), begin(2, 0).nothing("x").nothing("y").write("y", 1).ok(10, 6)];
    assert_eq!(no_phantom::check(&history(skew)), Ok(()));
}

#[test]
fn a_scan_out_of_order_or_range() {
    let rows = || begin(1, 0).write("a", 1).write("b", 1).write("d", 1).ok(10, 5);
    assert_caught([rows(), begin(2, 20).values(range("a", "d"), &[("b", 1), ("a", 1)]).ok(30, 25)], Anomaly::BadScan);
    assert_caught([rows(), begin(2, 20).values(range("a", "d"), &[("a", 1), ("b", 1), ("d", 1)]).ok(30, 25)], Anomaly::BadScan);
}

#[test]
fn clean_scans_pass() {
    assert_clean([
        begin(1, 0).values(range("a", "d"), &[]).write("a", 1).values(range("a", "d"), &[("a", 1)]).ok(10, 5),
        begin(2, 20).values(range("a", "d"), &[("a", 1)]).write("c", 1).delete("a").ok(30, 25),
        begin(3, 25).values(range("a", "d"), &[("a", 1)]).ok(40, 20),
        begin(4, 50).values(range("a", "d"), &[("c", 1)]).ok(60, 55),
    ]);
}
