//! What the cursor into a peer's log has passed is on disk, whatever the site was in doubt about; and what no log can say is not read from one.

use crate::resolutions::{LONG, keys_of_two_shards};
use crate::support::messages::{is_accept, tells_outcome};
use crate::support::placements::{EAST, NORTH, SOUTH, WEST, change};
use crate::support::{Cluster, Envelope, R0, R1, R2};
use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::ReadMode;
use rhumb_commit::votes::Decision;
use rhumb_core::{Body, SiteId, Span};
use rhumb_replicated_commit::{Note, Promise};

fn is_forgotten(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Promise(Promise::Forgotten { .. }))
}

fn aborts(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Note(Note::Decided { decision: Decision::Aborted, .. }) | Body::Promise(Promise::Aborted { .. }))
}

fn tells_commit(envelope: &Envelope) -> bool {
    tells_outcome(envelope) && !aborts(envelope)
}

/// The coordinator of r2 dies before it has voted; the cohort beside it is prepared, and reads in two logs that the attempt committed. The
/// coordinator has no record of it when it is back, be that long after, and refuses.
#[test]
fn a_half_that_is_prepared_is_not_passed_over() {
    let (a, b) = keys_of_two_shards();
    let second = SiteId::new(2, 1);
    for away in [Span::from_secs(2), Span::from_secs(15), Span::from_secs(300)] {
        let mut cluster = Cluster::new(2, "");
        cluster.hold(move |envelope| envelope.to == R2 && (envelope.from == second || tells_outcome(envelope)));
        let txn = cluster.begin(R0, ReadMode::Optimistic);
        let id = cluster.commit(txn, &[(&a, "1"), (&b, "1")]);
        cluster.settle();
        let at = cluster.committed(id).at;
        cluster.kill(R2);
        cluster.lose(|_| true);
        cluster.let_go();
        cluster.advance(away);
        let reader = cluster.begin(second, ReadMode::Stale(at));
        let read = cluster.get(reader, ReadMode::Stale(at), &[&b]);
        cluster.settle();
        assert!(cluster.waits(read), "{away}: its replica does not know yet what was committed at that timestamp");
        cluster.hold(|envelope| envelope.to == R2 && tells_outcome(envelope));
        cluster.start(R2);
        cluster.advance(Span::from_secs(3));
        cluster.let_go();
        cluster.advance(LONG);
        cluster.assert_ended(&[R0, R1, R2], &[(&a, Some("1"))]);
        cluster.assert_ended(&[SiteId::new(0, 1), SiteId::new(1, 1), second], &[(&b, Some("1"))]);
    }
}

/// r2 prepares an attempt after it has asked for its rows, which then arrive: it is in doubt no longer.
#[test]
fn rows_of_what_was_prepared_meanwhile_end_the_doubt() {
    let is_entries = |envelope: &Envelope| matches!(envelope.body, Body::Promise(Promise::Entries { .. }));
    let is_log = |envelope: &Envelope| matches!(envelope.body, Body::Promise(Promise::Log(_)));
    let mut cluster = Cluster::new(1, "");
    cluster.hold(move |envelope| envelope.to == R2 && !is_log(envelope));
    cluster.put(R0, &[("k", "1")]);
    cluster.advance(Span::from_secs(1));
    assert_ne!(cluster.under_way(is_entries), 0, "r2 has asked for the rows");
    cluster.hold(|envelope| envelope.to == R2 && !is_accept(envelope));
    cluster.settle();
    assert_eq!(cluster.prepared_and_in_doubt(R2).0, 1);
    cluster.hold(move |envelope| envelope.to == R2 && !is_entries(envelope));
    cluster.settle();
    cluster.assert_ended(&[R2], &[("k", Some("1"))]);
}

/// r2 has voted for an attempt that r0 commits, and is away and out of the placement until all others have forgotten it.
fn forgotten_while_away() -> (Cluster, Placement) {
    let mut cluster = Cluster::new(1, "");
    cluster.hold(|envelope| envelope.to == R1 && is_accept(envelope) || envelope.to == R2 && envelope.from == R0 && !is_accept(envelope));
    cluster.put(R0, &[("k", "1")]);
    cluster.lose(|envelope| envelope.to == R1 || envelope.to == R2);
    cluster.let_go();
    cluster.cut(WEST);
    let (placement, id) = cluster.change(R0, &Placement::everywhere(3), change([NORTH, EAST], []));
    cluster.settle();
    cluster.committed(id);
    cluster.advance(Span::from_secs(100));
    (cluster, placement)
}

/// r2 gets a copy again.
fn add_again(cluster: &mut Cluster, placement: &Placement) {
    let (_, id) = cluster.change(R0, placement, change([NORTH, EAST], [WEST]));
    cluster.settle();
    cluster.committed(id);
    cluster.advance(Span::from_secs(20));
    assert!(cluster.placement_at(R2).1);
}

/// It starts anew, and says of nothing that it aborted.
fn restart_and_find(cluster: &mut Cluster) {
    cluster.kill(R2);
    cluster.start(R2);
    cluster.advance(Span::from_secs(20));
    assert_eq!(cluster.under_way(aborts), 0, "nobody says that it aborted");
    cluster.assert_ended(&[R0, R1, R2], &[("k", Some("1"))]);
}

/// It copies the rows, and then hears from the last of them that it has forgotten the attempt.
#[test]
fn what_was_copied_is_not_judged_by_logs() {
    let (mut cluster, placement) = forgotten_while_away();
    let is_late = |envelope: &Envelope| envelope.from == R1 && envelope.to == R2 && is_forgotten(envelope);
    cluster.hold(is_late);
    cluster.heal();
    add_again(&mut cluster, &placement);
    assert_ne!(cluster.under_way(is_late), 0, "r2 has asked r1 before it copied");
    cluster.hold(aborts);
    cluster.settle();
    restart_and_find(&mut cluster);
}

/// It is not added again: then it asks no more. It stays prepared, for whoever moves, and gets the outcome with a copy.
#[test]
fn a_region_without_a_copy_is_not_in_doubt_for_ever() {
    let (mut cluster, placement) = forgotten_while_away();
    cluster.heal();
    cluster.hold(aborts);
    cluster.advance(Span::from_secs(20));
    assert_eq!(cluster.under_way(aborts), 0, "nobody says that it aborted");
    assert_eq!(cluster.prepared_and_in_doubt(R2), (1, 0));
    add_again(&mut cluster, &placement);
    restart_and_find(&mut cluster);
}

/// r2 has voted for an attempt that r0 commits, and is away. r1 and r3 have it from the log of r0, which is gone when r2 is back: the logs that r2
/// reads do not tell of it, nor does r1, which has forgotten it. A replica that follows the voters is not ahead of its own doubt.
#[test]
fn what_is_in_doubt_here_is_not_taken_to_be_known() {
    let placement = Placement::first(change([NORTH, EAST, WEST], [SOUTH])).expect("three active regions");
    let mut cluster = Cluster::of_sites(4, 1, placement.clone());
    cluster.hold(|envelope| envelope.to == R1 && is_accept(envelope) || envelope.to == R2 && envelope.from == R0 && !is_accept(envelope));
    let at = cluster.put(R0, &[("k", "1")]).at;
    cluster.lose(|envelope| envelope.to == R1 || envelope.to == R2);
    cluster.let_go();
    cluster.cut(WEST);
    let (_, id) = cluster.change(R0, &placement, change([NORTH, EAST, SOUTH], [WEST]));
    cluster.settle();
    cluster.committed(id);
    cluster.advance(Span::from_secs(100));
    cluster.kill(R0);
    cluster.heal();
    cluster.advance(Span::from_secs(20));
    assert!(cluster.placement_at(R2).1);
    let reader = cluster.begin(R2, ReadMode::Stale(at));
    let read = cluster.get(reader, ReadMode::Stale(at), &["k"]);
    cluster.settle();
    assert!(cluster.waits(read), "its replica does not know yet what was committed at that timestamp");
    cluster.start(R0);
    cluster.advance(Span::from_secs(20));
    assert_eq!(cluster.values(read), [Some("1".into())]);
    cluster.assert_ended(&[R0, R1, R2, SiteId::new(3, 0)], &[("k", Some("1"))]);
}

/// Both sites of r2 are down while r0 and r1 commit, r3 has no record of it, and r1 dies but for its second site, which is in doubt. Then r2 gets
/// a vote in the place of r1. Its second site carries the attempt, and reads in the log of r0 that it committed before its coordinator is back.
#[test]
fn what_is_carried_is_not_passed_over() {
    let (a, b) = keys_of_two_shards();
    let (first, second) = (R2, SiteId::new(2, 1));
    let placement = Placement::first(change([NORTH, EAST, SOUTH], [WEST])).expect("three active regions");
    let mut cluster = Cluster::of_sites(4, 2, placement.clone());
    [first, second].into_iter().for_each(|site| cluster.kill(site));
    cluster.hold(|envelope| envelope.to.region == SOUTH && is_accept(envelope) || envelope.to.region == EAST && tells_outcome(envelope));
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let id = cluster.commit(txn, &[(&a, "1"), (&b, "1")]);
    cluster.settle();
    cluster.committed(id);
    cluster.kill(R1);
    cluster.lose(|_| true);
    cluster.let_go();
    let (_, id) = cluster.change(R0, &placement, change([NORTH, WEST, SOUTH], []));
    cluster.settle();
    cluster.committed(id);
    cluster.advance(Span::from_secs(5));
    // r2 hears r0, where it committed, after the others only.
    cluster.hold(move |envelope| envelope.from.region == NORTH && envelope.to.region == WEST);
    cluster.start(second);
    cluster.advance(Span::from_secs(3));
    assert_eq!(cluster.prepared_and_in_doubt(second).0, 1, "it carries what r1 is in doubt about");
    cluster.hold(move |envelope| envelope.to == first && tells_commit(envelope) || aborts(envelope));
    cluster.advance(Span::from_secs(3));
    cluster.start(first);
    cluster.advance(Span::from_secs(3));
    assert_eq!(cluster.under_way(aborts), 0, "nobody says that it aborted");
    cluster.let_go();
    cluster.advance(LONG);
    cluster.assert_ended(&[R0, first, SiteId::new(3, 0)], &[(&a, Some("1"))]);
    cluster.assert_ended(&[SiteId::new(0, 1), second, SiteId::new(3, 1)], &[(&b, Some("1"))]);
}
