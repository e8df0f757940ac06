//! Attempts that some survivors of a lost region have forgotten, and others are in doubt about still: who has forgotten one may have said yes,
//! and has its rows.

use crate::collected::COLLECTED;
use crate::resolutions::{LONG, keys_of_two_shards};
use crate::support::messages::{asks_for_votes, inquires, is_about, is_accept, is_of_log, is_vote, stops, tells_outcome};
use crate::support::placements::{EAST, NORTH, SOUTH, WEST, change};
use crate::support::{Cluster, Envelope, R0, R1, R2, R3};
use crate::survivors::{crash_in_the_midst, declare_lost, lose_region};
use rhumb_commit::placement::{Change, Placement};
use rhumb_commit::transaction::ReadMode;
use rhumb_core::{SiteId, Span, TxnId};
use rhumb_replicated_commit::Site;
use rhumb_replicated_commit::records::VOTES;

/// Longer than an attempt is remembered.
const AGES: Span = Span::from_secs(150);
/// What clients were told that an attempt wrote.
const ROW: [(&str, Option<&str>); 1] = [("k", Some("1"))];

/// True for what one of r0 and r1 says to the other once it has stopped.
fn stops_between_r0_and_r1(envelope: &Envelope) -> bool {
    stops(envelope) && [R0, R1].contains(&envelope.from) && [R0, R1].contains(&envelope.to)
}

/// An attempt of r0 committed by r0's vote and r2's. r1 has never heard of it, and refuses; r2 does not know how it ended. r0 is away until it has
/// forgotten the attempt, and then carries it for r2 in the placement `next`.
fn carry_what_was_forgotten(next: Change) -> (Cluster, Placement) {
    let mut cluster = Cluster::new(1, "");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.hold(|envelope| envelope.from == R0 && !(is_accept(envelope) && envelope.to == R2));
    let id = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    cluster.committed(id);
    cluster.lose(|_| true);
    cluster.let_go();
    cluster.cut(NORTH);
    cluster.advance(AGES);
    assert_eq!([R0, R2].map(|site| cluster.records(site, VOTES)), [0, 1], "r0 has forgotten it");
    let (placement, id) = cluster.change(R1, &Placement::everywhere(3), next);
    cluster.settle();
    cluster.committed(id);
    cluster.heal();
    cluster.hold(move |envelope| {
        is_about(envelope, txn) || is_of_log(envelope) && envelope.from == R0 || stops(envelope) && envelope.from == R1 && envelope.to == R0
    });
    cluster.advance(Span::from_secs(5));
    assert_eq!((cluster.placement_at(R0), cluster.prepared_and_in_doubt(R0).0), ((placement.clone(), true), 1), "r0 carries it");
    lose_region(&mut cluster, WEST, 1);
    cluster.lose(|_| true);
    (cluster, placement)
}

/// r2 is lost. r0 leads for what it carries itself, and with a no of its own would agree with r1, which refused, that it aborted.
#[test]
fn who_has_forgotten_its_yes_casts_no_vote_for_what_it_carries() {
    let (mut cluster, placement) = carry_what_was_forgotten(change([NORTH, EAST], [WEST]));
    // r1 neither leads nor reads r0's log.
    cluster.hold(|envelope| {
        let leads = inquires(envelope) && envelope.to == R0;
        asks_for_votes(envelope) || stops_between_r0_and_r1(envelope) || is_of_log(envelope) && envelope.to == R1 || leads
    });
    declare_lost(&mut cluster, R1, &placement, WEST.into(), change([NORTH, EAST], []));
    cluster.advance(LONG);
    cluster.let_go();
    cluster.advance(LONG);
    cluster.assert_ended(&[R0, R1], &ROW);
}

/// r1 and r2 are lost, so r0 leads alone. No region reads its own log: it would wait for that for ever.
#[test]
fn a_region_leads_for_what_it_has_forgotten_itself() {
    let (mut cluster, placement) = carry_what_was_forgotten(change([NORTH], [EAST, WEST]));
    lose_region(&mut cluster, EAST, 1);
    cluster.lose(|_| true);
    cluster.let_go();
    declare_lost(&mut cluster, R0, &placement, [EAST, WEST].into_iter().collect(), change([NORTH], []));
    cluster.advance(LONG);
    cluster.assert_ended(&[R0], &ROW);
}

/// r0, r1 and r2 vote for `txn`. r2 does not hear that it commits, and is away with r3 until r0 and r1 have forgotten it.
fn commit_and_forget(cluster: &mut Cluster, txn: TxnId, writes: &[(&str, &str)]) {
    let id = cluster.commit(txn, writes);
    cluster.settle();
    cluster.committed(id);
    cluster.lose(|_| true);
    cluster.let_go();
    [WEST, SOUTH].into_iter().for_each(|region| cluster.cut(region));
    cluster.advance(AGES);
    assert_eq!([R0, R1, R2].map(|site| cluster.records(site, VOTES)), [0, 0, 1], "r0 and r1 have forgotten it");
}

/// r0, r1 and r2 have voted for an attempt; r2, which does not know that it committed, is away until the others have forgotten it. They carry
/// it for r2, which is lost then. Each has read the other's log long ago. r3, which has no vote on it, was away, too, and has not.
#[test]
fn what_all_have_forgotten_is_looked_for_among_the_rows() {
    let first = Placement::first(change([NORTH, EAST, WEST], [SOUTH])).expect("three active regions");
    let mut cluster = Cluster::of_regions(4, first.clone());
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.hold(|envelope| envelope.to == R3 || envelope.to == R2 && !is_accept(envelope));
    commit_and_forget(&mut cluster, txn, &[("k", "1")]);
    let keeps = |envelope: &Envelope| stops_between_r0_and_r1(envelope) || is_of_log(envelope) && envelope.to == R3;
    cluster.hold(move |envelope| keeps(envelope) || is_about(envelope, txn) || is_of_log(envelope) && envelope.to == R2);
    let (second, id) = cluster.change(R1, &first, change([NORTH, EAST], [WEST, SOUTH]));
    cluster.settle();
    cluster.committed(id);
    cluster.heal();
    cluster.advance(Span::from_secs(5));
    assert_eq!([R0, R1, R3].map(|site| cluster.prepared_and_in_doubt(site).0), [1, 1, 0], "r0 and r1 carry it");
    lose_region(&mut cluster, WEST, 1);
    cluster.lose(|_| true);
    cluster.hold(move |envelope| keeps(envelope) || asks_for_votes(envelope));
    declare_lost(&mut cluster, R1, &second, WEST.into(), change([NORTH, EAST], [SOUTH]));
    cluster.advance(LONG);
    cluster.let_go();
    cluster.advance(LONG);
    cluster.assert_ended(&[R0, R1, R3], &ROW);
}

/// r0 and r1 were in doubt about an attempt for longer than one is remembered, before they agree with r3 that it committed. r3 misses how the
/// round ended, is `away` then, and asks before it reads a log.
fn miss_the_end(away: Span) {
    let first = Placement::first(change([NORTH, EAST, WEST], [SOUTH])).expect("three active regions");
    let mut cluster = Cluster::of_regions(4, first.clone());
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    let votes = move |envelope: &Envelope| is_about(envelope, txn) && (is_vote(envelope) || asks_for_votes(envelope));
    cluster.hold(votes);
    cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    lose_region(&mut cluster, WEST, 1);
    cluster.advance(Span::from_secs(70));
    assert_eq!([R0, R1].map(|site| cluster.prepared_and_in_doubt(site)), [(1, 1), (1, 1)]);
    let of_log = |envelope: &Envelope| is_of_log(envelope) && envelope.to == R3;
    let ends = move |envelope: &Envelope| tells_outcome(envelope) && envelope.to == R3;
    cluster.hold(move |envelope| votes(envelope) || of_log(envelope) || ends(envelope));
    declare_lost(&mut cluster, R1, &first, WEST.into(), change([NORTH, EAST], [SOUTH]));
    cluster.advance(Span::from_secs(4));
    cluster.cut(SOUTH);
    cluster.advance(away);
    cluster.heal();
    cluster.assert_ended(&[R0, R1], &ROW);
    cluster.lose(move |envelope| votes(envelope) || ends(envelope));
    cluster.hold(of_log);
    cluster.advance(Span::from_secs(20));
    cluster.let_go();
    cluster.advance(LONG);
    cluster.assert_ended(&[R0, R1, R3], &ROW);
}

/// Had r0 and r1 forgotten at once what they accepted in that round, both would stand in for it in the next one, without a vote: aborted.
#[test]
fn what_a_round_has_decided_is_remembered_as_long_as_anything() {
    miss_the_end(Span::ZERO);
}

/// The same where r3 is away for longer than an outcome is remembered: r0 and r1 remember this one until r3 has heard of it. What it accepted itself
/// would not count in another round without them, and nobody has the contents any more by which the rows could be looked for.
#[test]
fn what_a_round_has_decided_is_not_undone_once_others_have_forgotten_it() {
    miss_the_end(AGES);
}

/// r0 and r1 have forgotten an attempt of two shards. Their second sites carry what it writes there for r2, which is lost then; the first ones,
/// which coordinate, have nothing of it but its rows. r3, which has no vote on it, was away, and has neither half. Where the second half was
/// `overwritten`, that is so long ago that no version of it is left.
fn look_for_halves(overwritten: bool, make: fn(Site) -> Site) {
    let (a, b) = keys_of_two_shards();
    let second = |region: u16| SiteId::new(region, 1);
    let first = Placement::first(change([NORTH, EAST, WEST], [SOUTH])).expect("three active regions");
    let mut cluster = Cluster::of_changed_sites(4, 2, first.clone(), make);
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster
        .hold(|envelope| envelope.to.region == SOUTH || envelope.to.region == WEST && envelope.from.region != WEST && !is_accept(envelope));
    commit_and_forget(&mut cluster, txn, &[(&a, "1"), (&b, "1")]);
    if overwritten {
        cluster.put(R0, &[(&b, "2")]);
        cluster.advance(COLLECTED);
    }
    let keeps = |envelope: &Envelope| {
        let seconds = envelope.from.shard == 1 && envelope.from.region != WEST && envelope.from.region != envelope.to.region;
        stops(envelope) && seconds || is_of_log(envelope) && envelope.to.region == SOUTH
    };
    cluster.hold(move |envelope| {
        let of_first = stops(envelope) && envelope.from == R2;
        keeps(envelope) || of_first || is_about(envelope, txn) || is_of_log(envelope) && envelope.to.region == WEST
    });
    let (next, id) = cluster.change(R1, &first, change([NORTH, EAST], [WEST, SOUTH]));
    cluster.settle();
    cluster.committed(id);
    cluster.heal();
    cluster.advance(Span::from_secs(5));
    assert_eq!([R0, second(0), R1, second(1)].map(|site| cluster.prepared_and_in_doubt(site).0), [0, 1, 0, 1]);
    lose_region(&mut cluster, WEST, 2);
    cluster.lose(|_| true);
    cluster.hold(move |envelope| keeps(envelope) || asks_for_votes(envelope) && envelope.from.region != envelope.to.region);
    declare_lost(&mut cluster, R1, &next, WEST.into(), change([NORTH, EAST], [SOUTH]));
    cluster.advance(LONG);
    cluster.let_go();
    cluster.advance(LONG);
    cluster.assert_ended(&[R0, R1, R3], &[(&a, Some("1"))]);
    cluster.assert_ended(&[0, 1, 3].map(second), &[(&b, Some(if overwritten { "2" } else { "1" }))]);
    cluster.advance(AGES);
    assert_eq!([R0, R1, R3].map(|site| cluster.records(site, VOTES)), [0; 3], "nobody waits for anything any more");
}

#[test]
fn what_second_sites_carry_and_first_ones_have_forgotten_is_looked_for_among_the_rows() {
    look_for_halves(false, |site| site);
}

/// No row says any more that it committed, and r3 lacks the half that nobody has overwritten.
#[test]
fn what_was_overwritten_and_collected_did_not_abort_for_that() {
    look_for_halves(true, |site| site);
}

/// r0 alone is prepared for an attempt, and lost later. r1 has refused it when r0 asked, and r2 has forgotten that there was such a time. If r1 has
/// `restarted` before r0 asked once more, it does not know either whether it has taken the attempt over.
fn lose_who_asked(restarted: bool) {
    let mut cluster = Cluster::new(1, "");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    crash_in_the_midst(&mut cluster, 1, txn, &[("k", "1")]);
    cluster.hold(|envelope| asks_for_votes(envelope) && envelope.to == R2 || is_vote(envelope) && envelope.to == R0);
    cluster.advance(Span::from_secs(10));
    cluster.cut(NORTH);
    cluster.put(R1, &[("m", "1")]);
    cluster.advance(AGES);
    assert_eq!([R1, R2].map(|site| cluster.records(site, VOTES)), [1, 0], "r1 has refused");
    if restarted {
        cluster.kill(R1);
        cluster.start(R1);
    }
    cluster.heal();
    cluster.advance(Span::from_secs(5));
    lose_region(&mut cluster, NORTH, 1);
    cluster.lose(|_| true);
    cluster.let_go();
    declare_lost(&mut cluster, R2, &Placement::everywhere(3), NORTH.into(), change([EAST, WEST], []));
    cluster.advance(LONG);
    cluster.assert_ended(&[R1, R2], &[("k", None)]);
    cluster.advance(AGES);
    assert_eq!([R1, R2].map(|site| cluster.records(site, VOTES)), [0, 0], "they wait for nothing any more");
}

#[test]
fn who_has_refused_knows_that_it_has_taken_nothing_over_since() {
    lose_who_asked(false);
}

/// The one who has led a round to no end tells the other, and neither leads another.
#[test]
fn what_nobody_can_tell_and_nobody_waits_for_is_left_alone() {
    lose_who_asked(true);
}

/// If they agree that it aborted, r3 takes over all the same what a region has in its log that is not lost.
#[test]
fn the_log_of_a_live_region_outranks_an_abort_on_record() {
    use rhumb_core::Rules;
    use rhumb_replicated_commit::planted::Planted;
    look_for_halves(true, |site| site.with_rules(Rules::breaking(Planted::CoveredIsAbsent)));
}
