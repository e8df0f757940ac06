//! Tokens of lost sites that an operator frees: no more than are booked, whichever sites are asked, and each request once.

use crate::support::client::has;
use crate::support::messages::{is_decided, is_of_a_count, is_of_a_redistribution};
use crate::support::{Cluster, Envelope, R0, R1, R2, R3, R4};
use rhumb_core::actor::MESSAGE_BYTES_MAX;
use rhumb_core::{Body, Span, record};
use rhumb_quota::catalog::{self, Change, Definitions, QuotaId};
use rhumb_quota::info::Read;
use rhumb_quota::lost::{Counted, Loss};
use rhumb_quota::message::{Note, Promise};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{REQUEST_ID_BYTES_MAX, RequestKey};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::ProtocolKind::{Any, Majority};
use rhumb_quota::spec::{QUOTAS_MAX, Spec};

const SECOND: Span = Span::from_millis(1_000);
/// Until whoever waits has its answer.
const PATIENCE: Span = Span::from_secs(12);

/// Of 30 tokens r2 had 10 and is lost: 10 are booked as held, at r0.
fn lose_r2(about: &str) -> Cluster {
    lose_r2_with(about, |site| site)
}

fn lose_r2_with(about: &str, make: fn(rhumb_quota::Site) -> rhumb_quota::Site) -> Cluster {
    let mut cluster = Cluster::with_sites(3, about, make);
    cluster.create_vm(30, Majority);
    cluster.kill(R2);
    cluster.declare_lost(R0, R2);
    cluster
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn not_booked(amount: u64, booked: u64, freed: u64) -> Refusal {
    Refusal::NotBooked { quota: name("vm"), amount, booked, freed }
}

#[test]
fn no_more_is_freed_than_is_booked() {
    let mut cluster = Cluster::new(3, "An operator frees more than a lost site can have had.");
    cluster.create_vm(30, Majority);
    cluster.acquire(R0, "vm", 10);
    let early = cluster.free(R0, "vm", 1);
    assert_eq!(cluster.outcome(early), Err(not_booked(1, 0, 0)));
    cluster.kill(R2);
    cluster.declare_lost(R0, R2);
    let free = cluster.free(R0, "vm", 8);
    cluster.advance(SECOND);
    assert!(cluster.outcome(free).is_ok());
    let more = cluster.free(R0, "vm", 3);
    assert_eq!(cluster.outcome(more), Err(not_booked(3, 10, 8)));
}

#[test]
fn no_more_is_freed_than_is_booked_by_requests_at_one_moment() {
    let mut cluster = lose_r2("Two operators free 8 of 10 at one moment, at two sites.");
    let asked = [R0, R1].map(|site| cluster.free(site, "vm", 8));
    cluster.advance(PATIENCE);
    let outcomes = asked.map(|free| cluster.outcome(free));
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    assert!(outcomes.contains(&Err(not_booked(8, 10, 8))), "{outcomes:?}");
    assert_eq!(cluster.all_tokens(), [has(18, 2), has(10, 0)]);
}

/// Schedule. Of 30 tokens r2 has 10, and is declared lost: 10 are booked as held, at r0. Clients of r1 hold the 10 of r1; the lost site had given out
/// none.
///
/// 1. An operator frees the 10 at r0.
/// 2. The answer is not heard, and the operator, or another one, frees them at r1.
/// 3. A client acquires 30: if they were freed twice, 10 of those that clients of r1 hold would be among these.
#[test]
fn no_more_is_freed_at_two_sites_than_is_booked() {
    let mut cluster = Cluster::new(3, "An operator frees what is booked at one site, and then at another.");
    cluster.create_vm(30, Majority);
    cluster.acquire(R1, "vm", 10);
    cluster.kill(R2);
    cluster.declare_lost(R0, R2);
    let free = cluster.free(R0, "vm", 10);
    cluster.advance(SECOND);
    assert!(cluster.outcome(free).is_ok());
    let again = cluster.free(R1, "vm", 10);
    cluster.advance(PATIENCE);
    // The first of them has the tokens of all sites brought together, and may be refused for that.
    let acquired: Vec<bool> = (0..3)
        .map(|_| {
            let all = cluster.acquire(R0, "vm", 30);
            cluster.advance(PATIENCE);
            cluster.outcome(all).is_ok()
        })
        .collect();
    let freed = cluster.outcome(again);
    assert!(!acquired.contains(&true), "clients of r1 hold 10, and 30 more are acquired, of 30 in all; freed at r1: {freed:?}");
    assert_eq!(freed, Err(not_booked(10, 10, 10)));
}

/// The site that was asked dies at any moment of it.
#[test]
fn a_request_that_is_repeated_at_another_site_frees_once() {
    for dies_after in 0..16 {
        let mut cluster = Cluster::new(5, "");
        cluster.create_vm(50, Majority);
        cluster.kill(R3);
        cluster.declare_lost(R0, R3);
        cluster.free_as(R1, "vm", 4, "of-r3");
        cluster.deliver(dies_after);
        cluster.kill(R1);
        let again = cluster.free_as(R2, "vm", 4, "of-r3");
        cluster.advance(PATIENCE);
        assert!(cluster.outcome(again).is_ok(), "r1 dies after {dies_after} messages: {:?}", cluster.outcome(again));
        cluster.start(R1);
        cluster.advance(PATIENCE);
        let held: u64 = cluster.all_tokens().iter().map(|has| has.held).sum();
        assert_eq!(held, 6, "r1 dies after {dies_after} messages");
        let other = cluster.free_as(R4, "vm", 5, "of-r3");
        assert_eq!(cluster.outcome(other), Err(Refusal::IdReused("of-r3".into())));
    }
}

/// Schedule. Of 50 tokens each of five sites has 10.
///
/// 1. r3 is lost: 10 are booked as held, at r0. An operator frees them at r1.
/// 2. r0 is lost as well: the new heir r1 has as many booked as held as r0 has then. What was freed before is none of that.
/// 3. The operator frees what r0 had, at r1.
#[test]
fn what_was_freed_before_another_heir_does_not_count_against_what_is_booked_for_it() {
    let mut cluster = Cluster::new(5, "A site is lost, and what it had is freed; then its heir is lost.");
    cluster.create_vm(50, Majority);
    cluster.kill(R3);
    cluster.declare_lost(R4, R3);
    let free = cluster.free(R1, "vm", 10);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(free).is_ok());
    cluster.kill(R0);
    cluster.declare_lost(R4, R0);
    cluster.advance(PATIENCE);
    let get = cluster.get(R1, "vm", Read::Exact);
    cluster.advance(SECOND);
    let info = cluster.info(get);
    assert_eq!(info.held(), info.booked, "all that is held now is what was booked now: {info:?}");
    let free = cluster.free(R1, "vm", info.booked);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(free).is_ok(), "{:?}; {info:?}", cluster.outcome(free));
    let more = cluster.free(R4, "vm", 1);
    assert_eq!(cluster.outcome(more), Err(not_booked(1, info.booked, info.booked)));
}

#[test]
fn nothing_is_freed_before_it_is_booked_what_all_lost_sites_have() {
    let mut cluster = Cluster::new(5, "The heir of a lost site is lost, and the others are not counted yet.");
    cluster.create_vm(50, Majority);
    cluster.kill(R3);
    cluster.declare_lost(R4, R3);
    cluster.kill(R0);
    cluster.hold(is_of_a_count);
    cluster.declare_lost(R4, R0);
    let free = cluster.free(R1, "vm", 10);
    assert!(matches!(cluster.outcome(free), Err(Refusal::Unavailable(_))), "{:?}", cluster.outcome(free));
}

/// A client of r1 releases at r0: that is taken of the 10 that are booked there, and those of r1 stay held.
fn moved_to_r1(cluster: &mut Cluster) {
    cluster.acquire(R1, "vm", 10);
    let release = cluster.release(R0, "vm", 10);
    cluster.advance(SECOND);
    assert!(cluster.outcome(release).is_ok());
    assert_eq!(cluster.all_tokens(), [has(20, 0), has(0, 10)]);
}

#[test]
fn what_is_freed_is_taken_back_wherever_it_is_held() {
    let mut cluster = lose_r2("Of what is booked for a lost site all is held at another site when it is freed.");
    moved_to_r1(&mut cluster);
    let free = cluster.free(R1, "vm", 10);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(free).is_ok());
    let all = cluster.acquire(R1, "vm", 30);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(all).is_ok(), "{:?}", cluster.all_tokens());
}

/// Schedule. r0 and r1 hold 10 each, and r2 has 10 left.
///
/// 1. A client of r0 releases 5 at r2. r2 leads a list of `any`, by which it gets 5 that are held and gives more that are left; it serves the client,
///    and is lost before it can tell the others.
/// 2. For them the list is dead: r2 has no more than it had. r1 holds 5 still that r2 has got, and clients 15 of 30.
#[test]
fn what_was_released_at_a_lost_site_before_the_others_knew_may_be_freed() {
    let mut cluster = Cluster::new(3, "Tokens that are held are exchanged with a site that is lost before the others know.");
    cluster.create_vm(30, Any);
    cluster.acquire(R0, "vm", 10);
    cluster.acquire(R1, "vm", 10);
    cluster.settle();
    cluster.hold(is_decided);
    let release = cluster.release(R2, "vm", 5);
    cluster.settle();
    assert!(cluster.outcome(release).is_ok());
    cluster.kill(R2);
    cluster.lose(is_decided);
    cluster.let_go();
    cluster.declare_lost(R0, R2);
    cluster.advance(PATIENCE);
    assert_eq!(cluster.all_tokens(), [has(0, 20), has(0, 10)]);
    let more = cluster.free(R1, "vm", 16);
    assert_eq!(cluster.outcome(more), Err(not_booked(16, 15, 0)));
    let free = cluster.free(R1, "vm", 15);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(free).is_ok());
    assert_eq!(cluster.all_tokens().iter().map(|has| has.left).sum::<u64>(), 15);
}

#[test]
fn what_is_freed_and_held_nowhere_is_not_taken_from_later_clients() {
    let mut cluster = lose_r2("Clients of a lost site have released what is booked for it elsewhere, and an operator frees it as well.");
    moved_to_r1(&mut cluster);
    let release = cluster.release(R1, "vm", 10);
    cluster.advance(SECOND);
    assert!(cluster.outcome(release).is_ok());
    let free = cluster.free(R0, "vm", 10);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(free).is_ok(), "as many are booked");
    let acquire = cluster.acquire(R0, "vm", 10);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(acquire).is_ok());
    let held: u64 = cluster.all_tokens().iter().map(|has| has.held).sum();
    assert_eq!(held, 10, "{:?}", cluster.all_tokens());
}

/// What was freed is taken back once more when the limit changes, with a bug: from a client that holds it.
#[test]
fn tokens_freed_again_whenever_the_quota_changes_are_caught() {
    use rhumb_core::Rules;
    use rhumb_quota::planted::Planted;
    let held = |make: fn(rhumb_quota::Site) -> rhumb_quota::Site| {
        let mut cluster = lose_r2_with("", make);
        cluster.free(R0, "vm", 4);
        cluster.advance(SECOND);
        cluster.set_limit(R0, 60);
        cluster.advance(SECOND);
        cluster.tokens(R0, "vm").held
    };
    assert_eq!(held(|site| site), 6);
    assert_eq!(held(|site| site.with_rules(Rules::breaking(Planted::FreedAgain))), 2, "clients of the lost site may hold 6");
}

/// In a quarter of as many quotas as there may be, an operator has freed tokens of a lost site 64 times, under long ids. The catalog remembers the
/// last of them.
#[test]
fn the_catalog_fits_a_message_with_all_request_ids() {
    let mut definitions = Definitions::default();
    let mut make = |change: Change| definitions.apply(&change).expect("made");
    let quotas = QUOTAS_MAX / 4;
    let named = |number: usize| name(&format!("q{number}"));
    (0..quotas).for_each(|number| make(Change::Create { name: named(number), spec: Spec::new(300) }));
    make(Change::Lost { loss: Loss { site: R2, rank: 2 }, of: 3 });
    let counted = (1..=quotas as u64).map(|id| (QuotaId(id), Counted::default())).collect();
    make(Change::Book { losses: 1, counted });
    for number in 0..quotas {
        for request in 0..64 {
            let long = format!("{:-<REQUEST_ID_BYTES_MAX$}", format!("{number}/{request}"));
            let id = RequestKey::new(long).expect("an id");
            make(Change::Free { quota: QuotaId(number as u64 + 1), name: named(number), amount: 1, id: Some(id) });
        }
    }
    let bytes = record::encoded_bytes(&Note::Catalog(catalog::Note::State { slot: 1, definitions }));
    assert!(bytes <= MESSAGE_BYTES_MAX, "a site that is behind is told {bytes} bytes, of {MESSAGE_BYTES_MAX}");
}

/// True for what r1 sends to have a change of the catalog made.
fn is_proposed_by_r1(envelope: &Envelope) -> bool {
    use catalog::Promise::{Accept, Prepare};
    envelope.from == R1 && matches!(envelope.body, Body::Promise(Promise::Catalog(Prepare { .. } | Accept { .. })))
}

/// Schedule. An operator frees 4 of vm at r1, and what r1 proposes is late. Meanwhile vm is dropped and made again, and r4 is lost, whose clients hold
/// all 10 that it had of the new one.
#[test]
fn what_is_freed_is_of_the_quota_that_had_the_name_when_it_was_asked_for() {
    let mut cluster = Cluster::new(5, "Tokens are freed of a quota that is dropped and made again meanwhile.");
    cluster.create_vm(50, Majority);
    cluster.kill(R3);
    cluster.declare_lost(R0, R3);
    cluster.hold(is_proposed_by_r1);
    let free = cluster.free_as(R1, "vm", 4, "of-r3");
    cluster.drop_quota(R0, "vm");
    cluster.create_vm(50, Majority);
    cluster.acquire(R4, "vm", 10);
    cluster.settle();
    cluster.kill(R4);
    cluster.declare_lost(R0, R4);
    cluster.advance(SECOND * 3);
    assert_eq!(cluster.tokens(R0, "vm").held, 10, "booked for r4");
    cluster.let_go();
    cluster.advance(PATIENCE);
    assert_eq!(cluster.tokens(R0, "vm").held, 10, "clients of r4 hold these; freed: {:?}", cluster.outcome(free));
}

/// Schedule. Of 50 tokens each of five sites has 10.
///
/// 1. r3 is lost: 10 are booked as held, at r0. A client of r1 releases its 10 at r0, so these 10 are held at r1 now.
/// 2. An operator frees 10. The heir r0 is to take back the 10 of r1, and is lost before it can.
/// 3. r1 is the heir. No client holds any token; the operator frees all that is booked.
#[test]
fn what_was_freed_and_not_found_before_its_heir_was_lost_is_freed() {
    let mut cluster = Cluster::new(5, "The heir of a lost site is lost before it has found what was freed.");
    cluster.create_vm(50, Majority);
    cluster.kill(R3);
    cluster.declare_lost(R4, R3);
    cluster.acquire(R1, "vm", 10);
    cluster.release(R0, "vm", 10);
    assert_eq!([R0, R1].map(|site| cluster.tokens(site, "vm")), [has(20, 0), has(0, 10)]);
    cluster.hold(is_of_a_redistribution);
    let free = cluster.free(R1, "vm", 10);
    cluster.advance(SECOND);
    assert!(cluster.outcome(free).is_ok());
    cluster.kill(R0);
    cluster.lose(is_of_a_redistribution);
    cluster.let_go();
    cluster.declare_lost(R4, R0);
    cluster.advance(PATIENCE);
    let get = cluster.get(R1, "vm", Read::Exact);
    cluster.advance(SECOND);
    let booked = cluster.info(get).booked;
    let free = cluster.free(R1, "vm", booked);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(free).is_ok(), "{:?}", cluster.outcome(free));
    let held: u64 = cluster.all_tokens().iter().map(|has| has.held).sum();
    assert_eq!(held, 0, "no client holds any, and all {booked} that are booked are freed");
}
