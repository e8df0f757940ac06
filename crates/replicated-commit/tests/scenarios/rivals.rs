//! Rivals of what survivors assume: an attempt must not count as committed beside another in its way, a later one of its transaction or a
//! placement in force, and what somebody has counted or told already must not be undone.

use crate::resolutions::{LONG, declare, keys_of_two_shards};
use crate::support::messages::{is_about, is_accept, is_of, is_vote, tells_outcome};
use crate::support::placements::{EAST, NORTH, WEST, change};
use crate::support::{Cluster, Envelope, R0, R1, R2};
use crate::survivors::{crash_in_the_midst, declare_lost, lose_region};
use rhumb_commit::placement::{Change, Placement, Regions};
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::{Body, RegionId, SiteId, Span};
use rhumb_replicated_commit::records::VOTES;
use rhumb_replicated_commit::{Admin, Note, Promise, Request};

fn is_of_placement(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Note(Note::AskPlacement) | Body::Promise(Promise::Placed { .. }))
}

fn lose_all_and_let_go(cluster: &mut Cluster) {
    cluster.lose(|_| true);
    cluster.let_go();
}

/// r0 is cut off while r1 and r2 make the next placement, and makes another one of the same epoch, which only r2 could decide.
#[test]
fn a_placement_in_force_bars_another_of_its_epoch() {
    for late in [false, true] {
        let mut cluster = Cluster::new(1, "");
        let all = Placement::everywhere(3);
        cluster.cut(NORTH);
        let (next, id) = cluster.change(R1, &all, change([EAST], [NORTH, WEST]));
        cluster.settle();
        cluster.committed(id);
        cluster.advance(Span::from_millis(100));
        cluster.change(R0, &all, change([NORTH, EAST], [WEST]));
        cluster.settle();
        cluster.kill(R0);
        cluster.kill(R2);
        lose_all_and_let_go(&mut cluster);
        cluster.heal();
        cluster.start(R0);
        if late {
            cluster.hold(is_of_placement);
        }
        cluster.request(R1, Request::Admin(Admin::Settle { lost: WEST.into() }));
        cluster.advance(LONG);
        cluster.let_go();
        cluster.advance(LONG);
        for site in [R0, R1] {
            assert_eq!((cluster.placement_at(site).0, cluster.stored_placement(site)), (next.clone(), next.clone()), "{site}");
            assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0));
        }
    }
}

/// All regions carry a change of the epoch before, which keeps the row of the placement; a majority of those that could decide it is lost.
#[test]
fn a_change_that_is_carried_does_not_keep_regions_from_being_declared_lost() {
    let all = Placement::everywhere(5);
    let mut cluster = Cluster::of_regions(5, all.clone());
    let [south, middle] = [RegionId(3), RegionId(4)];
    cluster.cut(middle);
    cluster.hold(|envelope| envelope.from == R2 && (is_accept(envelope) || is_vote(envelope)));
    cluster.change(R2, &all, change([WEST], [NORTH, EAST, south, middle]));
    cluster.settle();
    assert_eq!(cluster.prepared_and_in_doubt(R2).0, 1);
    cluster.kill(R2);
    cluster.lose(|_| true);
    // What the others stop with they hear of r2 before they hear it of r3.
    cluster.hold(move |envelope| {
        let stops = matches!(envelope.body, Body::Promise(Promise::Stopped { .. }));
        matches!(envelope.body, Body::Note(Note::AskVote { .. })) || stops && envelope.from.region == south
    });
    cluster.start(R2);
    let (next, id) = cluster.change(R1, &all, change([NORTH, EAST, south], [WEST, middle]));
    cluster.settle();
    cluster.committed(id);
    cluster.advance(Span::from_secs(4));
    assert_eq!([R0, R1].map(|site| cluster.prepared_and_in_doubt(site).0), [1, 1], "they carry it");
    for site in [R2, SiteId::new(3, 0), SiteId::new(4, 0)] {
        cluster.kill(site);
    }
    lose_all_and_let_go(&mut cluster);
    let lost: Regions = [WEST, south, middle].into_iter().collect();
    cluster.request(R1, Request::Admin(Admin::Settle { lost }));
    cluster.advance(LONG);
    let (_, id) = cluster.change(R1, &next, Change { lost, ..change([NORTH, EAST], []) });
    cluster.advance(LONG);
    cluster.committed(id);
    assert_eq!([R0, R1].map(|site| cluster.prepared_and_in_doubt(site)), [(0, 0), (0, 0)]);
}

/// r0's second site has counted enough votes to know that an attempt committed, which r0's first site had refused for an earlier one.
#[test]
fn what_a_cohort_has_counted_is_not_undone_for_a_rival() {
    let (a, b) = keys_of_two_shards();
    let second = |region: u16| SiteId::new(region, 1);
    let mut cluster = Cluster::new(2, "");
    let other_gateway = second(2);
    cluster.hold(move |envelope| envelope.from == other_gateway && (envelope.to == R1 || envelope.to == R2) || is_vote(envelope));
    let rival = cluster.begin(other_gateway, ReadMode::Optimistic);
    cluster.commit(rival, &[(&a, "1")]);
    cluster.settle();
    cluster.lose(is_accept);
    cluster.advance(Span::from_millis(10));
    let unprepares = |envelope: &Envelope| envelope.from == R0 && matches!(envelope.body, Body::Note(Note::Unprepare { .. }));
    cluster.hold(move |envelope| unprepares(envelope) || is_vote(envelope));
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    cluster.commit(txn, &[(&a, "2"), (&b, "2")]);
    cluster.settle();
    assert_eq!([R0, second(0)].map(|site| cluster.prepared_and_in_doubt(site).0), [1, 1], "one of each");
    cluster.kill(R2);
    cluster.kill(second(2));
    lose_all_and_let_go(&mut cluster);
    // r0's second site alone hears the others, and nothing from r0's first one.
    cluster.hold(move |envelope| match envelope.to == second(0) {
        true => envelope.from == R0,
        false => envelope.from.region != envelope.to.region && matches!(envelope.body, Body::Promise(Promise::Vote(_))),
    });
    cluster.start(R2);
    cluster.start(second(2));
    cluster.advance(Span::from_secs(7));
    cluster.kill(R2);
    cluster.kill(second(2));
    lose_all_and_let_go(&mut cluster);
    declare(&mut cluster, &Placement::everywhere(3));
    for region in [0, 1] {
        let stored = (cluster.stored(SiteId::new(region, 0), &a).1, cluster.stored(second(region), &b).1);
        assert_eq!(stored, (Some("2".into()), Some("2".into())), "in r{region}");
        for site in [SiteId::new(region, 0), second(region)] {
            assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0), "{site}");
        }
    }
}

/// r1 has never heard of an attempt that r0 is prepared for, nor may it any more: it is older than all that is remembered. It is prepared
/// for another one that writes the same row, and that the lost region's client was told of.
#[test]
fn a_region_that_has_forgotten_bars_rivals_all_the_same() {
    let mut cluster = Cluster::new(1, "");
    cluster.hold(|envelope| envelope.from == R0);
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    cluster.kill(R0);
    lose_all_and_let_go(&mut cluster);
    cluster.cut(NORTH);
    cluster.start(R0);
    cluster.advance(Span::from_secs(1));
    cluster.put(R1, &[("other", "1")]);
    cluster.advance(Span::from_secs(150));
    cluster.hold(|envelope| envelope.from == R2 && envelope.to == R1 && !is_accept(envelope));
    let committed = cluster.put(R2, &[("k", "2")]);
    cluster.kill(R2);
    lose_all_and_let_go(&mut cluster);
    cluster.heal();
    declare(&mut cluster, &Placement::everywhere(3));
    let has = |site, at| cluster.stored_at(site, "k", at).1;
    let first = has(R0, committed.at.previous()).is_some();
    let second = has(R0, committed.at) == Some("2".into());
    assert!(first != second, "the first committed: {first}, the second: {second}");
    assert_eq!(cluster.stored(R0, "k"), cluster.stored(R1, "k"));
    assert_eq!([R0, R1].map(|site| cluster.prepared_and_in_doubt(site)), [(0, 0), (0, 0)]);
}

/// A gateway has seen two refusals, one of them of the region that is lost, and made another attempt. Its own region waits for what it knows of
/// the first one, however long the two do not hear each other.
#[test]
fn no_attempt_is_resolved_before_its_gateway_has_said_what_it_knows() {
    let (a, _) = keys_of_two_shards();
    let gateway = SiteId::new(1, 1);
    let mut cluster = Cluster::new(2, "");
    cluster.hold(move |envelope| {
        is_of(envelope, gateway) && (envelope.to == R1 || envelope.to == R2) || envelope.from == R0 && is_vote(envelope)
    });
    let txn = cluster.begin(gateway, ReadMode::Optimistic);
    let id = cluster.commit(txn, &[(&a, "1")]);
    cluster.settle();
    cluster.advance(Span::from_millis(10));
    let between = cluster.put(SiteId::new(2, 1), &[(&a, "2")]);
    // The second attempt is made, and reaches nobody.
    cluster.lose(|envelope| envelope.from == R0);
    cluster.hold(move |envelope| is_vote(envelope) || !is_of(envelope, gateway));
    cluster.settle();
    cluster.hold(move |envelope| is_accept(envelope) || !is_of(envelope, gateway));
    cluster.settle();
    cluster.kill(R2);
    cluster.kill(SiteId::new(2, 1));
    cluster.lose(|_| true);
    cluster.hold(move |envelope| {
        let of_declaration = matches!(envelope.body, Body::Note(Note::AskHigh { .. } | Note::High { .. }));
        (envelope.from == gateway || envelope.to == gateway) && !of_declaration
    });
    let (_, declared) = cluster.change(R1, &Placement::everywhere(3), Change { lost: WEST.into(), ..change([NORTH, EAST], []) });
    cluster.advance(Span::from_secs(30));
    cluster.committed(declared);
    let first = |cluster: &Cluster, site| cluster.stored_at(site, &a, between.at.previous()).1;
    assert_eq!((first(&cluster, R0), cluster.prepared_and_in_doubt(R0).0), (None, 1), "r0 waits for r1, and r1 for its gateway");
    assert!(matches!(cluster.failed(id), TxnError::Unknown(_)), "{:?}", cluster.failed(id));
    cluster.let_go();
    cluster.advance(LONG);
    for site in [R0, R1] {
        assert_eq!((first(&cluster, site), cluster.prepared_and_in_doubt(site)), (None, (0, 0)), "{site}: it had been refused");
    }
}

/// r1, which had refused, misses how the round ended in which it took part.
#[test]
fn who_misses_the_end_of_a_round_asks_for_it() {
    for restarts in [false, true] {
        let mut cluster = Cluster::new(1, "");
        cluster.hold(|envelope| envelope.from == R2 && envelope.to == R1 || envelope.from == R0 && is_vote(envelope));
        let txn = cluster.begin(R2, ReadMode::Optimistic);
        cluster.commit(txn, &[("k", "1")]);
        cluster.settle();
        cluster.kill(R2);
        lose_all_and_let_go(&mut cluster);
        cluster.hold(|envelope| envelope.to == R1 && tells_outcome(envelope));
        let lost = Change { lost: WEST.into(), ..change([NORTH, EAST], []) };
        let (_, id) = cluster.change(R0, &Placement::everywhere(3), lost);
        cluster.advance(LONG);
        cluster.committed(id);
        cluster.lose(|_| true);
        if restarts {
            cluster.kill(R1);
            cluster.start(R1);
        }
        cluster.let_go();
        cluster.advance(Span::from_secs(200));
        for site in [R0, R1] {
            assert_eq!(cluster.stored(site, "k").1, Some("1".into()), "{site}");
            assert_eq!(cluster.records(site, VOTES), 0, "{site} has forgotten it");
        }
    }
}

/// r0 is prepared for an attempt that had read k before r1 and r2 wrote it, which r0 does not know yet. r1 has never heard of that attempt, and
/// r2 is lost.
fn read_before_others_wrote(mut cluster: Cluster) -> Cluster {
    cluster.put(R0, &[("k", "1")]);
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let read = cluster.get(txn, ReadMode::Optimistic, &["k"]);
    cluster.settle();
    assert_eq!(cluster.values(read), [Some("1".into())]);
    cluster.hold(|envelope| envelope.to == R0);
    cluster.put(R2, &[("k", "2")]);
    cluster.advance(Span::from_millis(10));
    cluster.hold(|envelope| envelope.to == R0 || envelope.from == R0);
    cluster.commit(txn, &[("m", "3")]);
    cluster.settle();
    cluster.kill(R0);
    cluster.kill(R2);
    lose_all_and_let_go(&mut cluster);
    cluster.start(R0);
    cluster.advance(Span::from_secs(5));
    declare(&mut cluster, &Placement::everywhere(3));
    cluster
}

#[test]
fn what_had_read_an_older_version_is_not_assumed_to_have_committed() {
    let mut cluster = read_before_others_wrote(Cluster::new(1, ""));
    for site in [R0, R1] {
        assert_eq!((cluster.stored(site, "k").1, cluster.stored(site, "m").1), (Some("2".into()), None), "{site}");
        assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0));
    }
}

#[test]
fn a_stale_read_that_survivors_do_not_look_for_is_caught() {
    use rhumb_core::Rules;
    use rhumb_replicated_commit::planted::Planted;
    let cluster = read_before_others_wrote(Cluster::with_sites(1, "", |site| site.with_rules(Rules::breaking(Planted::StaleUnseen))));
    for site in [R0, R1] {
        assert_eq!(cluster.stored(site, "m").1, Some("3".into()), "{site}: it had read k before it was written, and comes after");
    }
}

/// Of an acknowledged commit of r2, which is lost, r1 is prepared; r0 is prepared for an earlier attempt to write the same row, of which nobody
/// else has heard. It waits for the end of that one, which aborts since r1 has accepted the commit, where it once contested the commit at once.
#[test]
fn an_acknowledged_commit_waits_for_an_earlier_attempt_that_aborts() {
    let first = Placement::everywhere(3);
    let mut cluster = Cluster::new(1, "");
    let earlier = cluster.begin(R0, ReadMode::Optimistic);
    crash_in_the_midst(&mut cluster, 1, earlier, &[("k", "1")]);
    cluster.advance(Span::from_millis(10));
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    cluster.hold(move |envelope| is_about(envelope, earlier) || is_about(envelope, txn) && (envelope.to == R0 || tells_outcome(envelope)));
    let id = cluster.commit(txn, &[("k", "2")]);
    cluster.settle();
    let at = cluster.committed(id).at;
    lose_region(&mut cluster, WEST, 1);
    lose_all_and_let_go(&mut cluster);
    assert_eq!([R0, R1].map(|site| cluster.prepared_and_in_doubt(site).0), [1, 1], "one of each");
    declare_lost(&mut cluster, R1, &first, WEST.into(), change([NORTH, EAST], []));
    cluster.advance(LONG);
    cluster.assert_ended(&[R0, R1], &[("k", Some("2"))]);
    assert_eq!([R0, R1].map(|site| cluster.stored_at(site, "k", at.previous()).1), [None, None], "the earlier one aborted");
}
