//! Bounds of tables and messages: what goes beyond is refused, and nothing is lost.

use crate::support::messages::{is_finished, is_of_group, is_prepared};
use crate::support::{Cluster, R0, R2};
use rhumb_commit::interactive::Request;
use rhumb_commit::transaction::{CommitOptions, ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, Span, Timestamp};
use rhumb_replicated_log::Config;

#[test]
fn more_locks_than_there_may_be_are_refused() {
    let mut cluster = Cluster::configured(1, Config { locks_max: 2, ..Config::default() });
    let txn = cluster.begin(R2, ReadMode::Locking);
    let id = cluster.get(txn, ReadMode::Locking, &["k", "m", "n"]);
    cluster.settle();
    cluster.assert_conflict(id);
    let id = cluster.write(R2, &[("k", "1"), ("m", "1"), ("n", "1")]);
    cluster.settle();
    cluster.assert_conflict(id);
    cluster.put(R2, &[("k", "1"), ("m", "1")]);
    cluster.put(R2, &[("m", "2"), ("n", "2")]);
    assert_eq!(cluster.table(R0, "locks.held"), 0);
}

/// A group keeps its decisions to commit until all others have applied them, so it makes no more as long as one does not say so.
#[test]
fn decisions_that_others_do_not_hear_of_bar_further_ones() {
    let mut cluster = Cluster::configured(2, Config { prepared_max: 2, ..Config::default() });
    let keys: Vec<[String; 2]> = (0..3).map(|number| [cluster.key(0, number), cluster.key(1, number)]).collect();
    cluster.hold(is_finished);
    for [a, b] in &keys[..2] {
        cluster.put(R2, &[(a, "1"), (b, "1")]);
    }
    let [a, b] = &keys[2];
    let id = cluster.write(R2, &[(a, "1"), (b, "1")]);
    cluster.settle();
    cluster.assert_conflict(id);
    cluster.let_go();
    cluster.advance(Span::from_secs(1));
    cluster.put(R2, &[(a, "2"), (b, "2")]);
}

/// A gateway asks once more for a commit that is on its way to the log, as there is no room for another lock.
#[test]
fn what_is_proposed_keeps_its_locks_whatever_is_full() {
    let mut cluster = Cluster::configured(1, Config { locks_max: 1, ..Config::default() });
    cluster.hold(is_of_group);
    let id = cluster.write(R2, &[("k", "1")]);
    cluster.advance(Span::from_millis(1_500));
    assert!(cluster.waits(id));
    assert_eq!(cluster.table(R0, "locks.held"), 1, "another transaction could read what is overwritten, and commit");
    cluster.let_go();
    cluster.settle();
    cluster.committed(id);
}

/// What is under way is in memory, and in the log until it is applied.
#[test]
fn no_more_is_written_at_once_than_a_leader_may_keep() {
    let mut cluster = Cluster::configured(2, Config { writes_bytes_max: 1_000, ..Config::default() });
    let keys: Vec<[String; 2]> = (0..2).map(|number| [cluster.key(0, number), cluster.key(1, number)]).collect();
    let value = "v".repeat(800);
    cluster.hold(is_prepared);
    let [a, b] = &keys[0];
    let first = cluster.write(R2, &[(a, &value), (b, &value)]);
    cluster.settle();
    let [a, _] = &keys[1];
    let id = cluster.write(R2, &[(a, &value)]);
    cluster.settle();
    cluster.assert_conflict(id);
    cluster.let_go();
    cluster.settle();
    cluster.committed(first);
    cluster.put(R2, &[(a, &value)]);
}

/// Commits at r2 with so many keys of so many bytes that it depends on.
fn depend(cluster: &mut Cluster, count: usize, bytes: usize) -> RequestId {
    let txn = cluster.begin(R2, ReadMode::Locking);
    let filler = "k".repeat(bytes);
    let expect = (0..count).map(|number| (Key::from(format!("{number}{filler}").as_str()), Timestamp::ZERO)).collect();
    let id = cluster.request(R2, Request::Commit { txn, writes: Vec::new(), expect, options: CommitOptions::default() });
    cluster.settle();
    id
}

#[test]
fn a_transaction_that_depends_on_too_much_is_refused() {
    let mut cluster = Cluster::new(1, "");
    let id = depend(&mut cluster, 100, 4_096);
    cluster.committed(id);
    for (count, bytes) in [(400, 4_096), (13, 1 << 20)] {
        let id = depend(&mut cluster, count, bytes);
        assert!(matches!(cluster.failed(id), TxnError::TooLarge(_)), "{count} keys of {bytes} bytes");
    }
}

/// A disk answers nothing, and all clients read.
#[test]
fn loads_do_not_pile_up_at_a_disk_that_is_behind() {
    const LOADS_MAX: usize = 8_192;
    let mut cluster = Cluster::new(1, "");
    let at = cluster.put(R0, &[("k", "1")]).at;
    cluster.advance(Span::from_secs(2));
    cluster.hold_loads(R0);
    let reads: Vec<RequestId> = (0..4_096).map(|_| cluster.look(R0, ReadMode::Stale(at), "k")).collect();
    cluster.advance(Span::from_millis(3_500));
    let loads = cluster.table(R0, "site.jobs");
    assert!((LOADS_MAX..LOADS_MAX + 16).contains(&loads), "{loads}");
    cluster.answer_loads(R0);
    cluster.advance(Span::from_secs(4));
    assert_eq!(cluster.table(R0, "site.jobs"), 0);
    assert!(reads.into_iter().all(|id| !cluster.waits(id)));
}
