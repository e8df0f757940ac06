//! Placements: regions that vote, regions that only hold a copy, regions that hold nothing; and commits that are run from a
//! better place, or in two rounds.

use crate::resolutions::LONG;
use crate::support::placements::{EAST, NORTH, WEST, change};
use crate::support::{Cluster, Envelope, R0, R1, R2};
use rhumb_commit::placement::{Change, Placement};
use rhumb_commit::transaction::{CommitOptions, Committed, ReadMode, TxnError};
use rhumb_core::{Body, RegionId, SiteId, Span, Timestamp};
use rhumb_replicated_commit::records::LOG;
use rhumb_replicated_commit::{Note, Promise};

fn placement<const V: usize, const P: usize>(voters: [RegionId; V], passives: [RegionId; P]) -> Placement {
    Placement::first(change(voters, passives)).expect("a placement that can be")
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
    cluster.hold(|envelope| matches!(envelope.body, Body::Promise(rhumb_replicated_commit::Promise::Confirmed { .. })));
    cluster.advance(Span::from_millis(500));
    cluster.lose(|envelope| matches!(envelope.body, Body::Promise(rhumb_replicated_commit::Promise::Confirmed { .. })));
    assert!(cluster.waits(commit));
    cluster.let_go();
    cluster.advance(Span::from_millis(1_500));
    assert_eq!(cluster.committed(commit).trips, 2, "the regions are asked again");
}

#[test]
fn a_region_gets_a_copy_and_then_a_vote_while_clients_run() {
    let first = placement([NORTH, EAST], []);
    let mut cluster = Cluster::placed(
        first.clone(),
        "Moving.
        r2 is made passive: it asks where the logs begin, copies the rows, and takes over what comes meanwhile. Then it is made
        active in place of r0: r1 and r2 wait until a majority of the active ones before has stopped, and have their logs.",
    );
    cluster.put(R0, &[("k", "1")]);
    cluster.narrate("r2 is made passive");
    let (second, commit) = cluster.change(R0, &first, change([NORTH, EAST], [WEST]));
    cluster.settle();
    cluster.committed(commit);
    cluster.advance(Span::from_millis(1_500));
    assert_eq!(cluster.placement_at(R2), (second.clone(), true));
    assert_eq!(cluster.stored(R2, "k").1, Some("1".into()));
    cluster.advance(Span::from_millis(2_000));
    cluster.narrate("r2 is made active, and r0 nothing");
    let (third, commit) = cluster.change(R1, &second, change([EAST, WEST], []));
    cluster.settle();
    cluster.committed(commit);
    for site in [R0, R1, R2] {
        assert_eq!(cluster.placement_at(site), (third.clone(), true), "{site} has moved without waiting for a timer");
    }
    cluster.narrate("a client of r0 writes");
    let Committed { at, .. } = cluster.put(R0, &[("k", "2")]);
    assert_eq!((cluster.stored(R1, "k").0, cluster.stored(R2, "k").0), (at, at));
    assert_ne!(cluster.stored(R0, "k").0, at);
    cluster.check("a_region_gets_a_copy_and_then_a_vote_while_clients_run");
}

#[test]
fn a_region_that_is_still_copying_is_not_made_active() {
    let first = placement([NORTH, EAST], []);
    let mut cluster = Cluster::placed(first.clone(), "");
    cluster.put(R0, &[("k", "1")]);
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::CopyRows { .. })));
    let (second, commit) = cluster.change(R0, &first, change([NORTH, EAST], [WEST]));
    cluster.advance(Span::from_millis(3_000));
    cluster.committed(commit);
    let (_, commit) = cluster.change(R0, &second, change([NORTH, WEST], [EAST]));
    cluster.settle();
    let refused = cluster.failed(commit).to_string();
    assert!(refused.contains("west has not copied all rows yet"), "{refused}");
}

#[test]
fn a_region_in_doubt_has_not_stopped() {
    let first = placement([NORTH, EAST, WEST], []);
    let mut cluster = Cluster::placed(
        first.clone(),
        "A move while attempts are in doubt.
        r2 dies when r0 and r1 are prepared for its write: nobody of the three can say that it has stopped before it knows what
        became of it, so nobody settles, and a new write waits. In doubt they ask each other, and go on.",
    );
    cluster.narrate("a client of r2 writes k; r2 does not hear the votes, and dies");
    cluster.hold(|envelope| envelope.to == R2);
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    cluster.kill(R2);
    cluster.let_go();
    cluster.settle();
    cluster.narrate("r0 and r1 are to go on without it");
    let (_, commit) = cluster.change(R0, &first, change([NORTH, EAST], [WEST]));
    cluster.settle();
    cluster.committed(commit);
    assert!(!cluster.placement_at(R0).1 && !cluster.placement_at(R1).1, "k is in doubt");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let write = cluster.commit(txn, &[("x", "1")]);
    cluster.settle();
    assert!(cluster.waits(write));
    cluster.advance(Span::from_secs(4));
    cluster.committed(write);
    assert_eq!((cluster.stored(R0, "k").1, cluster.stored(R1, "k").1), (Some("1".into()), Some("1".into())));
    cluster.check("a_region_in_doubt_has_not_stopped");
}

#[test]
fn a_read_of_active_regions_asks_none_again_that_has_no_copy() {
    let first = placement([NORTH], [EAST]);
    let mut cluster = Cluster::placed(first.clone(), "");
    cluster.put(R0, &[("k", "1")]);
    cluster.advance(Span::from_secs(2));
    // r2 does not hear that r0 votes no more.
    cluster.cut(WEST);
    let (_, commit) = cluster.change(R0, &first, change([EAST], []));
    cluster.settle();
    cluster.committed(commit);
    cluster.advance(Span::from_secs(2));
    cluster.heal();
    let txn = cluster.begin(R2, ReadMode::Active);
    let read = cluster.get(txn, ReadMode::Active, &["k"]);
    cluster.settle();
    assert!(cluster.waits(read), "it knows of no other active region yet");
    cluster.advance(Span::from_secs(2));
    assert_eq!(cluster.values(read), [Some("1".into())]);
}

#[test]
fn of_two_changes_at_once_one_is_refused() {
    let first = placement([NORTH, EAST, WEST], []);
    let mut cluster = Cluster::placed(first.clone(), "");
    let (one, a) = cluster.change(R0, &first, change([NORTH, EAST], [WEST]));
    let (_, b) = cluster.change(R1, &first, change([EAST, WEST], [NORTH]));
    cluster.advance(Span::from_secs(3));
    cluster.committed(a);
    assert!(matches!(cluster.failed(b), TxnError::Conflict(_)));
    for site in [R0, R1, R2] {
        assert_eq!(cluster.placement_at(site), (one.clone(), true));
    }
}

#[test]
fn a_restart_forgets_neither_the_placement_nor_a_copy() {
    let first = placement([NORTH, EAST], []);
    let mut cluster = Cluster::placed(first.clone(), "");
    cluster.put(R0, &[("k", "1")]);
    let (second, commit) = cluster.change(R0, &first, change([NORTH, EAST], [WEST]));
    cluster.advance(Span::from_secs(3));
    cluster.committed(commit);
    for site in [R0, R1, R2] {
        cluster.kill(site);
        cluster.start(site);
    }
    cluster.advance(Span::from_secs(1));
    for site in [R0, R1, R2] {
        assert_eq!(cluster.placement_at(site), (second.clone(), true));
    }
}

#[test]
fn a_copy_cut_short_by_a_crash_begins_anew() {
    let first = placement([NORTH, EAST], [WEST]);
    let mut cluster = Cluster::placed(first.clone(), "");
    cluster.put(R0, &[("k", "1")]);
    cluster.advance(Span::from_secs(2));
    cluster.cut(WEST);
    let (second, commit) = cluster.change(R0, &first, change([NORTH, EAST], []));
    cluster.advance(Span::from_secs(2));
    cluster.committed(commit);
    let written = cluster.put(R0, &[("k", "2")]);
    // Nobody wants the logs, so they go.
    cluster.advance(Span::from_secs(60));
    let (third, commit) = cluster.change(R0, &second, change([NORTH, EAST], [WEST]));
    cluster.advance(Span::from_secs(2));
    cluster.committed(commit);

    // West never heard that it was to hold nothing. It finds the logs too short, and no rows come.
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::CopyRows { .. })));
    cluster.heal();
    cluster.advance(Span::from_secs(4));
    assert_eq!(cluster.placement_at(R2), (third.clone(), false));
    assert!(cluster.under_way(|envelope| matches!(envelope.body, Body::Note(Note::CopyRows { .. }))) > 0);
    cluster.kill(R2);
    cluster.start(R2);
    cluster.advance(Span::from_secs(4));
    assert_eq!(cluster.placement_at(R2), (third.clone(), false), "its copy is still not whole");
    cluster.let_go();
    cluster.advance(Span::from_secs(4));
    assert_eq!(cluster.placement_at(R2), (third, true));
    assert_eq!(cluster.stored(R2, "k"), (written.at, Some("2".into())));
}

#[test]
fn a_read_that_waited_while_its_region_stopped_is_not_answered() {
    let first = placement([NORTH, EAST, WEST], []);
    let mut cluster = Cluster::placed(first.clone(), "");
    cluster.put(R0, &[("k", "1")]);
    cluster.advance(Span::from_secs(2));
    // The timestamp is above what r1 has promised on disk, so the read waits for its disk.
    cluster.stall_disk(R1);
    cluster.set_ahead(R0, Span::from_secs(30));
    cluster.advance(Span::from_secs(1));
    let read_at_r2 = |envelope: &Envelope| matches!(envelope.body, Body::Note(Note::Read(_))) && envelope.to == R2;
    cluster.hold(read_at_r2);
    let txn = cluster.begin(R0, ReadMode::Snapshot);
    let read = cluster.get(txn, ReadMode::Snapshot, &["k"]);
    cluster.settle();
    assert!(cluster.waits(read));
    cluster.lose(read_at_r2);
    cluster.let_go();
    // Meanwhile r1 is to stop, and its word that it has is written behind.
    let (_, commit) = cluster.change(R0, &first, change([NORTH, WEST], [EAST]));
    cluster.settle();
    cluster.committed(commit);
    let rows_of_r1 = |envelope: &Envelope| envelope.from == R1 && matches!(envelope.body, Body::Note(Note::Rows(_)));
    cluster.hold(|envelope| envelope.to == R0);
    cluster.free_disk(R1);
    assert_eq!(cluster.under_way(rows_of_r1), 0, "above what r1 said was read there");
    cluster.let_go();
    cluster.advance(Span::from_secs(3));
    assert_eq!(cluster.values(read), [Some("1".into())], "it was asked again in the new epoch");
}

/// r0 begins to read rows for r4, which copies them, while it lacks a commit of r1 and r2. It takes that over when it settles in the next epoch,
/// in which those have no vote any more, and answers after that: r4 has to ask them all the same.
#[test]
fn a_copied_page_counts_for_the_epoch_in_which_it_began_to_be_read() {
    let [south, middle] = [RegionId(3), RegionId(4)];
    let (r3, r4) = (SiteId::new(3, 0), SiteId::new(4, 0));
    let first = placement([NORTH, EAST, WEST], [south]);
    let mut cluster = Cluster::of_regions(5, first.clone());
    cluster.put(R0, &[("k", "1")]);
    let copies = |envelope: &Envelope| matches!(envelope.body, Body::Note(Note::CopyRows { .. }));
    cluster.hold(copies);
    let (second, id) = cluster.change(R0, &first, change([NORTH, EAST, WEST], [south, middle]));
    cluster.advance(Span::from_secs(1));
    cluster.committed(id);
    assert_eq!(cluster.under_way(move |envelope| copies(envelope) && envelope.to == R0), 1, "r4 copies from r0");
    let tells_rows = |envelope: &Envelope| {
        let of_log = matches!(envelope.body, Body::Promise(Promise::Log(_) | Promise::Entries { .. }));
        of_log || matches!(envelope.body, Body::Note(Note::Copy { .. }))
    };
    let keeps_from_r4 = move |envelope: &Envelope| envelope.to == r4 && envelope.from != R0 && tells_rows(envelope);
    cluster.hold(move |envelope| envelope.to == R0 || keeps_from_r4(envelope));
    let written = cluster.put(R1, &[("k", "2")]);
    assert_eq!(cluster.stored(R0, "k").1, Some("1".into()));
    cluster.lose(move |envelope| envelope.to == R0 && envelope.from != r4);
    cluster.hold_loads(R0);
    cluster.hold(move |envelope| !copies(envelope));
    cluster.settle();
    cluster.hold(move |envelope| copies(envelope) || keeps_from_r4(envelope));
    let (third, id) = cluster.change(R1, &second, change([NORTH, south], [EAST, WEST, middle]));
    cluster.advance(Span::from_secs(2));
    cluster.committed(id);
    for site in [R0, r3] {
        assert_eq!((cluster.placement_at(site), cluster.stored(site, "k").0), ((third.clone(), true), written.at), "{site}");
    }
    cluster.answer_loads(R0);
    cluster.advance(Span::from_secs(2));
    cluster.lose(move |envelope| copies(envelope) || keeps_from_r4(envelope));
    cluster.let_go();
    cluster.advance(Span::from_secs(20));
    assert_eq!((cluster.placement_at(r4), cluster.stored(r4, "k").0), ((third, true), written.at));
}

/// r2 copies all rows, and is removed before the first page has come. When it is to have a copy again, that page is taken for the answer to what it
/// asks now. What was committed in between is in no log any more.
///
/// 1. k = 1. r2 becomes passive; r0 sends a page of rows with k = 1, which is held up.
/// 2. r2 is removed. k = 2; r0 and r1 drop that from their logs, as nobody else wants it.
/// 3. r2 becomes passive again, enters the logs where they begin now, and asks r0 for rows from the first key on.
/// 4. The page of step 1 arrives, from the source and for the key that are expected. r2 holds all rows, as it believes, and settles.
fn copied_again(cluster: &mut Cluster) -> Option<String> {
    let page_epoch = |envelope: &Envelope| match &envelope.body {
        Body::Promise(Promise::CopiedRows(page)) => Some(page.epoch),
        _ => None,
    };
    cluster.put(R0, &[("k", "1")]);
    cluster.hold(move |envelope| page_epoch(envelope).is_some());
    let mut placement = placement([NORTH, EAST], []);
    for passives in [vec![WEST], vec![], vec![WEST]] {
        let next = Change { passives: passives.iter().copied().collect(), ..change([NORTH, EAST], []) };
        let (next, id) = cluster.change(R0, &placement, next);
        cluster.settle();
        cluster.committed(id);
        placement = next;
        cluster.advance(Span::from_millis(700));
        if passives.is_empty() {
            cluster.put(R0, &[("k", "2")]);
            cluster.advance(Span::from_secs(10));
            assert_eq!([R0, R1].map(|site| cluster.records(site, LOG)), [0, 0], "nobody else wants it");
        }
    }
    let present = placement.epoch;
    cluster.hold(move |envelope| page_epoch(envelope) == Some(present));
    cluster.settle();
    cluster.let_go();
    cluster.advance(LONG);
    assert!(cluster.placement_at(R2).1, "it is settled");
    cluster.stored(R2, "k").1
}

#[test]
fn a_page_of_an_earlier_copy_is_not_taken() {
    let mut cluster = Cluster::placed(placement([NORTH, EAST], []), "");
    assert_eq!(copied_again(&mut cluster), Some("2".into()), "it holds all rows");
}

mod planted {
    use super::*;
    use rhumb_core::Rules;
    use rhumb_replicated_commit::Site;
    use rhumb_replicated_commit::planted::Planted;

    #[test]
    fn a_page_of_an_earlier_copy_that_is_taken_is_caught() {
        let make = |site: Site| site.with_rules(Rules::breaking(Planted::EarlierCopyTaken));
        let mut cluster = Cluster::placed_with_sites(placement([NORTH, EAST], []), "", make);
        assert_eq!(copied_again(&mut cluster), Some("1".into()), "an acknowledged write is not in its copy");
    }
}
