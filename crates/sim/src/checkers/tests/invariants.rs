//! What must hold at the end of a run: nothing lost, all regions equal, work done.

use super::super::violation::{Anomaly, Violation};
use super::super::{convergence, no_lost_write, progress};
use super::{Words, begin, history, range, stamp, time};
use crate::history::{Txn, TxnNo};
use rhumb_core::{Key, RegionId, Row, Span, Value};
use std::collections::BTreeMap;

fn judge_end(txns: impl IntoIterator<Item = Txn>, last: Txn) -> Result<(), Violation> {
    let mut all = history(txns);
    let last = all.add(last);
    no_lost_write::check(&all, &[last])
}

fn assert_lost(txns: impl IntoIterator<Item = Txn>, last: Txn) -> String {
    let violation = judge_end(txns, last).expect_err("the loss is caught");
    assert_eq!(violation.anomaly, Anomaly::LostWrite, "{violation}");
    violation.story
}

#[test]
fn lost_acknowledged_append() {
    let appends = || [begin(1, 0).append("x", 1).ok(10, 5), begin(2, 0).append("x", 2).ok(10, 6)];
    assert_eq!(
        assert_lost(appends(), begin(9, 100).list("x", &[1]).ok(110, 100)),
        "T1 appended, and was acknowledged: x+=2; but the final read T2 shows x=[1]"
    );
    assert_eq!(judge_end(appends(), begin(9, 100).list("x", &[1, 2]).ok(110, 100)), Ok(()));
}

#[test]
fn lost_acknowledged_write() {
    let writes = || [begin(1, 0).write("x", 1).ok(10, 5), begin(2, 0).write("x", 2).ok(10, 6)];
    assert_lost(writes(), begin(9, 100).value("x", 1).ok(110, 100));
    assert_lost(writes(), begin(9, 100).nothing("x").ok(110, 100));
    assert_lost(writes(), begin(9, 100).values(range("a", "z"), &[]).ok(110, 100));
    assert_eq!(judge_end(writes(), begin(9, 100).value("x", 2).ok(110, 100)), Ok(()));
}

#[test]
fn lost_write_that_the_timestamps_hide() {
    // The second began after the first had ended, but was given the lower timestamp.
    let writes = [begin(1, 0).write("x", 1).ok(10, 25), begin(2, 20).write("x", 2).ok(30, 6)];
    assert_lost(writes, begin(9, 100).value("x", 1).ok(110, 100));
}

#[test]
fn lost_acknowledged_deletion() {
    let deletion = || [begin(1, 0).write("x", 1).ok(10, 5), begin(2, 20).delete("x").ok(30, 25)];
    assert_lost(deletion(), begin(9, 100).value("x", 1).ok(110, 100));
    assert_eq!(judge_end(deletion(), begin(9, 100).nothing("x").ok(110, 100)), Ok(()));
}

#[test]
fn aborted_write_present_at_the_end() {
    let violation = judge_end([begin(1, 0).append("x", 1).failed(10)], begin(9, 100).list("x", &[1]).ok(110, 100));
    assert_eq!(violation.expect_err("it is there").anomaly, Anomaly::AbortedRead);
}

#[test]
fn a_final_read_must_succeed_and_cover_every_key() {
    assert_lost([], begin(9, 100).failed(110));
    let uncovered = judge_end([begin(1, 0).append("x", 1).ok(10, 5)], begin(9, 100).list("y", &[]).ok(110, 100));
    assert_eq!(uncovered.expect_err("x was not read").anomaly, Anomaly::Misuse);
}

#[test]
fn several_final_reads_share_the_keys() {
    let mut all = history([begin(1, 0).append("x", 1).append("y", 1).ok(10, 5)]);
    let finals = [all.add(begin(8, 100).list("x", &[1]).ok(110, 100)), all.add(begin(9, 100).list("y", &[]).ok(110, 100))];
    assert_eq!(no_lost_write::check(&all, &finals).expect_err("y is lost").anomaly, Anomaly::LostWrite);
}

#[test]
fn misuse_is_told_from_a_violation() {
    let twice = [begin(1, 0).append("x", 1).ok(10, 5), begin(2, 0).append("x", 1).ok(10, 6)];
    let mixed = [begin(1, 0).append("x", 1).ok(10, 5), begin(2, 0).write("x", 2).ok(10, 6)];
    for txns in [twice, mixed] {
        assert_eq!(super::judge(txns).expect_err("the rules are broken").anomaly, Anomaly::Misuse);
    }
}

fn row(key: &str, version: u64, value: Option<&str>) -> (Key, Row) {
    (Key::from(key), Row { key: Key::from(key), version: stamp(version), value: value.map(Value::from) })
}

#[test]
fn regions_that_diverge() {
    let judge = |other: Vec<(Key, Row)>| {
        let same = || BTreeMap::from([row("a", 1, Some("1")), row("b", 2, None)]);
        let dumps = BTreeMap::from([(RegionId(0), same()), (RegionId(1), same()), (RegionId(2), other.into_iter().collect())]);
        convergence::check(&dumps).map_err(|violation| violation.story)
    };
    assert_eq!(judge(vec![row("a", 1, Some("1")), row("b", 2, None)]), Ok(()));
    let missing = "at b, r0 holds a deletion at 0.002000, r2 holds nothing";
    assert_eq!(judge(vec![row("a", 1, Some("1"))]), Err(missing.to_owned()));
    let newer = "at a, r0 holds \"1\" at 0.001000, r2 holds \"1\" at 0.003000";
    assert_eq!(judge(vec![row("a", 3, Some("1")), row("b", 2, None)]), Err(newer.to_owned()));
    let extra = "at c, r0 holds nothing, r2 holds \"3\" at 0.003000";
    assert_eq!(judge(vec![row("a", 1, Some("1")), row("b", 2, None), row("c", 3, Some("3"))]), Err(extra.to_owned()));
}

#[test]
fn no_progress_after_the_heal() {
    let demand = progress::Demand { committed_min: 2, committed_percent_min: 50 };
    let judge =
        |txns: Vec<Txn>| progress::check(&history(txns), time(100), Span::from_millis(10), demand).map_err(|violation| violation.anomaly);
    let (ok, failed) = (|at| begin(1, at).ok(at + 5, at), |at| begin(1, at).failed(at + 5));
    assert_eq!(judge(vec![failed(20), failed(105), ok(120), ok(130), failed(140), failed(150)]), Ok(()));
    assert_eq!(judge(vec![ok(20), ok(105), ok(120)]), Err(Anomaly::Stalled), "only one after the grace period");
    assert_eq!(judge(vec![ok(120), ok(130), failed(140), failed(150), failed(160)]), Err(Anomaly::Stalled), "fewer than half");
    assert_eq!(judge(vec![ok(120), ok(130), begin(2, 20)]), Err(Anomaly::Pending));
}

#[test]
fn violations_name_the_transactions_involved() {
    let story = judge_end([begin(1, 0).append("x", 1).ok(10, 5)], begin(9, 100).list("x", &[]).ok(110, 100)).expect_err("x is lost");
    assert_eq!(
        story.to_string(),
        "acknowledged write lost: T0 appended, and was acknowledged: x+=1; but the final read T1 shows x=nil
  T0 c1@r0 rw 0.000000..0.010000 committed at 0.005000: x+=1
  T1 c9@r0 rw 0.100000..0.110000 committed at 0.100000: x=nil"
            .replace("shows x=nil", "shows x=[]")
    );
    assert_eq!(TxnNo(1).to_string(), "T1");
}
