//! Doubts that outlive their epoch: a region is lost, for a while or for good, in the midst of an attempt, and the others go on.

use crate::collected::COLLECTED;
use crate::resolutions::keys_of_two_shards;
use crate::support::messages::{asks_for_votes, is_accept, is_of, is_of_log, is_vote, stops, tells_outcome};
use crate::support::placements::{EAST, NORTH, SOUTH, WEST, change};
use crate::support::{Cluster, Envelope, R0, R1, R2, R3};
use crate::survivors::{crash_in_the_midst, declare_lost, lose_region};
use rhumb_commit::placement::{Change, Placement};
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_commit::votes::Decision;
use rhumb_core::actor::RequestId;
use rhumb_core::{Body, SiteId, Span, Timestamp};
use rhumb_replicated_commit::message::Voted;
use rhumb_replicated_commit::records::VOTES;
use rhumb_replicated_commit::{Admin, Note, Promise, Request};

/// The gateway of r2 dies in the midst of an attempt to write k: r0 is prepared, r1 has never heard of it and says so. If `voted`, r2 is
/// prepared as well, and its client may have been told that it committed.
fn lost_in_the_midst(goal: &str, voted: bool) -> Cluster {
    let mut cluster = Cluster::new(1, goal);
    lose_in_the_midst(&mut cluster, voted);
    cluster
}

fn lose_in_the_midst(cluster: &mut Cluster, voted: bool) {
    cluster.narrate("r2 proposes to write k; r0 hears of it, r1 does not; r2 dies");
    if !voted {
        cluster.stall_disk(R2);
    }
    cluster.hold(|envelope| envelope.from == R2 && envelope.to == R1 || envelope.from == R0 && is_vote(envelope));
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    cluster.kill(R2);
    cluster.lose(|envelope| envelope.from == R2 || envelope.to == R2);
    cluster.let_go();
    cluster.narrate("r0 asks the others: r1 has never heard of it");
    cluster.advance(Span::from_secs(6));
    assert_eq!(cluster.prepared_and_in_doubt(R0), (1, 1));
}

/// Moves off r2.
fn move_off(cluster: &mut Cluster, placement: &Placement) -> Placement {
    cluster.narrate("the placement moves off r2");
    let (next, id) = cluster.change(R0, placement, change([NORTH, EAST], []));
    cluster.settle();
    cluster.committed(id);
    cluster.advance(Span::from_secs(5));
    next
}

fn try_to_write(cluster: &mut Cluster, key: &str) -> RequestId {
    let txn = cluster.begin(R1, ReadMode::Optimistic);
    let id = cluster.commit(txn, &[(key, "2")]);
    cluster.settle();
    id
}

#[test]
fn a_region_lost_in_the_midst_of_an_attempt_does_not_stop_the_others() {
    let mut cluster = lost_in_the_midst(
        "Moving off a region that was lost in the midst of an attempt.
        r0 is in doubt about it, and r1 has refused: what r2 voted would decide. Both stop and go on all the same: r1 keeps the
        locks of the attempt as well, over restarts, and nothing else waits for it.",
        true,
    );
    let placement = move_off(&mut cluster, &Placement::everywhere(3));
    for site in [R0, R1] {
        assert_eq!(cluster.placement_at(site), (placement.clone(), true), "{site} is settled");
    }
    cluster.narrate("other rows are written, k is not");
    cluster.put(R1, &[("other", "1")]);
    let refused = try_to_write(&mut cluster, "k");
    assert!(matches!(cluster.failed(refused), TxnError::Conflict(_)));
    cluster.check("a_region_lost_in_the_midst_of_an_attempt_does_not_stop_the_others");
}

#[test]
fn locks_that_are_kept_for_others_outlive_a_crash() {
    let mut cluster = lost_in_the_midst("", true);
    move_off(&mut cluster, &Placement::everywhere(3));
    cluster.kill(R1);
    cluster.start(R1);
    cluster.advance(Span::from_secs(2));
    assert_eq!(cluster.prepared_and_in_doubt(R1).0, 1);
    let refused = try_to_write(&mut cluster, "k");
    assert!(matches!(cluster.failed(refused), TxnError::Conflict(_)));
}

#[test]
fn a_region_declared_lost_takes_no_acknowledged_write_along() {
    let mut cluster = lost_in_the_midst(
        "A region declared lost.
        Its client may have been told that its attempt committed: it counts as committed, in all regions alike.",
        true,
    );
    let placement = move_off(&mut cluster, &Placement::everywhere(3));
    cluster.narrate("an operator declares r2 lost");
    let (_, id) = cluster.change(R1, &placement, Change { lost: WEST.into(), ..change([NORTH, EAST], []) });
    cluster.settle();
    cluster.committed(id);
    cluster.advance(Span::from_secs(5));
    for site in [R0, R1] {
        assert_eq!(cluster.stored(site, "k").1, Some("1".into()), "{site} has it");
        assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0));
    }
    let written = try_to_write(&mut cluster, "k");
    cluster.committed(written);
    cluster.check("a_region_declared_lost_takes_no_acknowledged_write_along");
}

#[test]
fn a_declaration_whose_gateway_dies_in_its_midst_does_not_keep_the_next_one_away() {
    let mut cluster = Cluster::new(1, "");
    cluster.kill(R2);
    let lost = Change { lost: WEST.into(), ..change([NORTH, EAST], []) };
    cluster.hold(|envelope| envelope.from == R1 && envelope.to == R0 && is_accept(envelope));
    cluster.change(R1, &Placement::everywhere(3), lost.clone());
    cluster.settle();
    cluster.kill(R1);
    cluster.lose(is_accept);
    cluster.let_go();
    cluster.start(R1);
    cluster.advance(Span::from_secs(12));
    assert_eq!(cluster.prepared_and_in_doubt(R1), (0, 0), "r2 would not have voted for it, and r0 never heard of it");
    let (_, id) = cluster.change(R0, &Placement::everywhere(3), lost);
    cluster.settle();
    cluster.committed(id);
}

/// r0's client is refused: r1 and r2 have locked the row for others. Then r2 is lost, and r0 crashes, so that nobody is left who heard its
/// refusal. If r0 has told its client, that holds.
#[test]
fn a_refusal_that_a_client_was_told_outlives_the_region_that_refused() {
    for slow in [false, true] {
        let mut cluster = Cluster::new(1, "");
        cluster.hold(|envelope| is_of(envelope, R1) && (envelope.to == R0 || is_vote(envelope)));
        let other = cluster.begin(R1, ReadMode::Optimistic);
        cluster.commit(other, &[("k", "1")]);
        cluster.settle();
        cluster.advance(Span::from_millis(100));
        let txn = cluster.begin(R0, ReadMode::Optimistic);
        let refused = cluster.commit(txn, &[("k", "2")]);
        cluster.hold(|envelope| is_of(envelope, R1) || is_vote(envelope));
        cluster.settle();
        if slow {
            cluster.stall_disk(R0);
        }
        cluster.hold(|envelope| is_of(envelope, R1) || envelope.from == R0 && envelope.to != R0);
        cluster.settle();
        assert_eq!(cluster.waits(refused), slow, "it is told once its outcome is on the disk of r0");
        cluster.kill(R0);
        cluster.kill(R2);
        cluster.lose(|_| true);
        cluster.let_go();
        cluster.start(R0);
        cluster.advance(Span::from_secs(6));
        let lost = Change { lost: WEST.into(), ..change([NORTH, EAST], []) };
        let (_, id) = cluster.change(R0, &Placement::everywhere(3), lost);
        cluster.settle();
        cluster.committed(id);
        cluster.advance(Span::from_secs(8));
        for site in [R0, R1] {
            assert_eq!(cluster.stored(site, "k").1 == Some("2".into()), slow, "{site}: what nobody was told of may have committed");
            assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0));
        }
    }
}

/// A change of the placement is in doubt, and only the lost region could decide it. It keeps the row that the declaration has to read
/// and write: the operator's word has it settled first.
#[test]
fn a_change_in_doubt_does_not_keep_a_region_from_being_declared_lost() {
    let mut cluster = Cluster::new(1, "");
    cluster.hold(|envelope| envelope.from == R0);
    let (next, _) = cluster.change(R0, &Placement::everywhere(3), change([NORTH, EAST], [WEST]));
    cluster.settle();
    cluster.kill(R2);
    cluster.kill(R0);
    cluster.lose(|_| true);
    cluster.let_go();
    cluster.start(R0);
    cluster.advance(Span::from_secs(8));
    assert_eq!(cluster.prepared_and_in_doubt(R0), (1, 1));
    let settled = cluster.request(R1, Request::Admin(Admin::Settle { lost: WEST.into() }));
    cluster.advance(Span::from_secs(8));
    assert!(!cluster.waits(settled));
    let lost = Change { lost: WEST.into(), ..change([NORTH, EAST], []) };
    let (_, id) = cluster.change(R1, &next, lost);
    cluster.settle();
    cluster.committed(id);
    assert_eq!(cluster.prepared_and_in_doubt(R0), (0, 0));
}

#[test]
fn a_region_that_was_declared_lost_is_not_believed_when_it_comes_back() {
    let mut cluster = lost_in_the_midst("", false);
    let lost = Change { lost: WEST.into(), ..change([NORTH, EAST], []) };
    let (_, id) = cluster.change(R0, &Placement::everywhere(3), lost);
    cluster.settle();
    cluster.committed(id);
    // r2 had not voted: it comes back as the new epoch begins, and would say no.
    cluster.start(R2);
    cluster.advance(Span::from_secs(8));
    for site in [R0, R1] {
        assert_eq!(cluster.stored(site, "k").1, Some("1".into()), "{site} has it");
        assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0));
    }
}

/// r2 is declared lost and added again while it is down: what it was in doubt about the others have decided without it.
#[test]
fn a_region_that_was_declared_lost_and_is_wanted_again_is_in_doubt_about_nothing() {
    let mut cluster = lost_in_the_midst("", true);
    let lost = Change { lost: WEST.into(), ..change([NORTH, EAST], []) };
    let (next, id) = cluster.change(R0, &Placement::everywhere(3), lost);
    cluster.advance(Span::from_secs(5));
    cluster.committed(id);
    let (_, id) = cluster.change(R0, &next, change([NORTH, EAST], [WEST]));
    cluster.advance(Span::from_secs(5));
    cluster.committed(id);
    cluster.put(R0, &[("k", "2")]);
    cluster.start(R2);
    cluster.advance(Span::from_secs(12));
    assert!(cluster.placement_at(R2).1, "its copy is whole");
    assert_eq!((cluster.stored(R2, "k").1, cluster.prepared_and_in_doubt(R2)), (Some("2".into()), (0, 0)));
}

#[test]
fn a_region_that_comes_back_decides_what_was_in_doubt() {
    for (voted, expected) in [(true, Some("1".to_string())), (false, None)] {
        let mut cluster = lost_in_the_midst("", voted);
        move_off(&mut cluster, &Placement::everywhere(3));
        cluster.start(R2);
        cluster.advance(Span::from_secs(12));
        for site in [R0, R1] {
            assert_eq!((cluster.stored(site, "k").1, cluster.prepared_and_in_doubt(site)), (expected.clone(), (0, 0)), "{site}");
        }
        let written = try_to_write(&mut cluster, "k");
        cluster.committed(written);
    }
}

#[test]
fn what_was_decided_and_forgotten_meanwhile_is_found_in_the_log() {
    let mut cluster = lost_in_the_midst("", true);
    move_off(&mut cluster, &Placement::everywhere(3));
    cluster.kill(R1);
    cluster.start(R2);
    cluster.advance(Span::from_secs(90));
    assert_eq!((cluster.stored(R0, "k").1, cluster.prepared_and_in_doubt(R0)), (Some("1".into()), (0, 0)));
    cluster.start(R1);
    cluster.advance(Span::from_secs(12));
    assert_eq!((cluster.stored(R1, "k").1, cluster.prepared_and_in_doubt(R1)), (Some("1".into()), (0, 0)));
}

#[test]
fn a_region_that_joins_is_in_doubt_about_the_same() {
    let mut cluster = lost_in_the_midst("", true);
    let placement = move_off(&mut cluster, &Placement::everywhere(3));
    // r2 is there again, with what it had: but nobody asks it any more what it voted.
    cluster.hold(|envelope| {
        matches!(&envelope.body, Body::Promise(Promise::Vote(Voted { meta, .. })) if meta.attempt.txn.gateway == R2)
            || matches!(&envelope.body, Body::Note(Note::Decided { meta, .. }) if meta.attempt.txn.gateway == R2)
    });
    cluster.start(R2);
    let (_, id) = cluster.change(R0, &placement, change([NORTH, EAST], [WEST]));
    cluster.settle();
    cluster.committed(id);
    cluster.advance(Span::from_secs(10));
    assert!(cluster.placement_at(R2).1, "its copy is whole");
    assert_eq!(cluster.prepared_and_in_doubt(R2).0, 1);
    cluster.let_go();
    cluster.advance(Span::from_secs(10));
    for site in [R0, R1, R2] {
        assert_eq!((cluster.stored(site, "k").1, cluster.prepared_and_in_doubt(site)), (Some("1".into()), (0, 0)), "{site}");
    }
}

/// An abort of an attempt of r0.
fn aborts(envelope: &Envelope) -> bool {
    matches!(&envelope.body, Body::Note(Note::Decided { meta, decision: Decision::Aborted }) if meta.attempt.txn.gateway == R0)
}

#[test]
fn a_region_removed_while_in_doubt_and_added_again_aborts_nothing_that_committed() {
    let mut cluster = Cluster::new(1, "");
    cluster.hold(|envelope| envelope.to == R1 && is_accept(envelope) || envelope.to == R2 && envelope.from == R0 && !is_accept(envelope));
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let id = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    let at = cluster.committed(id).at;
    cluster.lose(|envelope| envelope.to == R1 || envelope.to == R2);
    cluster.let_go();
    cluster.cut(WEST);
    let placement = move_off(&mut cluster, &Placement::everywhere(3));
    // All that the others knew of the attempt is forgotten, and gone from their logs.
    cluster.advance(Span::from_secs(100));
    cluster.heal();
    let (_, id) = cluster.change(R0, &placement, change([NORTH, EAST], [WEST]));
    cluster.settle();
    cluster.committed(id);
    cluster.hold(aborts);
    cluster.advance(Span::from_secs(20));
    assert_eq!(cluster.under_way(aborts), 0, "nobody says that it aborted");
    assert!(cluster.placement_at(R2).1);
    assert_eq!((cluster.stored(R2, "k"), cluster.prepared_and_in_doubt(R2)), ((at, Some("1".into())), (0, 0)));
    assert_ne!(at, Timestamp::ZERO);
}

/// Both sites of r2 are prepared for an attempt of two shards that committed, and do not hear of it; the one that coordinates is down until the
/// second half was overwritten elsewhere and no version of it is left. Nobody remembers the attempt then, the second sites of r0 and r1 carry it for
/// r2, and the first one of r2 is in doubt.
#[test]
fn a_commit_that_was_overwritten_and_collected_elsewhere_reaches_a_region_that_was_in_doubt() {
    let (a, b) = keys_of_two_shards();
    let second = |region: u16| SiteId::new(region, 1);
    let mut cluster = Cluster::new(2, "");
    let ends = |envelope: &Envelope| envelope.to.region == WEST && envelope.from.region != WEST && tells_outcome(envelope);
    cluster.hold(ends);
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let id = cluster.commit(txn, &[(&a, "1"), (&b, "1")]);
    cluster.settle();
    cluster.committed(id);
    cluster.kill(R2);
    cluster.put(R0, &[(&b, "2")]);
    cluster.advance(COLLECTED);
    assert_eq!([R0, R1].map(|site| cluster.records(site, VOTES)), [0, 0], "they have forgotten it");
    cluster.hold(move |envelope| {
        let between_seconds = envelope.from.shard == 1 && [second(0), second(1)].contains(&envelope.to);
        ends(envelope) || stops(envelope) && between_seconds && envelope.from.region != WEST
    });
    let (_, id) = cluster.change(R0, &Placement::everywhere(3), change([NORTH, EAST], [WEST]));
    cluster.settle();
    cluster.committed(id);
    cluster.advance(Span::from_secs(5));
    assert_eq!([second(0), second(1), second(2)].map(|site| cluster.prepared_and_in_doubt(site).0), [1, 1, 1]);
    cluster.lose(ends);
    cluster.hold(|envelope| is_of_log(envelope) && envelope.to == R2);
    cluster.start(R2);
    cluster.advance(Span::from_secs(5));
    cluster.let_go();
    cluster.advance(Span::from_secs(60));
    cluster.assert_ended(&[R0, R1, R2], &[(&a, Some("1"))]);
    cluster.assert_ended(&[0, 1, 2].map(second), &[(&b, Some("2"))]);
}

/// An attempt has committed by the votes of r0 and r1, and r1 is away before it learns so. r2, which has no vote on it, has taken it over from r0's
/// log and forgotten that, and r0 has forgotten it; r2 may have been asked to vote in between. Back in doubt, r1 asks both before it reads a log.
fn ask_who_has_forgotten(mut cluster: Cluster, asked: bool) -> Cluster {
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.hold(|envelope| tells_outcome(envelope) || is_accept(envelope) && envelope.to == R2);
    let id = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    cluster.committed(id);
    cluster.kill(R1);
    if asked {
        cluster.hold(is_accept);
        cluster.lose(tells_outcome);
        cluster.advance(Span::from_secs(2));
    }
    cluster.lose(|envelope| !(asked && is_accept(envelope) && envelope.to == R2));
    cluster.let_go();
    cluster.advance(Span::from_secs(150));
    assert_eq!([R0, R2].map(|site| cluster.stored(site, "k").1), [(); 2].map(|()| Some("1".into())));
    assert_eq!([R0, R2].map(|site| cluster.records(site, VOTES)), [0, usize::from(asked)], "r2 has refused, if it was asked");
    cluster.hold(|envelope| is_of_log(envelope) && envelope.to == R1);
    cluster.start(R1);
    cluster.advance(Span::from_secs(20));
    cluster
}

#[test]
fn what_was_taken_over_and_forgotten_did_not_abort_for_that() {
    for asked in [false, true] {
        let mut cluster = ask_who_has_forgotten(Cluster::new(1, ""), asked);
        assert_eq!(cluster.prepared_and_in_doubt(R1), (1, 1));
        cluster.let_go();
        cluster.advance(Span::from_secs(20));
        cluster.assert_ended(&[R0, R1, R2], &[("k", Some("1"))]);
    }
}

/// r0 is prepared for an attempt that nobody else has heard of, and away. r2 has refused it when asked, and restarts; r1 forgets that there was such a
/// time. Both go on without a copy at r0.
#[test]
fn a_region_without_a_copy_asks_no_more_once_all_have_said_what_they_know() {
    let mut cluster = Cluster::new(1, "");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    crash_in_the_midst(&mut cluster, 1, txn, &[("k", "1")]);
    cluster.hold(|envelope| asks_for_votes(envelope) && envelope.to == R1 || is_vote(envelope) && envelope.to == R0);
    cluster.advance(Span::from_secs(10));
    assert_eq!([R0, R1, R2].map(|site| cluster.records(site, VOTES)), [1, 0, 1], "r2 has refused");
    cluster.cut(NORTH);
    cluster.lose(|_| true);
    cluster.hold(|envelope| asks_for_votes(envelope) && envelope.to == R1);
    let (_, id) = cluster.change(R1, &Placement::everywhere(3), change([EAST, WEST], []));
    cluster.advance(Span::from_secs(5));
    cluster.committed(id);
    cluster.put(R1, &[("m", "1")]);
    cluster.advance(Span::from_secs(150));
    cluster.kill(R2);
    cluster.lose(|_| true);
    cluster.start(R2);
    cluster.heal();
    cluster.let_go();
    cluster.advance(Span::from_secs(60));
    assert_eq!(cluster.prepared_and_in_doubt(R0).1, 0);
    cluster.advance(Span::from_secs(150));
    assert_eq!([R1, R2].map(|site| cluster.records(site, VOTES)), [0, 0], "nobody is asked any more");
}

/// r0 carries what r1 is in doubt about, with r2 dead, and holds no copy any more. The survivors agree all the same.
#[test]
fn a_carrier_that_holds_no_copy_any_more_takes_part() {
    let (a, b) = keys_of_two_shards();
    let second = |region: u16| SiteId::new(region, 1);
    let first = Placement::first(change([EAST, WEST, SOUTH], [NORTH])).expect("three active regions");
    let mut cluster = Cluster::of_sites(4, 2, first.clone());
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    cluster
        .hold(|envelope| envelope.from.region == WEST && envelope.to.region == SOUTH || envelope.from.region == EAST && is_vote(envelope));
    cluster.commit(txn, &[(&a, "1"), (&b, "1")]);
    cluster.settle();
    lose_region(&mut cluster, WEST, 2);
    cluster.let_go();
    cluster.advance(Span::from_secs(6));
    let (next, id) = cluster.change(R1, &first, change([EAST, SOUTH], [NORTH]));
    cluster.advance(Span::from_secs(5));
    cluster.committed(id);
    assert_eq!([R0, second(0)].map(|site| cluster.prepared_and_in_doubt(site).0), [1, 1], "it carries both halves");
    let (next, id) = cluster.change(R1, &next, change([EAST, SOUTH], []));
    cluster.advance(Span::from_secs(5));
    cluster.committed(id);
    declare_lost(&mut cluster, R1, &next, WEST.into(), change([EAST, SOUTH], []));
    cluster.advance(Span::from_secs(60));
    cluster.assert_ended(&[R1, R3], &[(&a, Some("1"))]);
    cluster.assert_ended(&[second(1), second(3)], &[(&b, Some("1"))]);
    assert_eq!([R0, second(0)].map(|site| cluster.prepared_and_in_doubt(site).0), [0, 0]);
}

mod planted {
    use super::*;
    use rhumb_core::Rules;
    use rhumb_replicated_commit::planted::Planted;

    /// Moves off a lost region, crashes r1, and declares the region lost: what r0 and r1 have of k.
    fn run(bug: Option<Planted>) -> [Option<String>; 2] {
        let mut cluster = match bug {
            None => Cluster::new(1, ""),
            Some(Planted::DoubtsNotDurable) => {
                Cluster::with_sites(1, "", |site| site.with_rules(Rules::breaking(Planted::DoubtsNotDurable)))
            }
            Some(Planted::LostRefuses) => Cluster::with_sites(1, "", |site| site.with_rules(Rules::breaking(Planted::LostRefuses))),
            Some(other) => unreachable!("{other:?} is caught elsewhere"),
        };
        lose_in_the_midst(&mut cluster, true);
        let placement = move_off(&mut cluster, &Placement::everywhere(3));
        cluster.kill(R1);
        cluster.start(R1);
        cluster.advance(Span::from_secs(2));
        assert_eq!(cluster.prepared_and_in_doubt(R1).0, usize::from(bug != Some(Planted::DoubtsNotDurable)), "k stays locked");
        let (_, id) = cluster.change(R1, &placement, Change { lost: WEST.into(), ..change([NORTH, EAST], []) });
        cluster.settle();
        cluster.committed(id);
        cluster.advance(Span::from_secs(5));
        [R0, R1].map(|site| cluster.stored(site, "k").1)
    }

    #[test]
    fn a_lost_region_that_is_taken_to_have_refused_is_caught() {
        assert_eq!(run(None), [Some("1".into()), Some("1".into())]);
        assert_eq!(run(Some(Planted::LostRefuses)), [None, None], "an acknowledged write is lost");
    }

    #[test]
    fn doubts_that_do_not_outlive_a_crash_are_caught() {
        run(Some(Planted::DoubtsNotDurable));
    }

    #[test]
    fn what_counts_as_aborted_since_it_was_taken_over_and_forgotten_is_caught() {
        let mut cluster =
            ask_who_has_forgotten(Cluster::with_sites(1, "", |site| site.with_rules(Rules::breaking(Planted::TakenOverIsAbsent))), false);
        assert_eq!(cluster.prepared_and_in_doubt(R1), (0, 0), "r2 has told it that it aborted");
    }
}
