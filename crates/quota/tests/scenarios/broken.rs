//! Faults of quotas that are shown and not mended yet. Each test says what should hold, and fails.

use crate::support::client::has;
use crate::support::messages::{is_accept_ok, is_of_a_count, is_of_a_redistribution, is_stand, is_stood};
use crate::support::{Cluster, Envelope, R0, R1, R2, R3, R4};
use rhumb_core::{Body, SiteId, Span};
use rhumb_quota::info::Read;
use rhumb_quota::message::{Note, Promise};
use rhumb_quota::name::Name;
use rhumb_quota::request::Request;
use rhumb_quota::spec::ProtocolKind::{Any, Majority};
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

fn held(cluster: &Cluster, quota: &str, sites: &[SiteId]) -> u64 {
    sites.iter().map(|site| cluster.tokens(*site, quota).held).sum()
}

/// Schedule. Of 50 tokens each of five sites has 10.
///
/// 1. r3 is lost: 10 are booked as held, at r0. A client of r1 releases its 10 at r0, so these 10 are held at r1 now.
/// 2. An operator frees 10. The heir r0 is to take back the 10 of r1, and is lost before it can.
/// 3. r1 is the heir. No client holds any token; the operator frees all that is booked.
#[test]
#[ignore = "open: freed tokens that the heir has not found stay held once it is lost"]
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
    assert_eq!(held(&cluster, "vm", &[R1, R2, R4]), 0, "no client holds any, and all {booked} that are booked are freed");
}

/// Schedule. Clients hold 4 of team at r1 and 4 at r2: as many of org as well.
///
/// 1. r1 is cut off. team is dropped, and after that r4 is declared lost. r2 hears of the one and then of the other.
/// 2. r1 is heard again, and is told of both at once.
#[test]
#[ignore = "open: what a dropped quota gives back depends on how a site hears of the catalog"]
fn a_site_that_hears_of_a_drop_and_a_later_loss_at_once_gives_back_as_the_others_do() {
    let mut cluster = Cluster::new(5, "A quota is dropped, and then a site is declared lost; another one hears of both at once.");
    cluster.create("org", Spec::new(50));
    cluster.create("team", below("org"));
    cluster.acquire(R1, "team", 4);
    cluster.acquire(R2, "team", 4);
    cluster.settle();
    cluster.cut(R1.region);
    cluster.drop_quota(R0, "team");
    cluster.kill(R4);
    cluster.declare_lost(R0, R4);
    cluster.heal();
    cluster.advance(PATIENCE);
    assert_eq!([R1, R2].map(|site| cluster.tokens(site, "org").held), [0, 0], "nobody holds any of org but clients of r4");
}

/// `team` stands below `org`, and that below `root`. Schedule.
///
/// 1. A client acquires 4 of team at r0; one of org acquires 4 at r1 and releases them at r0. So org and root are held at r1.
/// 2. team is dropped: r0 is to take back 4 of org and of root, which r1 holds, and cannot reach it.
fn dropped_the_lowest_of_three() -> Cluster {
    let mut cluster = Cluster::new(3, "Two quotas are dropped, one above the other; a site hears of the first alone.");
    cluster.create("root", Spec::new(30));
    cluster.create("org", below("root"));
    cluster.create("team", below("org"));
    cluster.acquire(R0, "team", 4);
    cluster.acquire(R1, "org", 4);
    cluster.release(R0, "org", 4);
    cluster.hold(is_of_a_redistribution);
    cluster.drop_quota(R2, "team");
    cluster.lose(is_of_a_redistribution);
    assert_eq!([R0, R1, R2].map(|site| cluster.tokens(site, "root").held), [0, 4, 0]);
    cluster
}

/// Then org is dropped, while r0 is cut off: r1 gives back the 4 that it holds of org, which r0 counts on in root still.
fn dropped_one_above_the_other_while_r0_is_cut_off() -> Cluster {
    let mut cluster = dropped_the_lowest_of_three();
    cluster.cut(R0.region);
    cluster.drop_quota(R2, "org");
    cluster.let_go();
    cluster.advance(PATIENCE);
    assert_eq!([R0, R1, R2].map(|site| cluster.tokens(site, "root")), [has(10, 0); 3], "r0 asks for them in vain, and rests");
    cluster
}

/// Clients acquire all that is left of `root` at each site, a few tokens at a time. How many they hold.
fn acquire_all_of_root(cluster: &mut Cluster) -> u64 {
    let mut acquired = 0;
    for site in [R0, R1, R2] {
        while cluster.tokens(site, "root").left >= 2 {
            cluster.acquire(site, "root", 2);
            acquired += 2;
        }
    }
    acquired
}

#[test]
#[ignore = "open: two quotas dropped one above the other give back twice while a site is cut off"]
fn clients_hold_no_more_than_the_limit_while_a_site_has_not_heard_of_a_drop() {
    let mut cluster = dropped_one_above_the_other_while_r0_is_cut_off();
    let acquired = acquire_all_of_root(&mut cluster);
    assert!(acquired <= 30, "clients hold {acquired} of 30");
}

/// The same, and r0 is declared lost. What its clients hold is more than it ever had.
#[test]
#[ignore = "open: clients of a lost site may hold more than is booked for it"]
fn clients_of_a_lost_site_hold_no_more_than_is_booked() {
    let mut cluster = dropped_one_above_the_other_while_r0_is_cut_off();
    let acquired = acquire_all_of_root(&mut cluster);
    cluster.kill(R0);
    cluster.declare_lost(R1, R0);
    cluster.advance(PATIENCE);
    let counted = held(&cluster, "root", &[R1, R2]);
    assert!(counted >= acquired, "clients hold {acquired}, and {counted} count as held");
}

/// r0 hears of all but the catalog. It finds no token of root that is held, has that counted, and looks no further. Then it hears that org is dropped:
/// clients hold as many of root again as r0 has not found of org.
#[test]
#[ignore = "open: a count bounds what is taken back although its sites know different quotas below"]
fn what_a_count_says_is_not_found_is_not_held_again() {
    let mut cluster = dropped_the_lowest_of_three();
    cluster.hold(|envelope| envelope.to == R0 && is_of_the_catalog(envelope));
    cluster.drop_quota(R2, "org");
    cluster.advance(PATIENCE);
    cluster.let_go();
    cluster.advance(PATIENCE);
    assert_eq!(held(&cluster, "root", &[R0, R1, R2]), 0, "no client holds any");
}

/// r0 owes 4 tokens of root, as its clients hold more than r1 has left it; r1 has 4 left. r0 is lost before it collects them.
#[test]
#[ignore = "open: what a site owes for dropped quotas is not booked when it is lost"]
fn what_a_lost_site_owed_for_a_dropped_quota_is_not_given_out_again() {
    let mut cluster = dropped_one_above_the_other_while_r0_is_cut_off();
    for _ in 0..7 {
        cluster.acquire(R0, "root", 2);
    }
    cluster.hold(is_of_a_redistribution);
    cluster.heal();
    cluster.advance(SECOND * 3);
    assert_eq!([R0, R1, R2].map(|site| cluster.tokens(site, "root")), [has(0, 14), has(10, 0), has(10, 0)]);
    cluster.kill(R0);
    cluster.lose(is_of_a_redistribution);
    cluster.let_go();
    cluster.declare_lost(R1, R0);
    cluster.advance(PATIENCE);
    let counted = held(&cluster, "root", &[R1, R2]);
    assert!(counted >= 14, "clients of r0 hold 14, and {counted} are booked");
}

/// All that is booked for r2 is freed in both quotas: how many tokens clients hold is known again.
#[test]
#[ignore = "open: once a site was lost, a dropped quota gives nothing back, although all that was booked is freed"]
fn a_quota_of_which_all_that_was_booked_is_freed_gives_back_when_it_is_dropped() {
    let mut cluster = Cluster::new(3, "A quota is dropped after all that a lost site had is freed.");
    cluster.create("org", Spec::new(30));
    cluster.create("team", below("org"));
    cluster.kill(R2);
    cluster.declare_lost(R0, R2);
    for quota in ["org", "team"] {
        let free = cluster.free(R0, quota, 10);
        cluster.advance(PATIENCE);
        assert!(cluster.outcome(free).is_ok());
    }
    cluster.acquire(R1, "team", 4);
    cluster.drop_quota(R0, "team");
    cluster.advance(PATIENCE);
    let more = cluster.free(R0, "org", 4);
    assert_eq!(held(&cluster, "org", &[R0, R1]), 0, "no client holds any, and to free them: {:?}", cluster.outcome(more));
}

/// Schedule. r0 counts org for a reader.
///
/// 1. All stand still, holding none, and go on. r2's word of that is late.
/// 2. A client acquires 4 of team at r0; one of org acquires 4 at r1 and releases them at r0. team is dropped: r0 is to take back the 4 of r1.
/// 3. r2's word is there. By this count nobody holds any.
#[test]
#[ignore = "open: a count bounds what is taken back for a drop that came after it"]
fn what_is_taken_back_is_not_bounded_by_an_older_count() {
    let mut cluster = Cluster::new(3, "A quota is dropped between the moment of a count and its outcome.");
    cluster.create("org", Spec::new(30));
    cluster.create("team", below("org"));
    cluster.hold(|envelope| envelope.from == R2 && is_stood(envelope));
    cluster.get(R0, "org", Read::Exact);
    cluster.settle();
    assert_eq!(cluster.under_way(is_stood), 1);
    cluster.acquire(R0, "team", 4);
    cluster.acquire(R1, "org", 4);
    cluster.release(R0, "org", 4);
    cluster.request(R2, Request::Drop { name: name("team") });
    cluster.settle();
    assert_eq!([R0, R1].map(|site| cluster.tokens(site, "org").held), [0, 4]);
    cluster.let_go();
    cluster.advance(PATIENCE);
    assert_eq!(held(&cluster, "org", &[R0, R1, R2]), 0, "no client holds any");
}

/// A list of r3 and r4 waits for r4, which is dead. With `in_doubt` r0 has something counted meanwhile, as too few tokens seem to be held for a
/// release. Whether a client of r0 then gets 15 tokens; r0, r1 and r2 have 10 each.
fn acquired_beside_a_list_that_waits(in_doubt: bool) -> bool {
    let mut cluster = Cluster::new(5, "A site in doubt cannot have the tokens counted, as a list of two others waits for a dead member.");
    cluster.create_vm(50, Any);
    cluster.hold(is_of_a_count);
    if in_doubt {
        cluster.release(R0, "vm", 5);
        cluster.settle();
        assert_eq!(cluster.under_way(is_stand), 4);
    }
    cluster.hold(|envelope| {
        let of_others = is_of_a_redistribution(envelope) && envelope.from == R3 && envelope.to != R4;
        is_of_a_count(envelope) || of_others || is_accept_ok(envelope)
    });
    cluster.acquire(R3, "vm", 15);
    cluster.settle();
    assert_eq!(cluster.under_way(is_accept_ok), 1, "r4 has the list");
    cluster.kill(R4);
    cluster.lose(is_of_a_redistribution);
    cluster.let_go();
    cluster.advance(PATIENCE);
    let acquire = cluster.acquire(R0, "vm", 15);
    cluster.advance(PATIENCE);
    cluster.outcome(acquire).is_ok()
}

#[test]
#[ignore = "open: a site in doubt leads no redistribution while no count can end"]
fn a_doubt_that_no_count_can_settle_stops_no_redistribution() {
    assert!(acquired_beside_a_list_that_waits(false));
    assert!(acquired_beside_a_list_that_waits(true));
}

/// r0 is to take back 4 of org, which r1 holds, and r1 is down. A client acquires 4 at r0, and releases them there.
#[test]
#[ignore = "open: a site takes back what its own clients have just acquired, and cannot serve their release"]
fn what_was_acquired_at_a_site_may_be_released_there() {
    let mut cluster = Cluster::new(3, "A client acquires and releases at a site that is to take tokens back.");
    cluster.create("org", Spec::new(30));
    cluster.create("team", below("org"));
    cluster.acquire(R0, "team", 4);
    cluster.acquire(R1, "org", 4);
    cluster.release(R0, "org", 4);
    cluster.settle();
    cluster.kill(R1);
    cluster.drop_quota(R2, "team");
    cluster.advance(PATIENCE);
    let acquire = cluster.acquire(R0, "org", 4);
    cluster.advance(SECOND);
    assert!(cluster.outcome(acquire).is_ok());
    let release = cluster.release(R0, "org", 4);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(release).is_ok(), "{:?}", cluster.outcome(release));
}

/// Schedule. 10 of team are held at r0, and of org above it 7 at r1, 3 of them by a client of org, and 6 at r2.
///
/// 1. r2 is down. team is dropped: r0 is to take back 10 of org, of which it can reach 4.
/// 2. The client of org releases its 3 at r0.
#[test]
#[ignore = "open: a release gets no held tokens as long as more are to be taken back than can be reached"]
fn a_release_is_served_before_what_is_taken_back() {
    let mut cluster = Cluster::new(3, "A client releases where more tokens are to be taken back than are in reach.");
    cluster.create("org", Spec::new(30));
    cluster.create("team", below("org"));
    cluster.acquire(R0, "team", 10);
    cluster.acquire(R1, "org", 7);
    cluster.acquire(R2, "org", 6);
    cluster.release(R0, "org", 10);
    cluster.settle();
    assert_eq!([R0, R1, R2].map(|site| cluster.tokens(site, "org").held), [0, 7, 6]);
    cluster.kill(R2);
    cluster.drop_quota(R1, "team");
    let release = cluster.release(R0, "org", 3);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(release).is_ok(), "{:?}; {:?}", cluster.outcome(release), cluster.tokens(R1, "org"));
    assert_eq!(held(&cluster, "org", &[R0, R1]), 0, "clients hold none of these");
}

/// True for all that is said of the catalog.
fn is_of_the_catalog(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Promise(Promise::Catalog(_)) | Body::Note(Note::Catalog(_)))
}
