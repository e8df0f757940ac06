//! Reads without locks: snapshots, optimistic local reads, and what a stale read may return.

use crate::resolutions::{LONG, keys_of_two_shards};
use crate::support::messages::{is_vote, tells_outcome};
use crate::support::{Cluster, R0, R1, R2};
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::{Body, RegionId, SiteId, Span, Timestamp};
use rhumb_replicated_commit::message::Read;
use rhumb_replicated_commit::{Answer, Note};
use std::cell::RefCell;
use std::collections::BTreeSet;

#[test]
fn a_snapshot_read_waits_for_a_prepared_transaction_below_it() {
    let mut cluster = Cluster::new(
        1,
        "A snapshot read at a timestamp above that of a prepared transaction.
        The transaction may commit below the snapshot, so no replica answers before its outcome is known; then the snapshot
        holds it.",
    );
    cluster.narrate("a client of r0 writes k; it is prepared everywhere, but its votes are slow");
    cluster.hold(is_vote);
    let writer = cluster.begin(R0, ReadMode::Optimistic);
    let write = cluster.commit(writer, &[("k", "1")]);
    cluster.settle();
    cluster.narrate("a client of r1 reads k");
    let reader = cluster.begin(R1, ReadMode::Snapshot);
    let read = cluster.get(reader, ReadMode::Snapshot, &["k"]);
    cluster.settle();
    assert!(cluster.waits(read));
    cluster.narrate("the votes arrive");
    cluster.let_go();
    cluster.settle();
    let at = cluster.committed(write).at;
    assert!(at < reader.began);
    assert_eq!(cluster.rows(read), (vec![(at, Some("1".into()))], 1));
    cluster.check("a_snapshot_read_waits_for_a_prepared_transaction_below_it");
}

#[test]
fn an_optimistic_local_read_is_validated_by_the_votes() {
    let mut cluster = Cluster::new(
        1,
        "Optimistic reads: no lock, no message, and the votes judge.
        What r0 reads is current, and r2, which missed that version, has no evidence against it: all vote yes. What r2 reads
        is not current, and the regions that know better vote no.",
    );
    cluster.put(R0, &[("k", "1")]);
    cluster.cut(RegionId(2));
    cluster.put(R0, &[("k", "2")]);
    cluster.heal();
    cluster.narrate("a client of r0 reads the newest k and writes a");
    let current = cluster.begin(R0, ReadMode::Optimistic);
    let read = cluster.get(current, ReadMode::Optimistic, &["k"]);
    assert_eq!(cluster.values(read), [Some("2".into())]);
    let commit = cluster.commit(current, &[("a", "1")]);
    cluster.settle();
    assert_eq!(cluster.committed(commit).trips, 1, "the read cost none");
    cluster.narrate("a client of r2 reads the k that r2 has and writes b");
    let behind = cluster.begin(R2, ReadMode::Optimistic);
    let read = cluster.get(behind, ReadMode::Optimistic, &["k"]);
    assert_eq!(cluster.values(read), [Some("1".into())]);
    let commit = cluster.commit(behind, &[("b", "1")]);
    cluster.settle();
    assert_eq!(cluster.failed(commit), TxnError::Conflict("a row read has changed".into()));
    cluster.check("an_optimistic_local_read_is_validated_by_the_votes");
}

#[test]
fn nobody_is_shown_two_states_of_a_row() {
    let mut cluster =
        Cluster::new(1, "A row changes, and another appears, between two reads without locks: by range, then by key, and back.");
    cluster.put(R0, &[("k1", "1")]);
    let optimistic = ReadMode::Optimistic;
    let begin = |cluster: &mut Cluster| cluster.begin(R0, optimistic);
    let (by_range, by_key, next) = (begin(&mut cluster), begin(&mut cluster), begin(&mut cluster));
    let found = cluster.scan(by_range, optimistic, "k", "l");
    assert_eq!(cluster.values(found), [Some("1".into())]);
    let found = cluster.get(by_key, optimistic, &["k1", "k2"]);
    assert_eq!(cluster.values(found), [Some("1".into()), None]);
    let found = cluster.scan(next, optimistic, "k", "k2");
    assert_eq!(cluster.values(found), [Some("1".into())]);
    let again = cluster.get(by_range, optimistic, &["k1", "k2"]);
    assert_eq!(cluster.values(again), [Some("1".into()), None], "nothing has changed yet");
    cluster.put(R0, &[("k1", "2"), ("k2", "1")]);
    let changed = TxnError::Conflict("a row changed between two reads of it".into());
    for read in [
        cluster.get(by_range, optimistic, &["k1"]),
        cluster.get(by_range, optimistic, &["k2"]),
        cluster.scan(by_key, optimistic, "k2", "l"),
        cluster.scan(by_key, optimistic, "k", "k2"),
        cluster.scan(next, optimistic, "k1", "l"),
    ] {
        assert_eq!(cluster.failed(read), changed);
    }
    let unseen = cluster.get(next, optimistic, &["k2"]);
    assert_eq!(cluster.values(unseen), [Some("1".into())], "it was outside of the range");
}

#[test]
fn a_stale_read_may_return_what_was_overwritten() {
    let mut cluster = Cluster::new(
        1,
        "A stale read as of a time in the past.
        It is allowed to miss what committed since: that is what was asked for. It sees what its region has, which is
        complete as of that time, and no message leaves the region.",
    );
    let old = cluster.put(R0, &[("k", "1")]);
    cluster.advance(Span::from_secs(2));
    let new = cluster.put(R0, &[("k", "2")]);
    cluster.advance(Span::from_secs(4));
    cluster.narrate("a client of r1 reads k as of just before the second write");
    let mode = ReadMode::Stale(new.at.previous());
    let reader = cluster.begin(R1, mode);
    let read = cluster.get(reader, mode, &["k"]);
    assert_eq!(cluster.rows(read), (vec![(old.at, Some("1".into()))], 0));
    cluster.narrate("another one reads k as of the second write");
    let mode = ReadMode::Stale(new.at);
    let reader = cluster.begin(R1, mode);
    let read = cluster.get(reader, mode, &["k"]);
    assert_eq!(cluster.rows(read), (vec![(new.at, Some("2".into()))], 0));
    cluster.check("a_stale_read_may_return_what_was_overwritten");
}

/// The incarnations in which `site` has asked for what is under way.
fn incarnations_asking(cluster: &Cluster, site: SiteId) -> BTreeSet<Timestamp> {
    let incarnations = RefCell::new(BTreeSet::new());
    cluster.under_way(|envelope| {
        if let Body::Note(Note::Read(Read { read, .. })) = &envelope.body
            && envelope.from == site
        {
            incarnations.borrow_mut().insert(read.incarnation);
        }
        false
    });
    incarnations.into_inner()
}

/// A gateway's clock may show a timestamp that it has shown in an earlier incarnation, and its reads are named by such: what is answered to one incarnation
/// says nothing to another.
#[test]
fn reads_of_two_incarnations_have_different_names() {
    let mut cluster = Cluster::new(1, "");
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::Read(_))));
    for incarnations in 1..=3 {
        let txn = cluster.begin(R0, ReadMode::Locking);
        cluster.get(txn, ReadMode::Locking, &["k"]);
        assert_eq!(incarnations_asking(&cluster, R0).len(), incarnations);
        cluster.kill(R0);
        cluster.start(R0);
    }
}

/// The coordinator's site of r2 is gone. The cohort beside it is prepared for a commit that r0 and r1 have applied, and keeps the client of its
/// gateway waiting who reads the row of one replica, though two others would answer at once: it is asked next of another.
///
/// 1. client of r0: commit a = 1, b = 1, acknowledged. Of r2 the second site is prepared; the first one dies before it hears of the outcome.
/// 2. client of r2's second site: get b, optimistic. The nearest replica is its own, which waits for the first site.
#[test]
fn a_read_of_one_replica_that_waits_for_a_dead_site_is_asked_of_another() {
    let (a, b) = keys_of_two_shards();
    let second = SiteId::new(2, 1);
    let mut cluster = Cluster::new(2, "");
    cluster.hold(|envelope| envelope.to == R2 && tells_outcome(envelope));
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let id = cluster.commit(txn, &[(&a, "1"), (&b, "1")]);
    cluster.settle();
    cluster.committed(id);
    cluster.kill(R2);
    cluster.lose(|_| true);
    cluster.let_go();
    cluster.advance(LONG);
    assert_eq!(cluster.prepared_and_in_doubt(second).0, 1);
    let reader = cluster.begin(second, ReadMode::Optimistic);
    let read = cluster.get(reader, ReadMode::Optimistic, &[&b]);
    cluster.advance(LONG);
    assert!(matches!(cluster.answer(read), Some(Answer::Rows { .. })), "{:?}", cluster.answer(read));
}
