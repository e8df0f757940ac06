//! Placements: regions that vote, regions that only hold a copy, regions that hold nothing; and commits that are run from a
//! better place, or in two rounds.

use crate::support::{Cluster, R0, R1, R2};
use rhumb_commit::placement::{Coordinators, Placement};
use rhumb_commit::replicated_commit::Note;
use rhumb_commit::transaction::{CommitOptions, Committed, ReadMode, TxnError};
use rhumb_core::{Body, RegionId, Span, Timestamp};
use std::collections::BTreeMap;

const NORTH: RegionId = RegionId(0);
const EAST: RegionId = RegionId(1);
const WEST: RegionId = RegionId(2);

fn placement<const V: usize, const P: usize>(voters: [RegionId; V], passives: [RegionId; P]) -> Placement {
    Placement { voters: voters.into_iter().collect(), passives: passives.into_iter().collect(), coordinators: BTreeMap::new() }
}

/// The gateway of r2 hands its commits to r0.
fn west_by_north() -> Placement {
    let coordinators = BTreeMap::from([(WEST, Coordinators { read: EAST, commit: NORTH })]);
    Placement { coordinators, ..placement([NORTH, EAST], []) }
}

#[test]
fn a_region_without_a_copy_reads_and_commits_by_the_others() {
    let mut cluster = Cluster::placed(
        placement([NORTH, EAST], []),
        "A gateway in a region that holds nothing.
        It reads optimistically at the nearest region that has a copy, and is answered by the votes of the two active regions.
        Nothing of the row is in r2.",
    );
    let written = cluster.put(R0, &[("k", "1")]);
    cluster.narrate("a client of r2 reads k and writes it");
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    let read = cluster.get(txn, ReadMode::Optimistic, &["k"]);
    cluster.settle();
    assert_eq!(cluster.rows(read), (vec![(written.at, Some("1".into()))], 1), "the read leaves the region");
    let commit = cluster.commit(txn, &[("k", "2")]);
    cluster.settle();
    let Committed { at, trips } = cluster.committed(commit);
    assert_eq!(trips, 2, "one to read, one to commit");
    assert_eq!((cluster.stored(R0, "k"), cluster.stored(R1, "k")), ((at, Some("2".into())), (at, Some("2".into()))));
    assert_eq!(cluster.stored(R2, "k"), (Timestamp::ZERO, None));
    cluster.check("a_region_without_a_copy_reads_and_commits_by_the_others");
}

#[test]
fn a_passive_replica_is_sent_what_was_committed() {
    let mut cluster = Cluster::placed(
        placement([NORTH, EAST], [WEST]),
        "A passive replica.
        The gateway sends it the writes of a commit once that is decided, so that its own clients read them without a trip. A
        copy that gets lost leaves it behind: what is read there then is refused by the votes, and the log brings the rest.",
    );
    cluster.narrate("a client of r0 writes k; r2 reads it at home");
    let first = cluster.put(R0, &[("k", "1")]);
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    let read = cluster.get(txn, ReadMode::Optimistic, &["k"]);
    cluster.settle();
    assert_eq!(cluster.rows(read), (vec![(first.at, Some("1".into()))], 0));
    let commit = cluster.commit(txn, &[("a", "1")]);
    cluster.settle();
    assert_eq!(cluster.committed(commit).trips, 1);

    cluster.narrate("another write, of which the copy is lost; r2 reads what it has");
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::Copy { .. })));
    let second = cluster.put(R0, &[("k", "2")]);
    cluster.lose(|envelope| matches!(envelope.body, Body::Note(Note::Copy { .. })));
    cluster.let_go();
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    let read = cluster.get(txn, ReadMode::Optimistic, &["k"]);
    cluster.settle();
    assert_eq!(cluster.values(read), [Some("1".into())]);
    let commit = cluster.commit(txn, &[("b", "1")]);
    cluster.settle();
    assert!(matches!(cluster.failed(commit), TxnError::Conflict(_)));

    cluster.narrate("an active replica is never behind");
    let txn = cluster.begin(R2, ReadMode::Active);
    let read = cluster.get(txn, ReadMode::Active, &["k"]);
    cluster.settle();
    assert_eq!(cluster.rows(read), (vec![(second.at, Some("2".into()))], 1));
    cluster.check("a_passive_replica_is_sent_what_was_committed");
}

#[test]
fn a_passive_replica_that_missed_a_copy_pulls_it() {
    let mut cluster = Cluster::placed(placement([NORTH, EAST], [WEST]), "");
    cluster.cut(WEST);
    let written = cluster.put(R0, &[("k", "1")]);
    cluster.heal();
    assert_eq!(cluster.stored(R2, "k").1, None);
    cluster.advance(Span::from_secs(2));
    assert_eq!(cluster.stored(R2, "k"), (written.at, Some("1".into())));
}

#[test]
fn a_commit_is_handed_to_the_region_that_the_placement_names() {
    let mut cluster = Cluster::placed(
        west_by_north(),
        "Handoff.
        The gateway of r2 has r0 run its commit, which r0 does as for a client of its own, and hands the result back.",
    );
    cluster.narrate("a client of r2 writes k");
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    let Committed { at, trips } = cluster.committed(commit);
    assert_eq!(trips, 2, "one to r0 and back, one from there to a majority");
    assert_eq!(cluster.stored(R1, "k"), (at, Some("1".into())));
    cluster.check("a_commit_is_handed_to_the_region_that_the_placement_names");
}

#[test]
fn who_does_not_want_to_hand_over_commits_from_where_it_is() {
    let mut cluster = Cluster::placed(west_by_north(), "");
    cluster.options = CommitOptions { handoff: false, ..CommitOptions::default() };
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    assert_eq!(cluster.committed(commit).trips, 1);
}

#[test]
fn a_handoff_that_arrives_twice_is_run_once() {
    let mut cluster = Cluster::placed(
        west_by_north(),
        "A Handoff held back by the network.
        The gateway of r2 says it again; both arrive. The commit is run once: the write of another client in between stays.",
    );
    cluster.narrate("a client of r2 writes k, and hears nothing");
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::Handoff { .. })));
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.advance(Span::from_millis(1_500));
    assert!(cluster.waits(commit));
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::HandedBack { .. })));
    cluster.narrate("both copies arrive at last");
    cluster.settle();
    let between = cluster.put(R1, &[("k", "2")]);
    cluster.let_go();
    cluster.settle();
    assert!(cluster.committed(commit).at < between.at);
    assert_eq!(cluster.stored(R0, "k"), (between.at, Some("2".into())));
    cluster.check("a_handoff_that_arrives_twice_is_run_once");
}

#[test]
fn a_handoff_meant_for_an_earlier_life_is_not_run() {
    let mut cluster = Cluster::placed(
        west_by_north(),
        "A Handoff that arrives after a crash.
        The new life of r0 cannot know whether the one before has taken it already, and says so.",
    );
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::Handoff { .. })));
    cluster.narrate("a client of r2 writes k; r0 dies before it hears of it, and restarts");
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.put(R0, &[("x", "1")]);
    cluster.kill(R0);
    cluster.start(R0);
    cluster.let_go();
    cluster.settle();
    assert!(matches!(cluster.failed(commit), TxnError::Unknown(_)));
    assert_eq!(cluster.stored(R1, "k").1, None);
    cluster.check("a_handoff_meant_for_an_earlier_life_is_not_run");
}

#[test]
fn with_two_rounds_a_client_is_told_once_a_majority_has_applied() {
    let mut cluster = Cluster::placed(
        placement([NORTH, EAST, WEST], []),
        "A commit of two rounds.
        It is decided by the votes as ever; its client is told when a majority has applied it.",
    );
    cluster.options = CommitOptions { two_rounds: true, ..CommitOptions::default() };
    cluster.narrate("a client of r0 writes k; what was decided does not get out");
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::Decided { .. })));
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    assert!(cluster.waits(commit), "r0 alone has applied it");
    cluster.narrate("now it does");
    cluster.let_go();
    cluster.settle();
    assert_eq!(cluster.committed(commit).trips, 2);
    cluster.check("with_two_rounds_a_client_is_told_once_a_majority_has_applied");
}

#[test]
fn a_commit_of_two_rounds_whose_confirmations_are_lost_is_told_all_the_same() {
    let mut cluster = Cluster::placed(placement([NORTH, EAST, WEST], []), "");
    cluster.options = CommitOptions { two_rounds: true, ..CommitOptions::default() };
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.hold(|envelope| envelope.to != R0);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.hold(|envelope| matches!(envelope.body, Body::Promise(rhumb_commit::replicated_commit::Promise::Confirmed { .. })));
    cluster.advance(Span::from_millis(500));
    cluster.lose(|envelope| matches!(envelope.body, Body::Promise(rhumb_commit::replicated_commit::Promise::Confirmed { .. })));
    assert!(cluster.waits(commit));
    cluster.let_go();
    cluster.advance(Span::from_millis(1_500));
    assert_eq!(cluster.committed(commit).trips, 2, "the regions are asked again");
}
