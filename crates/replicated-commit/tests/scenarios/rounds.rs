//! What comes in the midst of a round of a resolution, or late: an outcome while a proposal is examined, another leader's round, a commit in
//! the log of a lost region after the survivors have agreed that it aborted.

use crate::resolutions::LONG;
use crate::support::messages::{inquires, is_about, is_accept, is_copy, is_of_log, is_vote, stops, tells_outcome};
use crate::support::placements::{EAST, NORTH, SOUTH, WEST, change};
use crate::support::{Cluster, Envelope, R0, R1, R2, R3};
use crate::survivors::{crash_in_the_midst, declare_lost, lose_region};
use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::ReadMode;
use rhumb_core::{Body, Span};
use rhumb_replicated_commit::Promise;
use rhumb_replicated_commit::records::VOTES;

/// r1 looks whether an attempt had read the newest version of k. While its disk reads, it hears from r2's log that the attempt committed, and has
/// forgotten it before the disk answers.
#[test]
fn a_proposal_whose_outcome_is_known_when_it_has_been_examined_is_left_alone() {
    let mut cluster = Cluster::new(1, "");
    cluster.put(R0, &[("k", "1")]);
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    cluster.get(txn, ReadMode::Optimistic, &["k"]);
    cluster.settle();
    cluster.hold(|envelope| envelope.from == R2 && !(is_accept(envelope) && envelope.to == R0));
    let id = cluster.commit(txn, &[("m", "2")]);
    cluster.settle();
    cluster.committed(id);
    cluster.lose(is_accept);
    cluster.advance(Span::from_millis(2_500));
    let late = |envelope: &Envelope| envelope.from == R2 && envelope.to == R1 && is_of_log(envelope);
    cluster.kill(R2);
    cluster.lose(move |envelope| !late(envelope));
    cluster.hold(move |envelope| late(envelope) || inquires(envelope));
    declare_lost(&mut cluster, R1, &Placement::everywhere(3), WEST.into(), change([NORTH, EAST], []));
    cluster.hold_loads(R1);
    cluster.hold(late);
    cluster.advance(Span::from_secs(4));
    assert_eq!(cluster.prepared_and_in_doubt(R0).0, 1, "r1 has accepted nothing");
    cluster.let_go();
    cluster.advance(Span::from_secs(150));
    assert_eq!(cluster.records(R1, VOTES), 0, "r1 has forgotten it");
    cluster.answer_loads(R1);
    cluster.advance(LONG);
    cluster.assert_ended(&[R0, R1], &[("m", Some("2"))]);
}

/// r0 and r1 both lead, and a round takes them longer than each lets the other lead at first: their disks are slow.
#[test]
fn two_leaders_do_not_outbid_each_other_for_ever() {
    let mut cluster = Cluster::new(1, "");
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    cluster.hold(|envelope| envelope.from == R2 && envelope.to == R1);
    cluster.commit(txn, &[("k", "1")]);
    cluster.hold(|envelope| envelope.from == R2 && envelope.to == R1 || is_vote(envelope));
    cluster.settle();
    lose_region(&mut cluster, WEST, 1);
    cluster.lose(|_| true);
    cluster.let_go();
    cluster.advance(Span::from_secs(6));
    assert_eq!([R0, R1].map(|site| cluster.prepared_and_in_doubt(site)), [(1, 1), (0, 0)], "r1 has refused");
    cluster.hold(inquires);
    declare_lost(&mut cluster, R1, &Placement::everywhere(3), WEST.into(), change([NORTH, EAST], []));
    cluster.advance(Span::from_secs(4));
    [R0, R1].into_iter().for_each(|site| cluster.stall_disk(site));
    cluster.let_go();
    for _ in 0..40 {
        cluster.advance(Span::from_millis(3_100));
        for site in [R0, R1] {
            cluster.free_disk(site);
            cluster.stall_disk(site);
        }
    }
    cluster.assert_ended(&[R0, R1], &[("k", Some("1"))]);
}

/// An attempt of r2 committed by r2's vote and r1's, and r2 is lost before another region hears so. The others agree that it aborted, for an earlier one
/// that r0 is prepared for, and which had read, at a higher timestamp, what this one writes. Then what r2 sent before arrives, when r1 has heard how the round ended or only accepted it: its log at r1, rows of
/// its log at r0, a copy at r3.
#[test]
fn what_survivors_have_agreed_to_abort_is_not_taken_over_from_a_lost_region() {
    for is_over in [true, false] {
        let first = Placement::first(change([NORTH, EAST, WEST], [SOUTH])).expect("three active regions");
        let mut cluster = Cluster::of_regions(4, first.clone());
        let earlier = cluster.begin(R0, ReadMode::Optimistic);
        cluster.get(earlier, ReadMode::Optimistic, &["k"]);
        cluster.settle();
        cluster.set_ahead(R0, Span::from_secs(1));
        crash_in_the_midst(&mut cluster, 1, earlier, &[("k", "1")]);
        cluster.advance(Span::from_millis(10));
        let late = |envelope: &Envelope| {
            let log = matches!(envelope.body, Body::Promise(Promise::Log(_)));
            envelope.from == R2 && (is_of_log(envelope) && !(log && envelope.to == R0) || is_copy(envelope))
        };
        let txn = cluster.begin(R2, ReadMode::Optimistic);
        cluster.hold(move |envelope| {
            let reaches = envelope.to == R1 && is_accept(envelope) || envelope.to == R2 && is_vote(envelope);
            late(envelope) || is_about(envelope, earlier) || is_about(envelope, txn) && !reaches
        });
        let id = cluster.commit(txn, &[("k", "2")]);
        cluster.settle();
        cluster.committed(id);
        cluster.advance(Span::from_millis(1_500));
        assert_eq!([R0, R1, R3].map(|site| cluster.under_way(move |envelope| late(envelope) && envelope.to == site) > 0), [true; 3]);
        cluster.kill(R2);
        cluster.lose(move |envelope| !late(envelope));
        let is_kept = move |envelope: &Envelope| {
            let ends = tells_outcome(envelope) && envelope.to == R1 || inquires(envelope) && envelope.from == R1;
            is_about(envelope, earlier) || is_about(envelope, txn) && ends && !is_over || stops(envelope)
        };
        cluster.hold(move |envelope| late(envelope) || is_kept(envelope));
        declare_lost(&mut cluster, R1, &first, WEST.into(), change([NORTH, EAST], [SOUTH]));
        cluster.advance(Span::from_secs(if is_over { 4 } else { 8 }));
        assert_eq!(cluster.prepared_and_in_doubt(R1).0, usize::from(!is_over), "r1 has let go of it");
        let tells = move |envelope: &Envelope| is_about(envelope, txn) && tells_outcome(envelope);
        assert_eq!(cluster.under_way(tells) > 0, !is_over, "r1 is told of it late");
        cluster.hold(is_kept);
        cluster.settle();
        cluster.let_go();
        cluster.advance(LONG);
        cluster.assert_ended(&[R0, R1, R3], &[("k", Some("1"))]);
    }
}
