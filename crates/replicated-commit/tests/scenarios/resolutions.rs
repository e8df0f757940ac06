//! Resolutions: survivors of a lost region agree on what it may have decided, also where one of them knows more than the others, where
//! several attempts are in doubt, and where a transaction has parts in two shards.

use crate::support::messages::{is_accept, is_of, is_vote};
use crate::support::placements::{EAST, NORTH, WEST, change};
use crate::support::{Cluster, R0, R1, R2};
use rhumb_commit::placement::{Change, Placement};
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_commit::votes::{Decision, Vote};
use rhumb_core::{Body, Key, RegionId, SiteId, Span, Topology};
use rhumb_replicated_commit::{Admin, Note, Promise, Request};

pub const LONG: Span = Span::from_secs(12);

/// An operator at r1 declares r2 lost.
pub fn declare(cluster: &mut Cluster, placement: &Placement) {
    let (_, id) = cluster.change(R1, placement, Change { lost: WEST.into(), ..change([NORTH, EAST], []) });
    cluster.advance(Span::from_secs(2));
    cluster.committed(id);
    cluster.advance(LONG);
}

/// A key of each of two shards, the coordinator's first.
pub fn keys_of_two_shards() -> (String, String) {
    let topology = Topology::new(vec!["north".into(), "east".into(), "west".into()], 2);
    let of = |shard| (0..).map(|n| format!("k{n}")).find(|name| topology.shard_of(&Key::from(name.as_str())) == shard).expect("some");
    (of(0), of(1))
}

/// An attempt of r2 has parts in two shards. r0 has voted yes, r1 and r2 no; of that only r0's second site hears, from which all votes
/// for its first one are kept. Then r2 is lost, and r0 and r1 agree that it may have voted yes.
#[test]
fn no_half_of_a_transaction_is_committed_because_one_cohort_heard_a_lost_vote() {
    let (a, b) = keys_of_two_shards();
    let second = |region: u16| SiteId::new(region, 1);
    let mut cluster = Cluster::new(2, "");
    cluster.stall_disk(R2);
    cluster.hold(|envelope| is_accept(envelope) && envelope.to == R1 || is_vote(envelope) && envelope.to.region != R0.region);
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    cluster.commit(txn, &[(&a, "1"), (&b, "1")]);
    cluster.settle();
    assert_eq!(cluster.prepared_and_in_doubt(R0).0 + cluster.prepared_and_in_doubt(second(0)).0, 2);
    // r2 starts anew, with nothing of it on its disk, and refuses; its vote and r1's reach the cohort in doubt alone.
    cluster.kill(R2);
    cluster.lose(|envelope| envelope.from == R2 || envelope.to == R2 || is_accept(envelope));
    cluster.let_go();
    let is_word_of_others = |envelope: &crate::support::Envelope| envelope.to == R0 && envelope.from.region != R0.region;
    cluster.hold(move |envelope| {
        let of_r0 = envelope.from == R0 && envelope.to.region != R0.region;
        is_word_of_others(envelope) || of_r0 || envelope.from == R2 && envelope.to == R1
    });
    cluster.start(R2);
    cluster.advance(Span::from_secs(6));
    cluster.kill(R2);
    cluster.kill(second(2));
    cluster.lose(move |envelope| is_word_of_others(envelope) || envelope.from == R2);
    cluster.let_go();
    declare(&mut cluster, &Placement::everywhere(3));
    for region in [0, 1] {
        let stored = (cluster.stored(SiteId::new(region, 0), &a).1, cluster.stored(second(region), &b).1);
        assert!(stored.0 == stored.1, "half of it: {stored:?}");
        assert_eq!(cluster.prepared_and_in_doubt(SiteId::new(region, 0)), (0, 0));
        assert_eq!(cluster.prepared_and_in_doubt(second(region)), (0, 0));
    }
}

/// Two changes of the placement are in doubt, each with one vote; r2, which is lost, may have voted for one of them.
fn two_changes_in_doubt(mut cluster: Cluster) -> Cluster {
    let all = Placement::everywhere(3);
    cluster.hold(|envelope| is_of(envelope, R0) && envelope.from == R0 && envelope.to != R0);
    cluster.change(R0, &all, change([NORTH, EAST], [WEST]));
    cluster.settle();
    cluster.hold(|envelope| {
        is_of(envelope, R0) && envelope.from == R0 && envelope.to != R0 || is_of(envelope, R1) && envelope.from == R1 && envelope.to != R1
    });
    cluster.change(R1, &all, change([EAST], [NORTH, WEST]));
    cluster.settle();
    for site in [R0, R1, R2] {
        cluster.kill(site);
    }
    cluster.lose(|_| true);
    cluster.let_go();
    cluster.start(R0);
    cluster.start(R1);
    cluster.advance(LONG);
    let in_doubt = [R0, R1].map(|site| cluster.prepared_and_in_doubt(site));
    assert_eq!(in_doubt, [(1, 1), (1, 1)]);
    cluster.request(R1, Request::Admin(Admin::Settle { lost: WEST.into() }));
    cluster.advance(LONG);
    cluster
}

#[test]
fn of_two_changes_that_a_lost_region_may_have_voted_for_one_counts_at_the_most() {
    let mut cluster = two_changes_in_doubt(Cluster::new(1, ""));
    let [first, second] = [R0, R1].map(|site| cluster.placement_at(site).0);
    assert_eq!(first, second);
    assert_eq!([R0, R1].map(|site| cluster.prepared_and_in_doubt(site)), [(0, 0), (0, 0)]);
}

/// r1's client is told that its transaction aborted: another one has the row in r1 and r2. r0 is prepared, and dies.
fn refuse_and_lose_who_is_prepared(cluster: &mut Cluster) {
    cluster.hold(|envelope| is_of(envelope, R2) && (envelope.to == R0 || is_vote(envelope)));
    let other = cluster.begin(R2, ReadMode::Optimistic);
    cluster.commit(other, &[("k", "1")]);
    cluster.settle();
    let txn = cluster.begin(R1, ReadMode::Optimistic);
    let refused = cluster.commit(txn, &[("k", "2")]);
    cluster.hold(|envelope| is_of(envelope, R2) && (envelope.to == R0 || is_vote(envelope)) || envelope.to == R0 && !is_accept(envelope));
    cluster.settle();
    assert!(matches!(cluster.failed(refused), TxnError::Conflict(_)));
    cluster.kill(R0);
    cluster.lose(|envelope| envelope.to == R0 || envelope.from == R0);
    cluster.let_go();
}

fn assert_refused_for_good(cluster: &mut Cluster) {
    for site in [R0, R1] {
        assert_ne!(cluster.stored(site, "k").1, Some("2".into()), "{site}: its client was told that it aborted");
        assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0));
    }
}

/// r0 is away for longer than aborts are remembered otherwise, and r2, which has refused, is lost meanwhile.
#[test]
fn a_refusal_is_remembered_for_a_region_that_is_away() {
    let mut cluster = Cluster::new(1, "");
    refuse_and_lose_who_is_prepared(&mut cluster);
    cluster.advance(Span::from_secs(150));
    cluster.kill(R2);
    cluster.start(R0);
    cluster.advance(Span::from_secs(3));
    declare(&mut cluster, &Placement::everywhere(3));
    assert_refused_for_good(&mut cluster);
}

/// The same where r0, which is away, has no vote any more when it comes back: it is heard before it asks.
#[test]
fn a_refusal_is_remembered_until_who_was_away_has_asked() {
    let south = RegionId(3);
    let first = Placement::first(change([NORTH, EAST, WEST], [south])).expect("three active regions");
    let mut cluster = Cluster::of_regions(4, first.clone());
    refuse_and_lose_who_is_prepared(&mut cluster);
    let (next, id) = cluster.change(R1, &first, change([EAST, WEST, south], [NORTH]));
    cluster.advance(Span::from_secs(150));
    cluster.committed(id);
    // Its pings arrive, its questions do not for a while.
    cluster.hold(|envelope| envelope.from == R0 && !matches!(envelope.body, Body::Note(Note::Ping(_))));
    cluster.start(R0);
    cluster.advance(Span::from_secs(10));
    cluster.kill(R2);
    cluster.lose(|envelope| envelope.from == R0);
    cluster.let_go();
    let lost = Change { lost: WEST.into(), ..change([EAST, south], [NORTH]) };
    let (_, id) = cluster.change(R1, &next, lost);
    cluster.advance(Span::from_secs(2));
    cluster.committed(id);
    cluster.advance(LONG);
    assert_refused_for_good(&mut cluster);
}

/// The gateway is not the site that votes for its region: its refusal is on the disk of that one before its client is told.
#[test]
fn a_refusal_told_by_another_site_than_its_coordinator_outlives_it() {
    let (a, _) = keys_of_two_shards();
    let gateway = SiteId::new(0, 1);
    let mut cluster = Cluster::new(2, "");
    cluster.hold(|envelope| is_of(envelope, R1) && (envelope.to == R0 || is_vote(envelope)));
    let other = cluster.begin(R1, ReadMode::Optimistic);
    cluster.commit(other, &[(&a, "1")]);
    cluster.settle();
    cluster.advance(Span::from_millis(100));
    let txn = cluster.begin(gateway, ReadMode::Optimistic);
    let refused = cluster.commit(txn, &[(&a, "2")]);
    cluster.hold(move |envelope| {
        let of_gateway = envelope.from == gateway && envelope.to != gateway && !is_accept(envelope);
        is_of(envelope, R1) && (envelope.to == R0 || is_vote(envelope)) || of_gateway
    });
    cluster.settle();
    let told = !cluster.waits(refused);
    for site in [R0, gateway, R2, SiteId::new(2, 1)] {
        cluster.kill(site);
    }
    cluster.lose(|_| true);
    cluster.let_go();
    cluster.start(R0);
    cluster.start(gateway);
    cluster.advance(Span::from_secs(6));
    declare(&mut cluster, &Placement::everywhere(3));
    for site in [R0, R1] {
        let has_committed = cluster.stored(site, &a).1 == Some("2".into());
        assert!(!(told && has_committed), "{site}: its client was told that it aborted");
        assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0));
    }
}

/// r1 has heard the lost region's refusal, but does not say what it makes of it; r0 has not. Whoever leads, both come to the same end.
#[test]
fn one_survivor_that_heard_the_lost_vote_speaks_for_all() {
    let mut cluster = Cluster::new(1, "");
    cluster.stall_disk(R2);
    cluster.hold(|envelope| envelope.from == R2 && envelope.to == R1 || is_vote(envelope));
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    cluster.kill(R2);
    cluster.lose(|envelope| envelope.from == R2 || envelope.to == R2);
    cluster.let_go();
    let refuses = |body: &Body<_, Promise>| matches!(body, Body::Promise(Promise::Vote(voted)) if matches!(voted.vote, Vote::No(_)));
    let claims = |body: &Body<Note, _>| matches!(body, Body::Note(Note::Decided { decision: Decision::Aborted, .. }));
    cluster.hold(move |envelope| envelope.to == R0 && envelope.from != R0 && (refuses(&envelope.body) || claims(&envelope.body)));
    cluster.start(R2);
    cluster.advance(Span::from_secs(5));
    cluster.kill(R2);
    cluster.lose(|envelope| envelope.from != R1 || envelope.to != R0);
    cluster.lose(move |envelope| claims(&envelope.body) || refuses(&envelope.body));
    cluster.let_go();
    declare(&mut cluster, &Placement::everywhere(3));
    for site in [R0, R1] {
        assert_eq!((cluster.stored(site, "k").1, cluster.prepared_and_in_doubt(site)), (None, (0, 0)), "{site}");
    }
}

mod planted {
    use super::*;
    use rhumb_core::Rules;
    use rhumb_replicated_commit::planted::Planted;

    #[test]
    fn two_changes_that_both_count_are_caught() {
        let cluster = Cluster::with_sites(1, "", |site| site.with_rules(Rules::breaking(Planted::RivalsBothCommit)));
        let mut cluster = two_changes_in_doubt(cluster);
        let [first, second] = [R0, R1].map(|site| cluster.placement_at(site).0);
        assert_eq!((first.epoch, second.epoch), (2, 2));
        assert_ne!(first, second, "two placements of one epoch");
    }
}
