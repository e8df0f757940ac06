//! Commit timestamps that contradict the data, and stale reads that contradict them.

use super::super::stale_reads;
use super::super::violation::{Anomaly, Violation};
use super::{Words, assert_caught, assert_clean, begin, history, range, stamp};
use crate::history::{Cell, Mode, Op, Txn};
use rhumb_core::Row;

fn read_at(key: &str, cell: Cell, version: u64) -> Op {
    Op::read(&Row { key: key.into(), version: stamp(version), value: Some(cell.encode()) }).expect("a cell")
}

#[test]
fn a_dependency_on_a_later_timestamp() {
    let violation = assert_caught(
        [begin(1, 0).append("x", 1).ok(10, 8), begin(2, 0).list("x", &[1]).append("y", 1).ok(10, 7)],
        Anomaly::TimestampOrder,
    );
    assert_eq!(violation.story, "T0 -wr[x]-> T1, but T0 is at 0.008000 and T1 at 0.007000\n  T1 read x=[1], after T0 wrote x+=1");
}

#[test]
fn a_list_in_another_order_than_that_of_timestamps() {
    let appends = [begin(1, 0).append("x", 1).ok(10, 6), begin(2, 0).append("x", 2).ok(10, 5)];
    assert_caught(appends.into_iter().chain([begin(3, 20).list("x", &[1, 2]).ok(30, 25)]), Anomaly::TimestampOrder);
}

#[test]
fn a_snapshot_that_misses_a_version_below_it() {
    let append = || begin(1, 0).append("x", 1).ok(30, 5);
    let snapshot = |at| begin(2, 0).mode(Mode::ReadOnly).list("x", &[]).ok(10, at);
    assert_caught([append(), snapshot(6)], Anomaly::TimestampOrder);
    assert_caught([append(), snapshot(5)], Anomaly::TimestampOrder);
    assert_clean([append(), snapshot(4)]);
}

#[test]
fn a_snapshot_at_the_timestamp_of_the_version_it_saw() {
    let append = || begin(1, 0).append("x", 1).ok(30, 5);
    let snapshot = |at| begin(2, 0).mode(Mode::ReadOnly).list("x", &[1]).ok(10, at);
    assert_clean([append(), snapshot(5)]);
    assert_caught([append(), snapshot(4)], Anomaly::TimestampOrder);
}

#[test]
fn two_writes_of_a_key_at_one_timestamp() {
    assert_caught([begin(1, 0).write("x", 1).ok(10, 5), begin(2, 0).write("x", 2).ok(10, 5)], Anomaly::TimestampCollision);
    assert_clean([begin(1, 0).write("x", 1).ok(10, 5), begin(2, 0).write("y", 2).ok(10, 5)]);
}

#[test]
fn a_version_that_is_not_its_writers_timestamp() {
    let append = || begin(1, 0).append("x", 1).ok(10, 5);
    assert_caught([append(), begin(2, 20).op(read_at("x", Cell::List(vec![1]), 6)).ok(30, 25)], Anomaly::VersionMismatch);
    assert_clean([append(), begin(2, 20).op(read_at("x", Cell::List(vec![1]), 5)).ok(30, 25)]);
}

#[test]
fn an_unknown_write_applied_at_two_timestamps() {
    let read = |client, version| begin(client, 20).op(read_at("x", Cell::Register(1), version)).ok(30, 25);
    assert_caught([begin(1, 0).write("x", 1).perhaps(10), read(2, 5), read(3, 6)], Anomaly::VersionMismatch);
}

fn stale(as_of: u64) -> Txn {
    begin(9, 100).mode(Mode::Stale(stamp(as_of)))
}

fn judge_stale(read: Txn) -> Result<(), Violation> {
    let past = [
        begin(1, 0).write("r", 1).append("l", 1).ok(10, 5),
        begin(1, 20).write("r", 2).append("l", 2).ok(30, 25),
        begin(1, 40).delete("r").append("l", 3).ok(50, 45),
        begin(1, 60).list("l", &[1, 2, 3]).ok(70, 65),
    ];
    let all = history(past.into_iter().chain([read.ok(101, 50)]));
    assert_eq!(super::strict_serializability::check(&all), Ok(()), "a stale read need not be fresh");
    stale_reads::check(&all)
}

#[test]
fn a_stale_read_returns_the_newest_version_at_or_below_its_timestamp() {
    for (as_of, value, list) in
        [(4, None, &[][..]), (5, Some(1), &[1]), (24, Some(1), &[1]), (25, Some(2), &[1, 2]), (45, None, &[1, 2, 3])]
    {
        let cell = value.map(Cell::Register);
        assert_eq!(judge_stale(stale(as_of).read("r", cell).list("l", list)), Ok(()), "as of {as_of}");
        let rows = value.map(|value| ("r", value));
        assert_eq!(judge_stale(stale(as_of).values(range("m", "z"), rows.as_slice())), Ok(()), "as of {as_of}");
    }
}

#[test]
fn a_stale_read_of_a_version_too_new_or_too_old() {
    let wrong = [
        stale(24).value("r", 2),
        stale(25).value("r", 1),
        stale(45).value("r", 2),
        stale(4).value("r", 1),
        stale(25).nothing("r"),
        stale(25).values(range("m", "z"), &[]),
        stale(24).list("l", &[1, 2]),
        stale(25).list("l", &[1]),
        stale(5).list("l", &[]),
    ];
    for read in wrong {
        let violation = judge_stale(read.clone()).expect_err("the read is wrong");
        assert_eq!(violation.anomaly, Anomaly::StaleRead, "{read}: {violation}");
    }
}

#[test]
fn a_stale_read_says_what_it_should_have_seen() {
    let violation = judge_stale(stale(25).value("r", 1)).expect_err("the read is wrong");
    assert_eq!(violation.story, "T4 read r=1 as of 0.025000: the newest version then was T1's r:=2");
    let violation = judge_stale(stale(24).list("l", &[1, 2])).expect_err("the read is wrong");
    assert_eq!(violation.story, "T4 read l=[1 2] as of 0.024000: it already shows T1's l+=2");
}

#[test]
fn a_stale_read_of_an_unknown_write_whose_timestamp_nobody_knows() {
    let txns = history([begin(1, 0).write("x", 1).perhaps(10), begin(2, 20).mode(Mode::Stale(stamp(4))).value("x", 1).ok(21, 4)]);
    assert_eq!(stale_reads::check(&txns), Ok(()));
}

#[test]
fn what_a_stale_read_saw_had_happened() {
    let txns = [
        begin(1, 0).append("x", 1).perhaps(10),
        begin(2, 20).mode(Mode::Stale(stamp(15))).list("x", &[1]).ok(21, 15),
        begin(3, 40).list("x", &[]).ok(50, 45),
    ];
    assert_caught(txns, Anomaly::RealTime);
}
