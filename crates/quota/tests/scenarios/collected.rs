//! Debts: sites that owe tokens ask the others for them in turn, and are in nobody's way.

use crate::support::client::has;
use crate::support::messages::{is_decided, is_of_a_redistribution};
use crate::support::{Cluster, R0, R1, R2, R3, R4};
use rhumb_core::{SiteId, Span};
use rhumb_quota::name::Name;
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::ProtocolKind::{Any, Majority};

/// How long each message takes, where that matters.
const TRIP: Span = Span::from_millis(150);

/// Lets so many trips pass, each message taking one. How many words of what was decided were under way.
fn pass(cluster: &mut Cluster, trips: u64) -> usize {
    let mut decided = 0;
    for _ in 0..trips {
        cluster.hold(|_| true);
        cluster.advance(TRIP);
        decided += cluster.under_way(is_decided);
        let under_way = cluster.under_way(|_| true);
        cluster.let_go();
        cluster.deliver(under_way);
    }
    decided
}

/// All 50 tokens are held, 10 at each of five sites, and the limit is lowered to nothing: each site owes 10, and nobody has any left.
fn all_owe() -> Cluster {
    let mut cluster = Cluster::new(5, "All sites owe tokens that nobody has.");
    cluster.create_vm(50, Any);
    for site in [R0, R1, R2, R3, R4] {
        cluster.acquire(site, "vm", 10);
    }
    cluster.set_limit(R0, 0);
    assert_eq!(cluster.all_tokens(), [has(0, 10); 5]);
    cluster
}

#[test]
fn sites_that_collect_at_the_same_time_are_not_busy_with_each_other_for_ever() {
    let mut cluster = all_owe();
    assert!(pass(&mut cluster, 200) > 0, "somebody was heard by all others within half a minute");
}

#[test]
fn who_was_in_a_list_of_all_does_not_ask_for_what_nobody_had() {
    let mut cluster = all_owe();
    cluster.advance(Span::from_secs(70));
    cluster.hold(|envelope| is_of_a_redistribution(envelope) && envelope.from != R4 && envelope.to != R4);
    for _ in 0..30 {
        let release = cluster.release(R4, "vm", 51);
        cluster.advance(Span::from_secs(2));
        assert_eq!(cluster.outcome(release), Err(Refusal::NotHeld { quota: Name::new("vm").expect("a name"), amount: 51 }));
        assert_eq!(cluster.under_way(is_of_a_redistribution), 0, "nobody but r4 leads a redistribution");
    }
}

#[test]
fn who_asks_while_others_redistribute_without_it_asks_again_soon() {
    let mut cluster = Cluster::new(3, "A site owes tokens. When it asks for them, the others are in a list without it.");
    cluster.create_vm(30, Majority);
    for site in [R0, R1, R2] {
        cluster.acquire(site, "vm", 10);
    }
    cluster.set_limit(R0, 15);
    cluster.advance(Span::from_secs(70));
    for site in [R0, R2] {
        cluster.release(site, "vm", 10);
    }
    cluster.hold(|envelope| is_of_a_redistribution(envelope) && (envelope.from == R1 || envelope.to == R1));
    while cluster.under_way(is_of_a_redistribution) == 0 {
        cluster.advance(Span::from_millis(50));
    }
    let acquire = cluster.acquire(R0, "vm", 6);
    cluster.advance(Span::from_secs(1));
    assert!(cluster.outcome(acquire).is_ok(), "r0 and r2 redistribute without r1");
    assert_eq!(owed(&cluster, R1), 5);
    cluster.let_go();
    cluster.advance(Span::from_secs(2));
    assert_eq!(owed(&cluster, R1), 3, "it has what the others do not keep for their next moments");
}

/// What `site` owes of the only quota.
fn owed(cluster: &Cluster, site: SiteId) -> u64 {
    cluster.site(site).accounts().map(|(_, account)| account.owed).sum()
}
