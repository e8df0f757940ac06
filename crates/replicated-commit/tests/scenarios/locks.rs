//! The lock rule of section 3.2.1: a conflicting request is denied, never queued; only an exclusive request takes over
//! a shared lock. And range locks, without which a phantom slips in.

use crate::support::messages::{is_of, is_vote};
use crate::support::{Cluster, R0, R1, R2};
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::Span;

#[test]
fn a_conflicting_request_is_denied_never_queued() {
    let mut cluster = Cluster::new(
        1,
        "A write and a locking read of a row that another transaction is about to commit.
        Both are denied on the spot: the writer aborts, the reader's gateway asks again later. Nobody waits at a lock, so
        nobody can wait in a circle. Source: Replicated Commit, section 3.2.1.",
    );
    cluster.narrate("a client of r0 writes k; it is prepared everywhere, but its votes are slow");
    cluster.hold(|envelope| is_vote(envelope) && is_of(envelope, R0));
    let first = cluster.begin(R0, ReadMode::Optimistic);
    let first = cluster.commit(first, &[("k", "1")]);
    cluster.settle();
    cluster.narrate("a client of r1 writes k too");
    let second = cluster.begin(R1, ReadMode::Optimistic);
    let second = cluster.commit(second, &[("k", "2")]);
    cluster.settle();
    assert_eq!(cluster.failed(second), TxnError::Conflict("locked by another transaction".into()));
    cluster.narrate("a client of r2 reads k with a lock");
    let reader = cluster.begin(R2, ReadMode::Locking);
    let read = cluster.get(reader, ReadMode::Locking, &["k"]);
    cluster.settle();
    assert!(cluster.waits(read), "its gateway will ask again");
    cluster.narrate("the votes arrive");
    cluster.let_go();
    cluster.settle();
    assert_eq!(cluster.committed(first).trips, 1);
    cluster.narrate("the reader's gateway asks again");
    cluster.advance(Span::from_millis(20));
    assert_eq!(cluster.values(read), [Some("1".into())]);
    cluster.check("a_conflicting_request_is_denied_never_queued");
}

#[test]
fn an_exclusive_request_takes_over_a_shared_lock() {
    let mut cluster = Cluster::new(
        1,
        "A writer takes over the locks of a reader.
        It reaches r1 and r2 only; where the reader has lost its lock the region votes no, and r0, where it still holds it,
        votes yes in vain. Source: Replicated Commit, section 3.2.1.",
    );
    cluster.narrate("a client of r0 reads a with a lock");
    let reader = cluster.begin(R0, ReadMode::Locking);
    let read = cluster.get(reader, ReadMode::Locking, &["a"]);
    cluster.settle();
    assert_eq!(cluster.values(read), [None]);
    cluster.narrate("a client of r1 writes a; r0 hears nothing of it");
    cluster.hold(|envelope| envelope.to == R0 && is_of(envelope, R1));
    let writer = cluster.begin(R1, ReadMode::Optimistic);
    let write = cluster.commit(writer, &[("a", "1")]);
    cluster.settle();
    assert_eq!(cluster.committed(write).trips, 1);
    cluster.narrate("the reader commits a write of b");
    let commit = cluster.commit(reader, &[("b", "1")]);
    cluster.settle();
    assert_eq!(cluster.failed(commit), TxnError::Conflict("a lock was taken over by a writer".into()));
    cluster.narrate("r0 hears of the writer at last");
    cluster.let_go();
    cluster.settle();
    assert_eq!(cluster.stored(R0, "a").1, Some("1".into()));
    assert_eq!(cluster.stored(R0, "b").1, None);
    cluster.check("an_exclusive_request_takes_over_a_shared_lock");
}

#[test]
fn a_range_lock_keeps_a_phantom_out() {
    let mut cluster = Cluster::new(
        1,
        "An insert into a range that a transaction has scanned and, prepared, waits to commit on.
        The range is locked like a row, though no row in it is: the insert is denied.",
    );
    cluster.put(R0, &[("order/1", "open")]);
    cluster.narrate("a client of r0 scans the orders and commits their count; the votes are slow");
    cluster.hold(|envelope| is_vote(envelope) && is_of(envelope, R0));
    let counter = cluster.begin(R0, ReadMode::Locking);
    let scan = cluster.scan(counter, ReadMode::Locking, "order/", "order0");
    cluster.settle();
    assert_eq!(cluster.values(scan), [Some("open".into())]);
    let count = cluster.commit(counter, &[("count", "1")]);
    cluster.settle();
    cluster.narrate("a client of r1 inserts an order");
    let phantom = cluster.begin(R1, ReadMode::Optimistic);
    let phantom = cluster.commit(phantom, &[("order/2", "open")]);
    cluster.settle();
    assert_eq!(cluster.failed(phantom), TxnError::Conflict("locked by another transaction".into()));
    cluster.narrate("the votes arrive");
    cluster.let_go();
    cluster.settle();
    assert_eq!(cluster.committed(count).trips, 2, "one for the scan, one for the commit");
    cluster.check("a_range_lock_keeps_a_phantom_out");
}

#[test]
fn a_phantom_that_comes_first_takes_the_range_lock_over() {
    let mut cluster = Cluster::new(
        1,
        "An insert into a range that a transaction has scanned but not yet asked to commit on.
        The insert takes the range lock over, and the scanner's commit is refused.",
    );
    cluster.narrate("a client of r0 scans the orders");
    let counter = cluster.begin(R0, ReadMode::Locking);
    let scan = cluster.scan(counter, ReadMode::Locking, "order/", "order0");
    cluster.settle();
    assert_eq!(cluster.values(scan), []);
    cluster.narrate("a client of r1 inserts an order");
    cluster.put(R1, &[("order/1", "open")]);
    cluster.narrate("the scanner commits the count it saw");
    let count = cluster.commit(counter, &[("count", "0")]);
    cluster.settle();
    assert_eq!(cluster.failed(count), TxnError::Conflict("a lock was taken over by a writer".into()));
    cluster.check("a_phantom_that_comes_first_takes_the_range_lock_over");
}
