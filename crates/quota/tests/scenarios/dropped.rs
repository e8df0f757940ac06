//! Quotas that are dropped: how many tokens clients held of them is counted, and so many they hold of those above them no more.

use crate::support::client::has;
use crate::support::messages::{is_of_a_redistribution, is_stood};
use crate::support::{Cluster, Envelope, R0, R1, R2, R3, R4};
use rhumb_core::{Body, SiteId, Span};
use rhumb_quota::catalog::{Change, Definitions, QuotaId};
use rhumb_quota::info::Read;
use rhumb_quota::message::{Note, Promise};
use rhumb_quota::name::Name;
use rhumb_quota::operation::AMOUNT_MAX;
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request};
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

fn org_and_team(regions: usize, about: &str) -> Cluster {
    let mut cluster = Cluster::new(regions, about);
    cluster.create("org", Spec::new(30));
    cluster.create("team", below("org"));
    cluster
}

/// So many of `quota` count as held at these sites.
fn held_at(cluster: &Cluster, quota: &str, sites: &[SiteId]) -> u64 {
    sites.iter().map(|site| cluster.tokens(*site, quota).held).sum()
}

/// Tokens of `quota` that `site` is to take back.
fn returning(cluster: &Cluster, site: SiteId, quota: &str) -> u64 {
    let site = cluster.site(site);
    let id = site.definitions().id(&name(quota)).expect("a quota of that name");
    site.accounts().find(|(found, _)| *found == id).map_or(0, |(_, account)| account.returning)
}

fn held(cluster: &Cluster, quota: &str) -> [u64; 3] {
    [R0, R1, R2].map(|site| cluster.tokens(site, quota).held)
}

/// Schedule. `team` stands below `org`. A client holds 4 of team, acquired at r0: 4 are held of both at r0. Another holds 4 of org, acquired at r1.
///
/// 1. A client of org releases at r0 the 4 that it has acquired at r1. It is served of the 4 that are held at r0; those of r1 stay held there. That is
///    as it should be: tokens have no names.
/// 2. team is dropped. r0 takes 4 of org back, which r1 holds.
fn dropped_where_tokens_have_moved(make: fn(rhumb_quota::Site) -> rhumb_quota::Site) -> Cluster {
    let mut cluster = Cluster::with_sites(
        3,
        "Tokens of a quota are held at one site, and those of the quota above it at another, when the one below is dropped.",
        make,
    );
    cluster.create("org", Spec::new(30));
    cluster.create("team", below("org"));
    hold_team_at_r0_and_org_at_r1(&mut cluster);
    cluster.drop_quota(R2, "team");
    cluster.advance(PATIENCE);
    cluster
}

fn hold_team_at_r0_and_org_at_r1(cluster: &mut Cluster) {
    cluster.acquire(R0, "team", 4);
    cluster.acquire(R1, "org", 4);
    cluster.settle();
    let release = cluster.release(R0, "org", 4);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(release).is_ok());
    assert_eq!((held(cluster, "team"), held(cluster, "org")), ([4, 0, 0], [0, 4, 0]));
}

/// The first time has the tokens of all sites brought together, and may be refused for that.
fn acquire_all_at_r0(cluster: &mut Cluster, quota: &str) {
    let acquired = (0..2).any(|_| {
        let all = cluster.acquire(R0, quota, 30);
        cluster.advance(PATIENCE);
        cluster.outcome(all).is_ok()
    });
    assert!(acquired);
}

#[test]
fn a_quota_that_is_dropped_gives_back_all_that_its_clients_held() {
    let mut cluster = dropped_where_tokens_have_moved(|site| site);
    assert_eq!(held(&cluster, "org"), [0; 3], "no client holds any");
    acquire_all_at_r0(&mut cluster, "org");
    assert_eq!(held(&cluster, "org"), [30, 0, 0], "nothing is taken back twice");
}

/// What other sites hold is left there, with a bug.
#[test]
fn tokens_left_held_above_a_quota_that_is_dropped_are_caught() {
    use rhumb_core::Rules;
    use rhumb_quota::planted::Planted;
    let cluster = dropped_where_tokens_have_moved(|site| site.with_rules(Rules::breaking(Planted::HeldLeftAbove)));
    assert_eq!(held(&cluster, "org"), [0, 4, 0], "no client holds any");
}

/// A site that is to take tokens back of those above remembers that over a crash.
#[test]
fn what_is_to_be_taken_back_is_on_disk() {
    let mut cluster = org_and_team(3, "A quota is dropped, and the site that is to take back what its clients held dies before it can.");
    hold_team_at_r0_and_org_at_r1(&mut cluster);
    cluster.hold(is_of_a_redistribution);
    cluster.drop_quota(R2, "team");
    assert_eq!((held(&cluster, "org"), returning(&cluster, R0, "org")), ([0, 4, 0], 4));
    cluster.kill(R0);
    cluster.let_go();
    cluster.start(R0);
    cluster.advance(PATIENCE);
    assert_eq!(held(&cluster, "org"), [0; 3]);
}

/// What r1 holds of org counts for the client of team as well as for org's when both are dropped: it is given back once.
#[test]
fn quotas_dropped_one_after_the_other_give_back_once() {
    let mut cluster = Cluster::new(3, "A quota is dropped, and the one above it before the sites have found what its clients held.");
    cluster.create("root", Spec::new(30));
    cluster.create("org", below("root"));
    cluster.create("team", below("org"));
    hold_team_at_r0_and_org_at_r1(&mut cluster);
    cluster.acquire(R2, "root", 8);
    cluster.hold(is_of_a_redistribution);
    cluster.drop_quota(R2, "team");
    cluster.drop_quota(R2, "org");
    cluster.let_go();
    cluster.advance(PATIENCE);
    assert_eq!(held(&cluster, "root"), [0, 0, 8], "a client of root holds these");
}

/// r2 is away: how many tokens of team clients hold there nobody can say, so org gets none back until it is there again.
#[test]
fn a_dropped_quota_ends_once_all_sites_were_counted_and_its_name_is_free_at_once() {
    let mut cluster = org_and_team(3, "A quota is dropped while a site is away.");
    cluster.acquire(R1, "team", 4);
    cluster.acquire(R2, "team", 3);
    cluster.settle();
    cluster.kill(R2);
    cluster.drop_quota(R0, "team");
    let late = cluster.acquire(R0, "team", 1);
    assert_eq!(cluster.outcome(late), Err(Refusal::Unknown(name("team"))));
    cluster.create("team", below("org"));
    cluster.acquire(R0, "team", 2);
    cluster.advance(PATIENCE);
    assert_eq!(held_at(&cluster, "org", &[R0, R1]), 6, "2 of these are clients' of the new one");
    let list = cluster.request(R0, Request::List);
    cluster.settle();
    let Some(Answer::Listed(infos)) = cluster.answer(list) else { panic!("a list") };
    assert_eq!(infos.iter().map(|info| info.name.as_str()).collect::<Vec<_>>(), ["org", "team"]);
    cluster.start(R2);
    cluster.advance(PATIENCE);
    assert_eq!(["org", "team"].map(|quota| held_at(&cluster, quota, &[R0, R1, R2])), [2, 2], "clients of the new one hold these");
}

#[test]
fn who_waits_for_a_quota_that_is_dropped_is_refused() {
    let mut cluster = org_and_team(3, "A quota is dropped, for which a client waits and another reads.");
    cluster.hold(is_of_a_redistribution);
    let acquire = cluster.acquire(R0, "team", 20);
    cluster.drop_quota(R1, "team");
    assert_eq!(cluster.outcome(acquire), Err(Refusal::Unknown(name("team"))));
    cluster.let_go();
    let all = cluster.acquire(R0, "org", 20);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(all).is_ok(), "{:?}", cluster.outcome(all));
}

/// r0 is to take back 4 of org, which r1 holds, and is lost before it can: nobody knows that it has not.
#[test]
fn what_was_given_back_and_not_found_before_its_heir_was_lost_may_be_freed() {
    let mut cluster = org_and_team(5, "A quota ends, and the site that is to take back what its clients held is lost before it can.");
    cluster.acquire(R0, "team", 4);
    cluster.acquire(R1, "org", 4);
    cluster.release(R0, "org", 4);
    cluster.settle();
    assert_eq!([R0, R1].map(|site| cluster.tokens(site, "org")), [has(6, 0), has(2, 4)]);
    cluster.hold(is_of_a_redistribution);
    cluster.drop_quota(R2, "team");
    assert_eq!(returning(&cluster, R0, "org"), 4);
    cluster.kill(R0);
    cluster.lose(is_of_a_redistribution);
    cluster.let_go();
    cluster.declare_lost(R4, R0);
    cluster.advance(PATIENCE);
    let get = cluster.get(R1, "org", Read::Exact);
    cluster.advance(SECOND);
    let info = cluster.info(get);
    assert_eq!((info.held(), info.booked), (6 + 4, 6 + 4), "what r0 had left, and what it had not found");
    let free = cluster.free(R1, "org", info.booked);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(free).is_ok());
    assert_eq!(held_at(&cluster, "org", &[R1, R2, R3, R4]), 0);
}

/// Schedule. Clients hold 4 of team at r1 and 4 at r2: as many of org as well.
///
/// 1. r1 is cut off. team is dropped, and after that r4 is declared lost. r2 hears of the one and then of the other.
/// 2. r1 is heard again, and is told of both at once.
#[test]
fn a_site_that_hears_of_a_drop_and_a_later_loss_at_once_gives_back_as_the_others_do() {
    let mut cluster = org_and_team(5, "A quota is dropped, and then a site is declared lost; another one hears of both at once.");
    cluster.acquire(R1, "team", 4);
    cluster.acquire(R2, "team", 4);
    cluster.settle();
    cluster.cut(R1.region);
    cluster.drop_quota(R0, "team");
    cluster.kill(R4);
    cluster.declare_lost(R0, R4);
    cluster.heal();
    cluster.advance(PATIENCE);
    assert_eq!(held_at(&cluster, "org", &[R0, R1, R2, R3]), 6, "nobody holds any of org but clients of r4");
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

/// Then org is dropped, while r0 is cut off: it cannot be counted, and gives nothing back.
fn dropped_one_above_the_other_while_r0_is_cut_off() -> Cluster {
    let mut cluster = dropped_the_lowest_of_three();
    cluster.cut(R0.region);
    cluster.drop_quota(R2, "org");
    cluster.let_go();
    cluster.advance(PATIENCE);
    assert_eq!([R0, R1, R2].map(|site| cluster.tokens(site, "root")), [has(10, 0), has(6, 4), has(10, 0)]);
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
fn clients_hold_no_more_than_the_limit_while_a_site_has_not_heard_of_a_drop() {
    let mut cluster = dropped_one_above_the_other_while_r0_is_cut_off();
    let acquired = acquire_all_of_root(&mut cluster);
    assert!(acquired <= 30, "clients hold {acquired} of 30");
    cluster.heal();
    cluster.advance(PATIENCE);
    cluster.advance(PATIENCE);
    assert_eq!(held_at(&cluster, "root", &[R0, R1, R2]), acquired, "what clients held of org and team is given back");
}

/// The same, and r0 is declared lost.
#[test]
fn clients_of_a_lost_site_hold_no_more_than_is_booked() {
    let mut cluster = dropped_one_above_the_other_while_r0_is_cut_off();
    let acquired = acquire_all_of_root(&mut cluster);
    cluster.kill(R0);
    cluster.declare_lost(R1, R0);
    cluster.advance(PATIENCE);
    let counted = held_at(&cluster, "root", &[R1, R2]);
    assert!(counted >= acquired, "clients hold {acquired}, and {counted} count as held");
}

/// True for all that is said of the catalog.
fn is_of_the_catalog(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Promise(Promise::Catalog(_)) | Body::Note(Note::Catalog(_)))
}

/// r0 hears of all but the catalog, and takes back what it is to of root. Then it hears that org is dropped.
#[test]
fn a_site_that_hears_late_of_a_drop_takes_back_no_more_than_is_held() {
    let mut cluster = dropped_the_lowest_of_three();
    cluster.hold(|envelope| envelope.to == R0 && is_of_the_catalog(envelope));
    cluster.drop_quota(R2, "org");
    cluster.advance(PATIENCE);
    cluster.let_go();
    cluster.advance(PATIENCE);
    assert_eq!(held(&cluster, "root"), [0; 3], "no client holds any");
    acquire_all_at_r0(&mut cluster, "root");
    assert_eq!(held(&cluster, "root"), [30, 0, 0], "nothing is taken back twice");
}

/// All that is booked for r2 is freed in both quotas: how many tokens clients hold is known again.
#[test]
fn a_quota_of_which_all_that_was_booked_is_freed_gives_back_when_it_is_dropped() {
    let mut cluster = org_and_team(3, "A quota is dropped after all that a lost site had is freed.");
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
    assert_eq!(held_at(&cluster, "org", &[R0, R1]), 0, "no client holds any");
}

/// True for what is said in counts of `org`, which was made first.
fn is_of_org(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Promise(Promise::Count(QuotaId(1), _)) | Body::Note(Note::Count(QuotaId(1), _)))
}

/// Schedule. r0 counts org for a reader.
///
/// 1. All stand still, holding none, and go on. r2's word of that is late.
/// 2. A client acquires 4 of team at r0; one of org acquires 4 at r1 and releases them at r0. team is dropped: r0 is to take back the 4 of r1.
/// 3. r2's word is there. By this count nobody holds any.
#[test]
fn what_is_taken_back_is_not_bounded_by_an_older_count() {
    let mut cluster = org_and_team(3, "A quota ends between the moment of a count and its outcome.");
    cluster.hold(|envelope| envelope.from == R2 && is_stood(envelope) && is_of_org(envelope) || is_of_a_redistribution(envelope));
    cluster.get(R0, "org", Read::Exact);
    cluster.settle();
    assert_eq!(cluster.under_way(is_stood), 1);
    cluster.acquire(R0, "team", 4);
    cluster.acquire(R1, "org", 4);
    cluster.release(R0, "org", 4);
    cluster.request(R2, Request::Drop { name: name("team") });
    cluster.advance(Span::from_millis(200));
    assert_eq!((held(&cluster, "org"), returning(&cluster, R0, "org")), ([0, 4, 0], 4));
    assert_eq!(cluster.under_way(is_stood), 1, "the count of org is not over");
    cluster.let_go();
    cluster.advance(PATIENCE);
    assert_eq!(held(&cluster, "org"), [0; 3], "no client holds any");
}

/// r0 is to take back 4 of org, which r1 holds, and r1 is down. A client acquires 4 at r0, and releases them there.
#[test]
fn what_was_acquired_at_a_site_may_be_released_there() {
    let mut cluster = org_and_team(3, "A client acquires and releases at a site that is to take tokens back.");
    hold_team_at_r0_and_org_at_r1(&mut cluster);
    cluster.hold(is_of_a_redistribution);
    cluster.drop_quota(R2, "team");
    cluster.kill(R1);
    cluster.let_go();
    cluster.advance(PATIENCE);
    assert_eq!(returning(&cluster, R0, "org"), 4);
    let acquire = cluster.acquire(R0, "org", 4);
    cluster.advance(SECOND);
    assert!(cluster.outcome(acquire).is_ok());
    // r0 asks r2 for what it is to take back meanwhile.
    cluster.advance(PATIENCE * 3);
    let release = cluster.release(R0, "org", 4);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(release).is_ok(), "{:?}", cluster.outcome(release));
    cluster.start(R1);
    cluster.advance(PATIENCE * 3);
    assert_eq!(held(&cluster, "org"), [0; 3]);
}

/// Schedule. 10 of team are held at r0, and of org above it 7 at r1, 3 of them by a client of org, and 6 at r2.
///
/// 1. team is dropped: r0 is to take back 10 of org. Before it can, r2 is down: it can reach 4 of these.
/// 2. The client of org releases its 3 at r0.
#[test]
fn a_release_is_served_before_what_is_taken_back() {
    let mut cluster = org_and_team(3, "A client releases where more tokens are to be taken back than are in reach.");
    cluster.acquire(R0, "team", 10);
    cluster.acquire(R1, "org", 7);
    cluster.acquire(R2, "org", 6);
    cluster.release(R0, "org", 10);
    cluster.settle();
    assert_eq!(held(&cluster, "org"), [0, 7, 6]);
    cluster.hold(is_of_a_redistribution);
    cluster.drop_quota(R1, "team");
    assert_eq!(returning(&cluster, R0, "org"), 10);
    cluster.kill(R2);
    cluster.lose(is_of_a_redistribution);
    cluster.let_go();
    let release = cluster.release(R0, "org", 3);
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(release).is_ok(), "{:?}; {:?}", cluster.outcome(release), cluster.tokens(R1, "org"));
    assert_eq!(held_at(&cluster, "org", &[R0, R1]), 0, "clients hold none of these");
}

/// Schedule. r0 is to take back 4 of org, which r1 holds. A client acquires 4 at r0 and releases them at r1: these were the last that r1 held.
#[test]
fn what_no_other_site_holds_is_taken_back_where_it_is_missing() {
    let mut cluster = org_and_team(3, "What a site is to take back has come to it by clients that acquired there and released elsewhere.");
    hold_team_at_r0_and_org_at_r1(&mut cluster);
    cluster.hold(is_of_a_redistribution);
    cluster.drop_quota(R2, "team");
    // r0 asks for them in vain, and rests.
    while cluster.tokens(R0, "org").offered > 0 {
        cluster.lose(is_of_a_redistribution);
        cluster.advance(Span::from_millis(100));
    }
    cluster.acquire(R0, "org", 4);
    cluster.release(R1, "org", 4);
    assert_eq!((held(&cluster, "org"), returning(&cluster, R0, "org")), ([4, 0, 0], 4));
    cluster.let_go();
    cluster.advance(PATIENCE);
    assert_eq!((held(&cluster, "org"), returning(&cluster, R0, "org")), ([0; 3], 0));
}

/// A quota as large as one may be is made below another again and again; clients acquire all of it, and it is dropped.
#[test]
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
#[ignore = "open: what is booked above a dropped quota bounds what may be freed, and is more than that"]
fn no_more_is_freed_above_a_dropped_quota_than_counts_as_held() {
    let mut cluster = org_and_team(3, "A quota is dropped of which tokens are booked, and all that is booked above it is freed.");
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
