//! Commits: the votes of a majority, two-phase commit inside a region, timestamps, and catching up.

use crate::support::messages::{is_accept, is_of, is_vote};
use crate::support::{Cluster, R0, R1, R2};
use rhumb_commit::transaction::{Committed, ReadMode, TxnError};
use rhumb_core::{Body, RegionId, SiteId, Span};
use rhumb_replicated_commit::Note;

#[test]
fn an_uncontended_commit_takes_one_round_trip() {
    let mut cluster = Cluster::new(
        1,
        "An uncontended commit in three regions.
        The client is answered at the second yes; every region has its vote on disk before anybody hears of it, and applies
        the write when the gateway has told it the outcome.",
    );
    cluster.narrate("a client of r0 writes k");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    assert!(cluster.waits(commit), "one vote of three is no majority");
    cluster.settle();
    let Committed { at, trips } = cluster.committed(commit);
    assert_eq!(trips, 1);
    for site in [R0, R1, R2] {
        assert_eq!(cluster.stored(site, "k"), (at, Some("1".into())));
    }
    cluster.check("an_uncontended_commit_takes_one_round_trip");
}

#[test]
fn a_commit_across_two_shards_prepares_in_each_region() {
    let mut cluster = Cluster::new(
        2,
        "A transaction that writes in two shards.
        Each region runs two-phase commit between its own two sites; only Accept and Vote leave a region. Source: Replicated
        Commit, section 3.2.1.",
    );
    cluster.narrate("a client of r0.0 writes a row in each shard");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("a", "1"), ("b", "2")]);
    cluster.settle();
    let Committed { at, trips } = cluster.committed(commit);
    assert_eq!(trips, 1);
    for region in 0..3 {
        let stored = |key| (0..2).map(|shard| cluster.stored(SiteId::new(region, shard), key)).max();
        assert_eq!(stored("a"), Some((at, Some("1".into()))));
        assert_eq!(stored("b"), Some((at, Some("2".into()))));
    }
    cluster.check("a_commit_across_two_shards_prepares_in_each_region");
}

#[test]
fn a_timestamp_too_old_is_retried_above() {
    let mut cluster = Cluster::new(
        1,
        "A write at a timestamp at which its key was read already.
        The clock of r1 is ahead. A snapshot read from there promises its reader that k does not change below that time, so r1
        and r2 refuse the earlier write of r0, and r0 makes a second attempt above the timestamp that they name.",
    );
    cluster.set_ahead(R1, Span::from_millis(200));
    cluster.narrate("a client of r1 reads k at 200 ms ahead; r0 does not hear of it");
    let reader = cluster.begin(R1, ReadMode::Snapshot);
    let read = cluster.get(reader, ReadMode::Snapshot, &["k"]);
    cluster.lose(|envelope| envelope.to == R0);
    cluster.settle();
    assert_eq!(cluster.values(read), [None]);
    cluster.narrate("a client of r0 writes k");
    let writer = cluster.begin(R0, ReadMode::Optimistic);
    let commit = cluster.commit(writer, &[("k", "1")]);
    cluster.settle();
    let Committed { at, trips } = cluster.committed(commit);
    assert_eq!(trips, 2, "one for each attempt");
    assert!(at > reader.began, "the commit lies above the read");
    cluster.check("a_timestamp_too_old_is_retried_above");
}

#[test]
fn a_region_that_missed_a_commit_catches_up() {
    let mut cluster = Cluster::new(
        1,
        "A region that was cut off during a commit.
        It pulls the logs of its peers from where it left off and fetches the rows of the commit that it does not know. That both
        peers send them does no harm: the same version again changes nothing.",
    );
    cluster.narrate("r2 is cut off while a client of r0 writes k");
    cluster.cut(RegionId(2));
    let committed = cluster.put(R0, &[("k", "1")]);
    assert_eq!(cluster.stored(R2, "k").1, None);
    cluster.narrate("the cut heals, and r2 pulls");
    cluster.heal();
    cluster.advance(Span::from_millis(1_000));
    assert_eq!(cluster.stored(R2, "k"), (committed.at, Some("1".into())));
    cluster.check("a_region_that_missed_a_commit_catches_up");
}

#[test]
fn write_skew_is_refused() {
    let mut cluster = Cluster::new(
        1,
        "Write skew: two transactions read both rows, and each writes the other one.
        Their Accepts cross on the way, so that r0 hears the first one first and r1 and r2 hear the second one first. What is
        read stays locked from the vote to the outcome, so no region votes yes on both, and one of them aborts.",
    );
    cluster.put(R0, &[("x", "on"), ("y", "on")]);
    cluster.narrate("both read x and y");
    let first = cluster.begin(R0, ReadMode::Optimistic);
    let second = cluster.begin(R1, ReadMode::Optimistic);
    for txn in [first, second] {
        let read = cluster.get(txn, ReadMode::Optimistic, &["x", "y"]);
        assert_eq!(cluster.values(read), [Some("on".into()), Some("on".into())]);
    }
    cluster.narrate("the first writes x, the second y; the Accepts cross");
    cluster.hold(|envelope| is_accept(envelope) && is_of(envelope, R0));
    let first = cluster.commit(first, &[("x", "off")]);
    let second = cluster.commit(second, &[("y", "off")]);
    cluster.hold(|envelope| is_vote(envelope) || (is_accept(envelope) && is_of(envelope, R0)));
    cluster.settle();
    cluster.let_go();
    cluster.settle();
    assert_eq!(cluster.failed(first), TxnError::Conflict("locked by another transaction".into()));
    assert_eq!(cluster.committed(second).trips, 1);
    assert_eq!(cluster.stored(R0, "x").1, Some("on".into()));
    assert_eq!(cluster.stored(R0, "y").1, Some("off".into()));
    cluster.check("write_skew_is_refused");
}

#[test]
fn rows_that_were_asked_for_in_vain_are_asked_for_again_soon() {
    let mut cluster = Cluster::new(1, "");
    cluster.cut(RegionId(2));
    let written = cluster.put(R0, &[("k", "1")]);
    cluster.heal();
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::Fetch { .. })));
    cluster.advance(Span::from_millis(1_000));
    assert!(cluster.under_way(|envelope| matches!(envelope.body, Body::Note(Note::Fetch { .. }))) > 0);
    cluster.lose(|envelope| matches!(envelope.body, Body::Note(Note::Fetch { .. })));
    cluster.let_go();
    cluster.advance(Span::from_millis(2_000));
    assert_eq!(cluster.stored(R2, "k"), (written.at, Some("1".into())));
}
