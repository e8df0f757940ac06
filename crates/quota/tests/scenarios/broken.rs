//! Schedules that break what is said of dropped quotas.

use crate::support::{Cluster, R0, R1, R2};
use rhumb_core::Span;
use rhumb_quota::catalog::{Change, Definitions, QuotaId};
use rhumb_quota::info::Read;
use rhumb_quota::name::Name;
use rhumb_quota::operation::AMOUNT_MAX;
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::ProtocolKind::Majority;
use rhumb_quota::spec::Spec;

const SECOND: Span = Span::from_millis(1_000);
/// Until whoever waits has its answer.
const PATIENCE: Span = Span::from_secs(12);

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// A quota of 30 tokens below another.
fn below(parent: &str) -> Spec {
    Spec { parent: Some(name(parent)), ..Spec::new(30) }
}

/// Lets time pass, in which a client of r0 has vm counted again and again.
fn read_all_the_time(cluster: &mut Cluster, seconds: u64) {
    let mut reads = 0;
    let mut get = cluster.get(R0, "vm", Read::Exact);
    for _ in 0..seconds * 20 {
        cluster.advance(Span::from_millis(50));
        if !cluster.waits(get) {
            cluster.info(get);
            reads += 1;
            get = cluster.get(R0, "vm", Read::Exact);
        }
    }
    assert!(reads > seconds, "{reads} counts in {seconds} s");
}

/// A client of r1 releases more than anybody holds: that is to be counted. Counts that r0 leads for its reader keep r1 from leading one.
#[test]
#[ignore = "open: a site whose counts others lead waits for its own"]
fn a_site_whose_counts_others_lead_redistributes_still() {
    let mut cluster = Cluster::new(3, "A site is to count, and others lead all counts.");
    cluster.create_vm(30, Majority);
    read_all_the_time(&mut cluster, 2);
    let release = cluster.release(R1, "vm", 5);
    read_all_the_time(&mut cluster, 12);
    let released = cluster.outcome(release);
    let left = cluster.tokens(R1, "vm").left;
    cluster.acquire(R1, "vm", left);
    let acquire = cluster.acquire(R1, "vm", 5);
    read_all_the_time(&mut cluster, 12);
    assert!(cluster.outcome(acquire).is_ok(), "{:?}; {:?}", cluster.outcome(acquire), cluster.all_tokens());
    assert_eq!(released, Err(Refusal::NotHeld { quota: name("vm"), amount: 5 }));
}

/// A quota as large as one may be is made below another again and again; clients acquire all of it, and it is dropped.
#[test]
#[ignore = "open: what was ever given back is a sum in 64 bits"]
fn quotas_may_be_dropped_for_ever() {
    let mut definitions = Definitions::default();
    let mut make = |change: Change| definitions.apply(&change).expect("made");
    make(Change::Create { name: name("org"), spec: Spec::new(AMOUNT_MAX) });
    for number in 2..5_000 {
        make(Change::Create { name: name("team"), spec: Spec { parent: Some(name("org")), ..Spec::new(AMOUNT_MAX) } });
        make(Change::Drop { name: name("team") });
        make(Change::End { losses: 0, held: [(QuotaId(number), AMOUNT_MAX)].into() });
    }
}

/// Schedule. `team` stands below `org`, both of 30. No client holds any token. r2 is lost: its 10 of either quota are booked as held.
///
/// 1. team is dropped. 10 of org count as held, and no client holds any of these.
/// 2. A client acquires 5 of org at r1. An operator knows that no client of r2 ever held any, and frees all that is booked.
#[test]
#[ignore = "open: tokens that were booked for two quotas are booked twice above a dropped one"]
fn no_more_is_freed_above_a_dropped_quota_than_counts_as_held() {
    let mut cluster = Cluster::new(3, "A quota is dropped of which tokens are booked, and all that is booked above it is freed.");
    cluster.create("org", Spec::new(30));
    cluster.create("team", below("org"));
    cluster.kill(R2);
    cluster.declare_lost(R0, R2);
    cluster.drop_quota(R0, "team");
    cluster.advance(PATIENCE);
    let acquire = cluster.acquire(R1, "org", 5);
    cluster.advance(SECOND);
    assert!(cluster.outcome(acquire).is_ok());
    let get = cluster.get(R0, "org", Read::Exact);
    cluster.advance(SECOND);
    let booked = cluster.info(get).booked;
    let free = cluster.free(R0, "org", booked);
    cluster.advance(PATIENCE);
    let freed = cluster.outcome(free);
    let held: u64 = [R0, R1].iter().map(|site| cluster.tokens(*site, "org").held).sum();
    assert!(held >= 5, "a client holds 5, and {held} count as held; {booked} booked, freed: {freed:?}");
}
