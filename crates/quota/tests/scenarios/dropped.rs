//! Quotas that are dropped: what clients held of them, they hold of those above them no more.

use crate::support::messages::is_of_a_redistribution;
use crate::support::{Cluster, R0, R1, R2};
use rhumb_core::Span;
use rhumb_quota::name::Name;
use rhumb_quota::spec::Spec;

/// Until whoever waits has its answer.
const PATIENCE: Span = Span::from_secs(12);

fn below(parent: &str) -> Spec {
    Spec { parent: Some(Name::new(parent).expect("a name")), ..Spec::new(30) }
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

/// Each site gives back only what it holds itself, with a bug.
#[cfg(feature = "planted")]
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
    let mut cluster = Cluster::new(3, "A quota is dropped, and the site that is to take back what its clients held dies before it can.");
    cluster.create("org", Spec::new(30));
    cluster.create("team", below("org"));
    hold_team_at_r0_and_org_at_r1(&mut cluster);
    cluster.hold(is_of_a_redistribution);
    cluster.drop_quota(R2, "team");
    assert_eq!(held(&cluster, "org"), [0, 4, 0]);
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
