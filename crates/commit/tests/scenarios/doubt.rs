//! In doubt: regions that have voted yes and lost their gateway make their votes final and work the outcome out.

use crate::support::{Cluster, R0, R1, R2};
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::Span;

/// Long enough for a region in doubt to ask.
const PATIENCE: Span = Span::from_millis(2_500);

#[test]
fn regions_in_doubt_commit_after_their_gateway_died() {
    let mut cluster = Cluster::new(
        1,
        "A gateway dies with its Accepts out and all votes lost.
        The two regions left voted yes, know of no other vote, and ask each other. Two votes of three decide: they commit
        what no client was told of.",
    );
    cluster.narrate("a client of r0 writes k; all regions vote yes, and every vote is lost along with r0");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.hold(|envelope| envelope.is_vote());
    cluster.settle();
    cluster.kill(R0);
    cluster.lose(|envelope| envelope.is_vote());
    cluster.let_go();
    assert!(cluster.waits(commit));
    assert_eq!(cluster.stored(R1, "k").1, None);
    cluster.narrate("r1 and r2 ask");
    cluster.advance(PATIENCE);
    assert_eq!(cluster.stored(R1, "k").1, Some("1".into()));
    assert_eq!(cluster.stored(R2, "k").1, Some("1".into()));
    cluster.narrate("r0 starts again and asks about what it had promised itself");
    cluster.start(R0);
    cluster.advance(PATIENCE);
    assert_eq!(cluster.stored(R0, "k").1, Some("1".into()));
    cluster.check("regions_in_doubt_commit_after_their_gateway_died");
}

#[test]
fn a_region_that_never_heard_votes_no() {
    let mut cluster = Cluster::new(
        1,
        "A gateway dies when its Accept has reached only one other region, its own vote not yet on disk.
        Asked, the region that never heard votes no, durably. That is a split: the missing vote decides, and r1 waits for it
        with its lock held. r0, back without a memory of the attempt, votes no as well. The Accept that turns up at
        last changes nothing.",
    );
    cluster.narrate("a client of r0 writes k; the disk of r0 stalls, the Accept to r2 is delayed, and r0 dies");
    cluster.stall_disk(R0);
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.commit(txn, &[("k", "1")]);
    cluster.hold(|envelope| envelope.to == R2 && envelope.is_of(R0));
    cluster.settle();
    cluster.kill(R0);
    cluster.lose(|envelope| envelope.is_vote() && envelope.is_of(R0));
    cluster.hold(|envelope| envelope.is_accept() && envelope.is_of(R0));
    cluster.narrate("r1 asks");
    cluster.advance(PATIENCE);
    cluster.narrate("one yes and one no: r1 keeps its lock, goes on asking, and tells its operator");
    cluster.advance(PATIENCE);
    assert_eq!(cluster.prepared_and_in_doubt(R1), (1, 1));
    cluster.narrate("r0 starts again, and is asked");
    cluster.start(R0);
    cluster.advance(PATIENCE);
    assert_eq!(cluster.prepared_and_in_doubt(R1), (0, 0));
    cluster.narrate("the delayed Accept arrives");
    cluster.let_go();
    cluster.settle();
    cluster.narrate("the row is free");
    assert_eq!(cluster.put(R2, &[("k", "3")]).trips, 1);
    assert_eq!(cluster.stored(R1, "k").1, Some("3".into()));
    cluster.check("a_region_that_never_heard_votes_no");
}

#[test]
fn a_crash_in_the_middle_of_an_abort_leaves_no_lock_behind() {
    let mut cluster = Cluster::new(
        1,
        "A region that voted yes learns that the others refused, and crashes while it writes that down.
        Whatever part of it is on disk, the next life does not keep the lock.",
    );
    cluster.narrate("a client of r1 writes k; the Accept to r0 is delayed, and so are the votes");
    cluster.hold(|envelope| envelope.is_of(R1) && (envelope.is_vote() || envelope.to == R0));
    let other = cluster.begin(R1, ReadMode::Optimistic);
    let other = cluster.commit(other, &[("k", "1")]);
    cluster.settle();
    cluster.narrate("a client of r0 writes k too: r0 votes yes, r1 and r2 refuse");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "2")]);
    cluster.stall_disk(R0);
    cluster.settle();
    assert_eq!(cluster.failed(commit), TxnError::Conflict("locked by another transaction".into()));
    cluster.narrate("r0 crashes: the first of its two writes is on disk, the second is not");
    cluster.kill_keeping(R0, 1);
    cluster.let_go();
    cluster.settle();
    assert_eq!(cluster.committed(other).trips, 1);
    cluster.narrate("r0 starts again");
    cluster.start(R0);
    cluster.advance(PATIENCE);
    assert_eq!(cluster.prepared_and_in_doubt(R0), (0, 0));
    assert_eq!(cluster.stored(R0, "k").1, Some("1".into()));
    cluster.check("a_crash_in_the_middle_of_an_abort_leaves_no_lock_behind");
}
