//! What survivors of lost regions make of an attempt where they do not know the same: a later rival that one of them knows to have committed,
//! an attempt that is carried by a region without a vote on it, a gateway that counts votes still, a region that is lost in the midst of a
//! round.

use crate::collected::COLLECTED;
use crate::resolutions::{LONG, declare, keys_of_two_shards};
use crate::support::messages::{asks_for_votes, is_about, is_accept, is_of_log, is_vote, stops, tells_outcome};
use crate::support::placements::{EAST, MIDDLE, NORTH, SOUTH, WEST, change};
use crate::support::{Cluster, Envelope, R0, R1, R2, R3, R4};
use rhumb_commit::placement::{Change, Placement, Regions};
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::{Body, RegionId, Rules, SiteId, Span, TxnId};
use rhumb_replicated_commit::planted::Planted;
use rhumb_replicated_commit::{Note, Promise, Site};

/// Kills the sites of `region`, and loses what is under way from and to it.
pub fn lose_region(cluster: &mut Cluster, region: RegionId, shards: u16) {
    (0..shards).for_each(|shard| cluster.kill(SiteId { region, shard }));
    cluster.lose(move |envelope| envelope.from.region == region || envelope.to.region == region);
}

/// An operator at `site` declares the regions `lost`.
pub fn declare_lost(cluster: &mut Cluster, site: SiteId, placement: &Placement, lost: Regions, change: Change) -> Placement {
    let (next, id) = cluster.change(site, placement, Change { lost, ..change });
    cluster.settle();
    cluster.committed(id);
    next
}

/// r0 crashes in the midst of an attempt of its own that nobody else hears of: it is prepared for it.
pub fn crash_in_the_midst(cluster: &mut Cluster, shards: u16, txn: TxnId, writes: &[(&str, &str)]) {
    cluster.hold(|envelope| {
        envelope.from.region == NORTH && envelope.to.region != NORTH || envelope.to.region == NORTH && envelope.from.region != NORTH
    });
    cluster.commit(txn, writes);
    cluster.settle();
    (0..shards).for_each(|shard| cluster.kill(SiteId { region: NORTH, shard }));
    cluster.lose(|_| true);
    cluster.let_go();
    (0..shards).for_each(|shard| cluster.start(SiteId { region: NORTH, shard }));
}

/// Placement `next` comes after `placement`, and the others carry what regions are in doubt about: so many attempts are prepared at `sites`, or
/// carried.
fn move_and_carry<const N: usize>(
    cluster: &mut Cluster,
    placement: &Placement,
    next: Change,
    sites: [SiteId; N],
    prepared: [usize; N],
) -> Placement {
    let (next, id) = cluster.change(R1, placement, next);
    cluster.advance(Span::from_secs(4));
    cluster.committed(id);
    assert_eq!(sites.map(|site| cluster.prepared_and_in_doubt(site).0), prepared, "who is prepared for it, or carries it");
    next
}

/// r0 is prepared for an attempt that writes k. It knows that a later one committed, which had read k before that and wrote `written`; r1 is
/// prepared for the later one, bound by a round of it or not, and does not know. r2 is lost.
fn commit_a_later_rival(written: &str, bound: bool) {
    let mut cluster = Cluster::new(1, "");
    let first = cluster.put(R0, &[("k", "1")]);
    cluster.advance(Span::from_millis(10));
    let earlier = cluster.begin(R0, ReadMode::Optimistic);
    cluster.get(earlier, ReadMode::Optimistic, &["k"]);
    cluster.settle();
    crash_in_the_midst(&mut cluster, 1, earlier, &[("k", "2")]);
    cluster.advance(Span::from_millis(10));
    let later = cluster.begin(R2, ReadMode::Optimistic);
    let read = cluster.get(later, ReadMode::Optimistic, &["k"]);
    cluster.settle();
    assert_eq!(cluster.values(read), [Some("1".into())]);
    cluster.hold(|envelope| envelope.from == R2 && tells_outcome(envelope) == (envelope.to == R1));
    let id = cluster.commit(later, &[(written, "3")]);
    cluster.settle();
    let committed = cluster.committed(id);
    lose_region(&mut cluster, WEST, 1);
    cluster.hold(move |envelope| stops(envelope) || bound && is_about(envelope, later));
    declare(&mut cluster, &Placement::everywhere(3));
    cluster.let_go();
    cluster.advance(LONG);
    for site in [R0, R1] {
        assert_eq!(cluster.stored(site, written), (committed.at, Some("3".into())), "{site}: its client was told");
        let before = cluster.stored_at(site, "k", committed.at.previous()).0;
        assert_eq!(before, first.at, "{site}: the later one, which writes {written}, had read it");
        assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0));
    }
}

/// r1 is asked to accept the earlier one while it is bound by a round of the later one, in which it does not hear r0.
#[test]
fn what_is_assumed_waits_until_later_rivals_are_over() {
    commit_a_later_rival("k", true);
    commit_a_later_rival("m", true);
}

/// r1 is asked to accept the earlier one before it hears how the later one ended, and once more after that.
#[test]
fn what_a_commit_has_read_past_does_not_commit_by_assumption() {
    commit_a_later_rival("k", false);
    commit_a_later_rival("m", false);
}

/// r1's client is told of a conflict with an attempt of r2. r0, which had voted for it, has handed it on to r3, which has no vote on it and is
/// not heard for long; r0 hears that it aborted. Then r0 and r2 are lost.
#[test]
fn a_refusal_is_remembered_for_a_region_that_carries_the_attempt() {
    let first = Placement::first(change([NORTH, EAST, WEST], [SOUTH, MIDDLE])).expect("three active regions");
    let mut cluster = Cluster::of_regions(5, first.clone());
    let other = cluster.begin(R2, ReadMode::Optimistic);
    cluster.hold(move |envelope| is_about(envelope, other) && (envelope.to == R0 || is_vote(envelope)));
    let id = cluster.commit(other, &[("k", "1")]);
    cluster.settle();
    let txn = cluster.begin(R1, ReadMode::Optimistic);
    let keeps_from_r0 = move |envelope: &Envelope| envelope.to == R0 && is_about(envelope, txn) && !is_accept(envelope);
    cluster.hold(move |envelope| is_about(envelope, other) && (envelope.to == R0 || is_vote(envelope)) || keeps_from_r0(envelope));
    let refused = cluster.commit(txn, &[("k", "2")]);
    cluster.settle();
    assert!(matches!(cluster.failed(refused), TxnError::Conflict(_)));
    // What r3 hears of r2 comes later than what it hears of r0.
    cluster.hold(move |envelope| {
        keeps_from_r0(envelope) || asks_for_votes(envelope) || stops(envelope) && envelope.from == R2 && envelope.to == R3
    });
    cluster.settle();
    cluster.committed(id);
    let second = move_and_carry(&mut cluster, &first, change([EAST, SOUTH, MIDDLE], [NORTH, WEST]), [R0, R3], [1, 1]);
    cluster.lose(stops);
    cluster.hold(move |envelope| is_about(envelope, txn) && (envelope.from == R3 || envelope.to == R3));
    cluster.advance(Span::from_secs(150));
    assert_eq!([R0, R3].map(|site| cluster.prepared_and_in_doubt(site).0), [0, 1]);
    lose_region(&mut cluster, NORTH, 1);
    lose_region(&mut cluster, WEST, 1);
    cluster.lose(|_| true);
    cluster.let_go();
    declare_lost(&mut cluster, R1, &second, [NORTH, WEST].into_iter().collect(), change([EAST, SOUTH, MIDDLE], []));
    cluster.advance(LONG);
    cluster.assert_ended(&[R1, R3, R4], &[("k", Some("1"))]);
}

/// r3 has no vote on an attempt that r0 is prepared for. It carries it, and alone has heard that r2 refused it, before that one is lost.
#[test]
fn a_refusal_that_only_a_carrier_has_heard_counts() {
    let first = Placement::first(change([NORTH, EAST, WEST], [SOUTH])).expect("three active regions");
    let mut cluster = Cluster::of_regions(4, first.clone());
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    crash_in_the_midst(&mut cluster, 1, txn, &[("k", "1")]);
    // That r1 has nothing of it r3 does not hear.
    let keeps = |envelope: &Envelope| envelope.from == R1 && envelope.to == R3 && (stops(envelope) || is_vote(envelope));
    cluster.hold(move |envelope| keeps(envelope) || asks_for_votes(envelope));
    let second = move_and_carry(&mut cluster, &first, change([NORTH, EAST, SOUTH], [WEST]), [R0, R1, R3], [1, 0, 1]);
    cluster.hold(move |envelope| {
        let is_heard = envelope.from == R3 && envelope.to == R2;
        keeps(envelope) || asks_for_votes(envelope) && !is_heard || envelope.from == R2 && envelope.to != R3 && is_vote(envelope)
    });
    cluster.advance(Span::from_secs(2));
    lose_region(&mut cluster, WEST, 1);
    cluster.lose(|_| true);
    cluster.hold(keeps);
    declare_lost(&mut cluster, R1, &second, WEST.into(), change([NORTH, EAST, SOUTH], []));
    cluster.advance(LONG);
    cluster.let_go();
    cluster.advance(LONG);
    cluster.assert_ended(&[R0, R1, R3], &[("k", None)]);
}

/// An attempt of r0 had read k, which others may have written before it `missed` that. r3, which has no vote on it, carries it; r0 and r2 are lost,
/// `later` or at once, and nobody is prepared for it any more.
fn lose_all_but_a_carrier(mut cluster: Cluster, missed: bool, later: Option<Span>) -> Cluster {
    let first = Placement::first(change([NORTH, EAST, WEST], [SOUTH, MIDDLE])).expect("three active regions");
    cluster.put(R0, &[("k", "1")]);
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.get(txn, ReadMode::Optimistic, &["k"]);
    cluster.settle();
    cluster.hold(|envelope| envelope.to == R0);
    if missed {
        cluster.put(R2, &[("k", "2")]);
    }
    cluster.advance(Span::from_millis(10));
    crash_in_the_midst(&mut cluster, 1, txn, &[("m", "3")]);
    cluster.hold(|envelope| asks_for_votes(envelope) || stops(envelope) && envelope.from == R2 && envelope.to == R3);
    let second = move_and_carry(&mut cluster, &first, change([EAST, SOUTH, MIDDLE], [NORTH, WEST]), [R0, R3], [1, 1]);
    if let Some(later) = later {
        cluster.hold(move |envelope| asks_for_votes(envelope) && envelope.to != R1 || stops(envelope) && envelope.from == R2);
        cluster.put(R1, &[("k", "3")]);
        cluster.advance(later);
    }
    lose_region(&mut cluster, NORTH, 1);
    lose_region(&mut cluster, WEST, 1);
    cluster.lose(|_| true);
    cluster.let_go();
    declare_lost(&mut cluster, R1, &second, [NORTH, WEST].into_iter().collect(), change([EAST, SOUTH, MIDDLE], []));
    cluster.advance(LONG);
    cluster
}

fn five_regions(make: fn(Site) -> Site) -> Cluster {
    let first = Placement::first(change([NORTH, EAST, WEST], [SOUTH, MIDDLE])).expect("three active regions");
    Cluster::of_changed_sites(5, 1, first, make)
}

#[test]
fn what_is_carried_only_and_had_read_an_older_version_does_not_commit() {
    let mut cluster = lose_all_but_a_carrier(five_regions(|site| site), true, None);
    cluster.assert_ended(&[R1, R3, R4], &[("k", Some("2")), ("m", None)]);
}

/// All versions that it might have missed would be collected by then.
#[test]
fn what_had_read_an_older_version_does_not_commit_however_late() {
    let mut cluster = lose_all_but_a_carrier(five_regions(|site| site), true, Some(COLLECTED));
    cluster.assert_ended(&[R1, R3, R4], &[("k", Some("3")), ("m", None)]);
    let mut cluster = lose_all_but_a_carrier(five_regions(|site| site), false, Some(COLLECTED));
    cluster.assert_ended(&[R1, R3, R4], &[("k", Some("3")), ("m", Some("3"))]);
}

#[test]
fn the_same_where_versions_are_collected_all_the_same_is_caught() {
    let breaking = |site: Site| site.with_rules(Rules::breaking(Planted::DoubtsCollected));
    let mut cluster = lose_all_but_a_carrier(five_regions(breaking), true, Some(COLLECTED));
    cluster.assert_ended(&[R1, R3, R4], &[("k", Some("3")), ("m", Some("3"))]);
}

/// Three active regions and two passive ones, and their placement.
fn five_regions_of_two_sites() -> (Cluster, Placement) {
    let first = Placement::first(change([NORTH, EAST, WEST], [SOUTH, MIDDLE])).expect("three active regions");
    (Cluster::of_sites(5, 2, first.clone()), first)
}

/// r3's second site carries what it writes of an attempt whose coordinators are the first sites; r3's first site has nothing of it. All who
/// voted on it are lost.
#[test]
fn a_region_without_a_vote_leads_for_a_site_that_carries() {
    let (a, b) = keys_of_two_shards();
    let second = |region: u16| SiteId::new(region, 1);
    let (mut cluster, first) = five_regions_of_two_sites();
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    crash_in_the_midst(&mut cluster, 2, txn, &[(&a, "1"), (&b, "1")]);
    // Of r0, which is in doubt, nobody hears but r3's second site, and that one does not hear of r2.
    cluster.hold(move |envelope| {
        let kept_from = if envelope.to == second(3) { WEST } else { NORTH };
        asks_for_votes(envelope) || stops(envelope) && envelope.from.region == kept_from && envelope.to.region.0 >= 3
    });
    let next =
        move_and_carry(&mut cluster, &first, change([SOUTH, MIDDLE], [NORTH, EAST, WEST]), [R3, second(3), R4, second(4)], [0, 1, 0, 0]);
    let lost: Regions = [NORTH, EAST, WEST].into_iter().collect();
    lost.iter().for_each(|region| lose_region(&mut cluster, region, 2));
    cluster.lose(|_| true);
    cluster.let_go();
    declare_lost(&mut cluster, R3, &next, lost, change([SOUTH, MIDDLE], []));
    cluster.advance(Span::from_secs(60));
    cluster.assert_ended(&[R3, second(3), R4, second(4)], &[]);
}

/// r3 and r4 look whether an attempt of r1, which is lost, had read the newest version of k. While they read, another one that they are
/// prepared for commits below it, and writes k.
#[test]
fn what_is_put_while_a_proposal_is_examined_is_seen() {
    let all = Placement::everywhere(5);
    let mut cluster = Cluster::of_regions(5, all.clone());
    cluster.put(R0, &[("k", "1")]);
    let txn = cluster.begin(R1, ReadMode::Optimistic);
    cluster.get(txn, ReadMode::Optimistic, &["k"]);
    cluster.settle();
    let writer = cluster.begin(R3, ReadMode::Optimistic);
    let keeps = move |envelope: &Envelope| is_about(envelope, writer) && (envelope.to == R0 || envelope.to == R2 || envelope.from == R4);
    cluster.hold(keeps);
    let written = cluster.commit(writer, &[("k", "2")]);
    cluster.settle();
    assert!(cluster.waits(written));
    cluster.advance(Span::from_millis(10));
    cluster.hold(move |envelope| keeps(envelope) || is_about(envelope, txn) && envelope.from == R1);
    let reaches = move |envelope: &Envelope| envelope.to == R0 && is_accept(envelope);
    cluster.hold(move |envelope| keeps(envelope) || is_about(envelope, txn) && envelope.from == R1 && !reaches(envelope));
    cluster.commit(txn, &[("m", "3")]);
    cluster.settle();
    assert_eq!(cluster.prepared_and_in_doubt(R0).0, 1);
    lose_region(&mut cluster, EAST, 1);
    lose_region(&mut cluster, WEST, 1);
    cluster.hold(move |envelope| keeps(envelope) || stops(envelope));
    let lost = [EAST, WEST].into_iter().collect();
    declare_lost(&mut cluster, R0, &all, lost, change([NORTH, SOUTH, MIDDLE], []));
    cluster.hold_loads(R3);
    cluster.hold_loads(R4);
    cluster.advance(Span::from_secs(3));
    assert!(cluster.waits(written));
    cluster.hold(move |envelope| stops(envelope) || envelope.to == R0 && (is_about(envelope, writer) || is_of_log(envelope)));
    cluster.settle();
    cluster.committed(written);
    cluster.answer_loads(R3);
    cluster.answer_loads(R4);
    cluster.settle();
    cluster.let_go();
    cluster.advance(LONG);
    cluster.assert_ended(&[R0, R3, R4], &[("k", Some("2")), ("m", None)]);
}

/// The gateway of an attempt is r1's second site, and knows that r2 voted for it, which is lost. r1 and r0 agree that it aborted, for an
/// earlier one of r2 that r1 is prepared for. Then the gateway hears that r0 had voted for it.
#[test]
fn a_gateway_counts_no_votes_while_its_region_takes_part_in_a_round() {
    let (a, _) = keys_of_two_shards();
    let (gateway, other_gateway) = (SiteId::new(1, 1), SiteId::new(2, 1));
    let mut cluster = Cluster::new(2, "");
    let rival = cluster.begin(other_gateway, ReadMode::Optimistic);
    cluster.hold(move |envelope| is_about(envelope, rival) && (envelope.to == R0 || envelope.to == R2));
    cluster.commit(rival, &[(&a, "1")]);
    cluster.settle();
    cluster.lose(|_| true);
    cluster.advance(Span::from_millis(10));
    let txn = cluster.begin(gateway, ReadMode::Optimistic);
    cluster.hold(move |envelope| is_about(envelope, txn) && envelope.to == gateway && envelope.from != R2);
    let id = cluster.commit(txn, &[(&a, "2")]);
    cluster.settle();
    lose_region(&mut cluster, WEST, 2);
    // r0 takes the gateway for dead.
    let is_of_gateway = move |envelope: &Envelope| {
        is_about(envelope, txn) && (envelope.to == gateway || envelope.from == gateway) || envelope.from == gateway && envelope.to == R0
    };
    cluster.hold(is_of_gateway);
    declare_lost(&mut cluster, R1, &Placement::everywhere(3), WEST.into(), change([NORTH, EAST], []));
    cluster.advance(Span::from_secs(5));
    assert_eq!([R0, R1].map(|site| cluster.prepared_and_in_doubt(site)), [(0, 0), (0, 0)]);
    cluster.hold(move |envelope| is_of_gateway(envelope) && !(envelope.from == R0 && is_vote(envelope)));
    cluster.settle();
    cluster.let_go();
    cluster.advance(LONG);
    for site in [R0, R1] {
        assert_eq!(cluster.stored(site, &a).1, Some("1".into()), "{site}");
    }
    assert!(matches!(cluster.failed(id), TxnError::Conflict(_)), "{:?}", cluster.failed(id));
}

/// r0 knows that an attempt of its own committed, for which r1 is prepared as well. r4 is lost, and in the midst of r1's round, in which r0 is
/// not heard, r0 is lost, too. r1, r2 and r3 agree that it aborted, for an earlier one in its way. r2, which knows neither that r0 is lost nor
/// how the round ended, then hears r0.
#[test]
fn the_late_word_of_who_is_lost_in_the_midst_of_a_round_does_not_count() {
    let all = Placement::everywhere(5);
    let mut cluster = Cluster::of_regions(5, all.clone());
    let rival = cluster.begin(R3, ReadMode::Optimistic);
    cluster.hold(move |envelope| is_about(envelope, rival) && envelope.to != R2);
    cluster.commit(rival, &[("k", "1")]);
    cluster.settle();
    cluster.kill(R3);
    cluster.lose(|_| true);
    cluster.start(R3);
    cluster.advance(Span::from_millis(10));
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.hold(move |envelope| {
        let reaches = envelope.to == R1 && is_accept(envelope) || envelope.to == R4 || envelope.to == R0 && is_vote(envelope);
        is_about(envelope, rival) || is_about(envelope, txn) && !reaches
    });
    let id = cluster.commit(txn, &[("k", "2")]);
    cluster.settle();
    let committed = cluster.committed(id);
    lose_region(&mut cluster, MIDDLE, 1);
    cluster.lose(|_| true);
    let of_r0 = move |envelope: &Envelope| {
        (envelope.from == R0 || envelope.to == R0) && (is_about(envelope, txn) || stops(envelope) || is_of_log(envelope))
    };
    cluster.hold(of_r0);
    let second = declare_lost(&mut cluster, R1, &all, MIDDLE.into(), change([NORTH, EAST, WEST, SOUTH], []));
    // r1 takes r0 for dead.
    let of_r0 = move |envelope: &Envelope| of_r0(envelope) || envelope.from == R0 && envelope.to == R1;
    cluster.hold(of_r0);
    // r1 accepts the earlier one, and begins its round anew.
    cluster.advance(Span::from_secs(2));
    cluster.kill(R1);
    cluster.start(R1);
    cluster.advance(Span::from_millis(3_500));
    for site in [R1, R2, R3] {
        assert!(cluster.placement_at(site).1, "{site} is settled");
    }
    // That r0 is lost r2 votes for, and does not hear.
    let (_, declared) = cluster.change(R1, &second, Change { lost: NORTH.into(), ..change([EAST, WEST, SOUTH], []) });
    let of_r2 = move |envelope: &Envelope| {
        let asks = matches!(envelope.body, Body::Note(Note::AskStopped { .. }));
        let of_placement = matches!(envelope.body, Body::Promise(Promise::Placed { .. })) || is_of_log(envelope) || asks;
        let of_others = tells_outcome(envelope) && !(envelope.from == R0 && is_about(envelope, txn));
        envelope.to == R2 && (of_placement || of_others)
    };
    cluster.hold(move |envelope| of_r0(envelope) || of_r2(envelope));
    cluster.advance(Span::from_millis(1_500));
    cluster.committed(declared);
    assert_eq!(cluster.placement_at(R2).0, second);
    cluster.hold(move |envelope| of_r2(envelope) || of_r0(envelope) && envelope.from != R2 && envelope.to != R2);
    cluster.advance(LONG);
    let has = |cluster: &Cluster, site| cluster.stored_at(site, "k", committed.at) == (committed.at, Some("2".into()));
    assert_eq!([R1, R2, R3].map(|site| has(&cluster, site)), [false; 3]);
    lose_region(&mut cluster, NORTH, 1);
    cluster.let_go();
    cluster.advance(LONG);
    for site in [R1, R2, R3] {
        assert_eq!((has(&cluster, site), cluster.prepared_and_in_doubt(site)), (false, (0, 0)), "{site}");
    }
}

/// r0 and r1 have committed an attempt, and are lost before their second sites hear of it. The first sites of the others have its rows from
/// their logs, and restart; the second ones carry it.
#[test]
fn what_first_sites_have_taken_over_is_committed_by_second_ones_too() {
    let (a, b) = keys_of_two_shards();
    let second = |region: u16| SiteId::new(region, 1);
    let (mut cluster, first) = five_regions_of_two_sites();
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.hold(move |envelope| {
        let to_second =
            envelope.to.shard == 1 && matches!(envelope.body, Body::Promise(Promise::Apply { .. }) | Body::Note(Note::Copy { .. }));
        to_second || asks_for_votes(envelope) || is_about(envelope, txn) && envelope.to == R2
    });
    let id = cluster.commit(txn, &[(&a, "1"), (&b, "1")]);
    cluster.settle();
    cluster.committed(id);
    let (next, id) = cluster.change(R1, &first, change([WEST, SOUTH, MIDDLE], [NORTH, EAST]));
    cluster.advance(Span::from_secs(5));
    cluster.committed(id);
    for region in [2, 3, 4] {
        assert_eq!(cluster.stored(SiteId::new(region, 0), &a).1, Some("1".into()), "r{region} has taken it over");
        assert_eq!(cluster.prepared_and_in_doubt(second(region)).0, 1, "r{region} carries it");
    }
    lose_region(&mut cluster, NORTH, 2);
    lose_region(&mut cluster, EAST, 2);
    for site in [R2, R3, R4] {
        cluster.kill(site);
        cluster.start(site);
    }
    cluster.lose(|_| true);
    cluster.let_go();
    declare_lost(&mut cluster, R2, &next, [NORTH, EAST].into_iter().collect(), change([WEST, SOUTH, MIDDLE], []));
    cluster.advance(Span::from_secs(60));
    for region in [2, 3, 4] {
        assert_eq!(cluster.stored(SiteId::new(region, 0), &a).1, Some("1".into()), "r{region}");
        assert_eq!(cluster.stored(second(region), &b).1, Some("1".into()), "r{region} has one half of it");
        assert_eq!(cluster.prepared_and_in_doubt(second(region)), (0, 0));
    }
}
