//! The anomalies of the field, one test each. Transactions overlap in time unless the anomaly is about time.

use super::super::violation::Anomaly;
use super::{Words, assert_caught, assert_clean, begin};

#[test]
fn g0_dirty_write() {
    let violation = assert_caught(
        [
            begin(1, 0).append("x", 1).append("y", 1).ok(10, 5),
            begin(2, 0).append("x", 2).append("y", 2).ok(10, 6),
            begin(3, 20).list("x", &[1, 2]).list("y", &[2, 1]).ok(30, 25),
        ],
        Anomaly::DirtyWrite,
    );
    assert_eq!(
        violation.to_string(),
        "dirty write (G0): T0 -ww[x]-> T1 -ww[y]-> T0
  T0 wrote x+=1 before T1 wrote x+=2
  T1 wrote y+=2 before T0 wrote y+=1
  T0 c1@r0 rw 0.000000..0.010000 committed at 0.005000: x+=1 y+=1
  T1 c2@r0 rw 0.000000..0.010000 committed at 0.006000: x+=2 y+=2"
    );
}

#[test]
fn g0_appends_of_one_transaction_turned_round_interleaved_or_torn() {
    for seen in [[2, 1, 3], [1, 3, 2]] {
        let writers = [begin(1, 0).append("x", 1).append("x", 2).ok(10, 5), begin(2, 0).append("x", 3).ok(10, 6)];
        assert_caught(writers.into_iter().chain([begin(3, 20).list("x", &seen).ok(30, 25)]), Anomaly::DirtyWrite);
    }
    let torn = [begin(1, 0).append("x", 1).append("x", 2).ok(10, 5), begin(2, 0).append("x", 3).ok(10, 6)];
    let violation = assert_caught(torn.into_iter().chain([begin(3, 20).list("x", &[1, 3]).ok(30, 25)]), Anomaly::DirtyWrite);
    assert_eq!(violation.story, "T0 wrote x+=1 x+=2, which does not stand in one piece in x=[1 3]");
}

#[test]
fn g1a_aborted_read_of_a_list() {
    assert_caught([begin(1, 0).append("x", 1).failed(10), begin(2, 0).list("x", &[1]).ok(10, 5)], Anomaly::AbortedRead);
}

#[test]
fn g1a_aborted_read_of_a_register() {
    let violation = assert_caught([begin(1, 0).write("x", 1).failed(10), begin(2, 0).value("x", 1).ok(10, 5)], Anomaly::AbortedRead);
    assert_eq!(violation.story, "T1 read 1 at x, which T0 wrote, but T0 aborted");
}

#[test]
fn g1b_intermediate_read_of_a_list() {
    let writer = begin(1, 0).append("x", 1).append("x", 2).ok(10, 5);
    assert_caught([writer, begin(2, 0).list("x", &[1]).ok(10, 6)], Anomaly::IntermediateRead);
}

#[test]
fn g1b_intermediate_read_of_a_register() {
    let writer = begin(1, 0).write("x", 1).write("x", 2).ok(10, 5);
    assert_caught([writer, begin(2, 0).value("x", 1).ok(10, 6)], Anomaly::IntermediateRead);
}

#[test]
fn g1c_circular_information_flow() {
    assert_caught(
        [begin(1, 0).list("y", &[1]).append("x", 1).ok(10, 5), begin(2, 0).list("x", &[1]).append("y", 1).ok(10, 6)],
        Anomaly::CircularInformation,
    );
    assert_caught(
        [begin(1, 0).value("y", 1).write("x", 1).ok(10, 5), begin(2, 0).value("x", 1).write("y", 1).ok(10, 6)],
        Anomaly::CircularInformation,
    );
}

#[test]
fn lost_update_of_a_list() {
    let updates = || [begin(1, 0).list("x", &[]).append("x", 1).ok(10, 5), begin(2, 0).list("x", &[]).append("x", 2).ok(10, 6)];
    assert_caught(updates(), Anomaly::AntiDependencies);
    // The same once somebody read what came of it.
    assert_caught(updates().into_iter().chain([begin(3, 20).list("x", &[2]).ok(30, 25)]), Anomaly::SingleAntiDependency);
}

#[test]
fn lost_update_of_a_register() {
    let violation = assert_caught(
        [
            begin(1, 0).write("x", 1).ok(10, 5),
            begin(2, 20).value("x", 1).write("x", 2).ok(30, 25),
            begin(3, 20).value("x", 1).write("x", 3).ok(30, 26),
        ],
        Anomaly::AntiDependencies,
    );
    assert!(violation.story.starts_with("T1 -rw[x]-> T2 -rw[x]-> T1\n  T1 read x=1, before T2 wrote x:=3\n"), "{violation}");
}

#[test]
fn lost_update_of_a_row_inserted_twice() {
    assert_caught(
        [begin(1, 0).nothing("x").write("x", 1).ok(10, 5), begin(2, 0).nothing("x").write("x", 2).ok(10, 6)],
        Anomaly::AntiDependencies,
    );
}

#[test]
fn read_skew() {
    assert_caught(
        [begin(1, 0).write("x", 1).write("y", 1).ok(10, 5), begin(2, 0).nothing("x").value("y", 1).ok(10, 6)],
        Anomaly::SingleAntiDependency,
    );
}

#[test]
fn write_skew() {
    assert_caught(
        [
            begin(1, 0).list("x", &[]).list("y", &[]).append("x", 1).ok(10, 5),
            begin(2, 0).list("x", &[]).list("y", &[]).append("y", 1).ok(10, 6),
        ],
        Anomaly::AntiDependencies,
    );
    assert_caught(
        [begin(1, 0).nothing("x").nothing("y").write("x", 1).ok(10, 5), begin(2, 0).nothing("x").nothing("y").write("y", 1).ok(10, 6)],
        Anomaly::AntiDependencies,
    );
}

#[test]
fn read_only_anomaly() {
    let accounts = || {
        [
            begin(1, 0).write("checking", 100).write("saving", 100).ok(10, 5),
            begin(2, 20).value("checking", 100).value("saving", 100).write("checking", 89).ok(60, 36),
            begin(3, 20).value("saving", 100).write("saving", 120).ok(30, 25),
        ]
    };
    let report = begin(4, 35).value("checking", 100).value("saving", 120).ok(45, 30);
    let violation = assert_caught(accounts().into_iter().chain([report]), Anomaly::AntiDependencies);
    assert_eq!(violation.story.lines().next(), Some("T1 -rw[saving]-> T2 -wr[saving]-> T3 -rw[checking]-> T1"));
    // Without the report the transfers are serializable, but not in the order of their timestamps.
    let violation = assert_caught(accounts(), Anomaly::TimestampOrder);
    assert_eq!(violation.story.lines().next(), Some("T1 -rw[saving]-> T2, but T1 is at 0.036000 and T2 at 0.025000"));
}

#[test]
fn long_fork() {
    assert_caught(
        [
            begin(1, 0).write("x", 1).ok(10, 5),
            begin(2, 0).write("y", 1).ok(10, 6),
            begin(3, 0).value("x", 1).nothing("y").ok(10, 7),
            begin(4, 0).nothing("x").value("y", 1).ok(10, 8),
        ],
        Anomaly::AntiDependencies,
    );
}

#[test]
fn stale_read_after_completion_is_serializable_but_not_strictly() {
    let violation = assert_caught([begin(1, 0).append("x", 1).ok(10, 5), begin(2, 11).list("x", &[]).ok(20, 15)], Anomaly::RealTime);
    assert!(violation.story.contains("T0 had committed at 0.010000 when T1 began at 0.011000"), "{violation}");
    assert_caught([begin(1, 0).write("x", 1).ok(10, 5), begin(2, 11).nothing("x").ok(20, 15)], Anomaly::RealTime);
    // Begun before the other was acknowledged, the same read is fine.
    assert_clean([begin(1, 0).append("x", 1).ok(10, 5), begin(2, 10).list("x", &[]).ok(20, 4)]);
}

#[test]
fn stale_read_of_an_overwritten_register() {
    let txns = [begin(1, 0).write("x", 1).ok(10, 5), begin(2, 20).write("x", 2).ok(30, 25), begin(3, 40).value("x", 1).ok(50, 45)];
    assert_caught(txns, Anomaly::RealTime);
}

#[test]
fn a_client_that_does_not_see_its_own_last_write_even_at_equal_times() {
    assert_caught([begin(1, 0).append("x", 1).ok(10, 5), begin(1, 10).list("x", &[]).ok(20, 15)], Anomaly::RealTime);
}

#[test]
fn a_cycle_through_real_time_of_transactions_far_apart_stays_short() {
    let first = [begin(1, 0).append("x", 1).ok(10, 5)];
    let between = (2_u32..200).map(|n| begin(n, 20 * u64::from(n)).append("y", u64::from(n)).ok(20 * u64::from(n) + 10, 20 * u64::from(n)));
    let violation =
        assert_caught(first.into_iter().chain(between).chain([begin(1, 5_000).list("x", &[]).ok(5_010, 5_005)]), Anomaly::RealTime);
    assert_eq!(violation.story.lines().next(), Some("T0 -rt-> T199 -rw[x]-> T0"));
}

#[test]
fn double_append() {
    assert_caught([begin(1, 0).append("x", 1).ok(10, 5), begin(2, 20).list("x", &[1, 1]).ok(30, 25)], Anomaly::DoubleAppend);
}

#[test]
fn incompatible_orders() {
    let appends = [begin(1, 0).append("x", 1).ok(10, 5), begin(2, 0).append("x", 2).ok(10, 6)];
    let reads = [begin(3, 20).list("x", &[1, 2]).ok(30, 25), begin(4, 20).list("x", &[2, 1]).ok(30, 26)];
    let violation = assert_caught(appends.into_iter().chain(reads), Anomaly::IncompatibleOrders);
    assert_eq!(violation.story, "T2 read x=[1 2], T3 read x=[2 1]: neither is a prefix of the other");
}

#[test]
fn an_acknowledged_append_missing_from_a_later_read() {
    let appends = [begin(1, 0).append("x", 1).ok(10, 5), begin(2, 20).append("x", 2).ok(30, 25)];
    assert_caught(appends.into_iter().chain([begin(3, 40).list("x", &[1]).ok(50, 45)]), Anomaly::RealTime);
}

#[test]
fn a_read_of_what_nobody_wrote() {
    assert_caught([begin(1, 0).list("x", &[7]).ok(10, 5)], Anomaly::UnwrittenRead);
    assert_caught([begin(1, 0).value("x", 7).ok(10, 5)], Anomaly::UnwrittenRead);
}

#[test]
fn a_transaction_that_does_not_see_its_own_writes() {
    assert_caught([begin(1, 0).append("x", 1).list("x", &[]).ok(10, 5)], Anomaly::InternalRead);
    assert_caught([begin(1, 0).write("x", 1).nothing("x").ok(10, 5)], Anomaly::InternalRead);
    assert_caught([begin(1, 0).value("x", 1).write("x", 1).ok(10, 5)], Anomaly::InternalRead);
    assert_caught([begin(1, 0).write("x", 1).ok(10, 5), begin(2, 0).nothing("x").value("x", 1).ok(10, 6)], Anomaly::InternalRead);
    assert_clean([begin(1, 0)
        .list("x", &[])
        .append("x", 1)
        .list("x", &[1])
        .write("y", 2)
        .value("y", 2)
        .delete("y")
        .nothing("y")
        .ok(10, 5)]);
}

#[test]
fn clean_histories_pass() {
    assert_clean([]);
    // Three clients that increment one list one after the other, and a reader between them.
    assert_clean([
        begin(1, 0).list("x", &[]).append("x", 1).ok(10, 5),
        begin(2, 5).list("x", &[1]).append("x", 2).append("x", 3).ok(20, 15),
        begin(3, 8).list("x", &[1]).ok(25, 10),
        begin(1, 22).list("x", &[1, 2, 3]).append("x", 4).ok(30, 25),
    ]);
    // Blind writes whose order only the timestamps tell, against the order of their ends.
    assert_clean([
        begin(1, 0).write("x", 1).ok(10, 7),
        begin(2, 0).write("x", 2).ok(9, 5),
        begin(3, 20).value("x", 1).write("x", 3).ok(30, 25),
        begin(4, 20).value("x", 3).ok(30, 26),
    ]);
    // An aborted transaction may have read anything.
    assert_clean([begin(1, 0).write("x", 1).ok(10, 5), begin(2, 20).nothing("x").value("y", 7).failed(30)]);
}
