//! Lists with members that are lost for ever, and declared so: the others end them alike, and no token is minted.

use crate::support::client::{sum, vm};
use crate::support::messages::{is_accept, is_decided, is_election_ok, is_of_a_redistribution};
use crate::support::{Cluster, Envelope, R0, R1, R2, R3, R4};
use rhumb_core::{SiteId, Span};
use rhumb_quota::list::List;
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::ProtocolKind::{Any, Majority};

const SECOND: Span = Span::from_millis(1_000);
/// Until whoever waits has its answer.
const PATIENCE: Span = Span::from_secs(12);

/// r0 has a list that takes from r1 and r2; r2 is lost before anybody hears whether it has the list.
#[test]
fn a_list_that_takes_from_a_lost_member_is_dead() {
    let mut cluster = Cluster::new(
        3,
        "A list of Avantan[*] waits for a member that is lost, and that gives tokens by it.
        Once the others know of the loss and have told each other so, the list is dead: the lost site has no more than it had.",
    );
    cluster.create_vm(30, Any);
    cluster.narrate("a client of r0 acquires 25; r2 has offered its 10, and dies before the list comes");
    cluster.hold(|envelope| is_accept(envelope) && envelope.to == R2);
    cluster.acquire(R0, "vm", 25);
    cluster.settle();
    cluster.kill(R2);
    cluster.let_go();
    cluster.advance(Span::from_millis(100));
    assert_eq!(cluster.tokens(R1, "vm").offered, 10, "r1 waits");
    cluster.declare_lost(R1, R2);
    cluster.advance(PATIENCE);
    let tokens = cluster.all_tokens();
    assert_eq!((sum(&tokens), tokens[0].held + tokens[1].held), (30, 10), "{tokens:?}");
    cluster.check("a_list_that_takes_from_a_lost_member_is_dead");
}

/// r2 leads a list that gives it 25 tokens, all members have it, and r2 is lost, having perhaps applied it.
fn list_that_gives(make: fn(rhumb_quota::Site) -> rhumb_quota::Site) -> Cluster {
    let mut cluster = Cluster::with_sites(
        3,
        "A list of Avantan[*] gives tokens to its leader, which decides it, gives them out, and is lost before it can tell.
        The others must not end the list as dead: it counts as decided, and what it gave is booked as held.",
        make,
    );
    cluster.create_vm(30, Any);
    cluster.narrate("a client of r2 acquires 25; r2 decides its list, serves it, and dies before it can tell");
    cluster.hold(is_decided);
    let acquire = cluster.acquire(R2, "vm", 25);
    cluster.settle();
    assert!(cluster.outcome(acquire).is_ok());
    cluster.kill(R2);
    cluster.lose(is_decided);
    cluster.let_go();
    cluster.declare_lost(R0, R2);
    cluster.advance(PATIENCE);
    cluster
}

#[test]
fn a_list_that_gives_to_a_lost_member_counts_as_decided() {
    let cluster = list_that_gives(|site| site);
    let tokens = cluster.all_tokens();
    let held = tokens.iter().map(|has| has.held).sum::<u64>();
    assert!(sum(&tokens) == 30 && held >= 25, "{tokens:?}");
    cluster.check("a_list_that_gives_to_a_lost_member_counts_as_decided");
}

/// The same with a bug: the list is dead for the others, and the 25 tokens that r2 gave out are held by nobody.
#[test]
fn a_list_that_is_dead_although_a_lost_member_may_have_got_tokens_by_it_is_caught() {
    use rhumb_core::Rules;
    use rhumb_quota::planted::Planted;
    let cluster = list_that_gives(|site| site.with_rules(Rules::breaking(Planted::LostListDead)));
    let held = cluster.all_tokens().iter().map(|has| has.held).sum::<u64>();
    assert!(held < 25, "the clients of r2 hold 25, and {held} are booked");
}

/// Of five sites r3 and r0 are lost. A list of r3 waits for r0, which has refused it without being heard, and counts as decided; one of r0, with the
/// same offer of r0, is decided, and gives r0 25 tokens.
fn an_offer_in_two_lists(make: fn(rhumb_quota::Site) -> rhumb_quota::Site) -> Cluster {
    let between = |envelope: &Envelope| [(R0, R2), (R2, R0)].contains(&(envelope.from, envelope.to)) && is_of_a_redistribution(envelope);
    let mut cluster = Cluster::with_sites(
        5,
        "A site refuses a list of Avantan[*], unheard, offers the same tokens in another list, and is lost, as the leader of the first list is.
        Both lists give the lost sites more than they put in, so both count as decided. No token is minted or lost by that: each list leaves the lost
        sites no less than it may have left them, and so do both.",
        make,
    );
    cluster.create_vm(50, Any);
    cluster.narrate("a client of r3 acquires 25; r3 chooses r0 and r2, and dies; r0 has not heard its list");
    let to_r0 = |envelope: &Envelope| is_accept(envelope) && envelope.to == R0;
    cluster.hold(move |envelope| to_r0(envelope) || is_election_ok(envelope) && [R1, R4].contains(&envelope.from));
    cluster.acquire(R3, "vm", 25);
    cluster.settle();
    cluster.kill(R3);
    cluster.lose(to_r0);
    cluster.hold(between);
    cluster.narrate("r0 takes its offer back, and r2, which has the list, does not hear that");
    cluster.advance(SECOND * 3);
    assert_eq!([R0, R2].map(|site| cluster.tokens(site, "vm").offered), [0, 10]);
    cluster.declare_lost(R1, R3);
    cluster.narrate("a client of r0 acquires 25; r0 decides a list with r1 and r4, serves it, and is cut off before they hear that");
    cluster.hold(move |envelope| between(envelope) || is_decided(envelope));
    let acquire = cluster.acquire(R0, "vm", 25);
    cluster.settle();
    assert!(cluster.outcome(acquire).is_ok());
    cluster.cut(R0.region);
    cluster.lose(|envelope| between(envelope) || is_decided(envelope));
    cluster.let_go();
    cluster.declare_lost(R1, R0);
    cluster.advance(PATIENCE);
    cluster
}

/// The lists of `vm` that `site` knows to be decided and that hold the first offer of r0.
fn lists_with_the_offer_of_r0(cluster: &Cluster, site: SiteId) -> Vec<List> {
    let site = cluster.site(site);
    let id = site.definitions().id(&vm()).expect("a quota of that name");
    let holds_it = |list: &&List| list.entry(R0).is_some_and(|entry| entry.version == 0);
    site.lists(id).into_iter().filter(holds_it).cloned().collect()
}

#[test]
fn an_offer_of_a_lost_member_in_two_lists_mints_nothing() {
    let mut cluster = an_offer_in_two_lists(|site| site);
    let [first, second] = [R2, R1].map(|site| lists_with_the_offer_of_r0(&cluster, site));
    assert!(first.len() == 1 && second.len() == 1 && first != second, "{first:?} and {second:?}");
    assert_eq!(second, lists_with_the_offer_of_r0(&cluster, R4));
    let (at_r0, others) = (cluster.tokens(R0, "vm"), [R1, R2, R4].map(|site| cluster.tokens(site, "vm")));
    let held = others.iter().map(|has| has.held).sum::<u64>();
    assert_eq!(sum(&others), 50, "{others:?}");
    assert!(at_r0.held == 25 && held >= sum(&[at_r0]) + 10, "r0 has {at_r0:?}, r3 had 10, and {others:?} are held for them");
    cluster.narrate("an operator frees what the client of r0 does not hold, and clients acquire that");
    let free = cluster.free(R1, "vm", held - 25);
    cluster.advance(SECOND);
    assert!(cluster.outcome(free).is_ok());
    let rest = cluster.acquire(R4, "vm", 25);
    cluster.advance(SECOND);
    assert!(cluster.outcome(rest).is_ok());
    let more = cluster.acquire(R2, "vm", 1);
    cluster.advance(SECOND * 3);
    assert_eq!(cluster.outcome(more), Err(Refusal::Exceeded { quota: vm(), wanted: 1 }));
    cluster.check("an_offer_of_a_lost_member_in_two_lists_mints_nothing");
}

/// The same with a bug: both lists are dead for the others, and the 25 tokens that r0 gave out are held by nobody.
#[test]
fn an_offer_in_two_lists_that_are_dead_for_the_others_is_caught() {
    use rhumb_core::Rules;
    use rhumb_quota::planted::Planted;
    let cluster = an_offer_in_two_lists(|site| site.with_rules(Rules::breaking(Planted::LostListDead)));
    let held = [R1, R2, R4].map(|site| cluster.tokens(site, "vm").held).iter().sum::<u64>();
    assert!(held < 25, "the client of r0 holds 25, and {held} are booked");
}

/// What a lost site had is minted again, with a bug: clients hold more than the limit.
#[test]
fn a_lost_share_that_is_given_out_again_is_caught() {
    use rhumb_core::Rules;
    use rhumb_quota::planted::Planted;
    let held = |make: fn(rhumb_quota::Site) -> rhumb_quota::Site| {
        let mut cluster = Cluster::with_sites(3, "", make);
        cluster.create_vm(30, Majority);
        cluster.acquire(R2, "vm", 10);
        cluster.settle();
        cluster.kill(R2);
        cluster.declare_lost(R0, R2);
        let acquire = cluster.acquire(R0, "vm", 30);
        cluster.advance(SECOND);
        cluster.outcome(acquire).map_or(10, |_| 40)
    };
    assert_eq!(held(|site| site), 10);
    assert_eq!(held(|site| site.with_rules(Rules::breaking(Planted::LostShareLeft))), 40, "of 30");
}

#[test]
fn a_list_decided_by_a_majority_is_told_although_it_has_a_lost_member() {
    for dies_after in 0..24 {
        let mut cluster = Cluster::new(3, "A member of a list of Avantan[(n+1)/2] is lost at any moment of it.");
        cluster.create_vm(30, Majority);
        cluster.acquire(R0, "vm", 25);
        cluster.deliver(dies_after);
        cluster.kill(R2);
        cluster.declare_lost(R1, R2);
        cluster.advance(PATIENCE);
        let tokens = cluster.all_tokens();
        assert_eq!(sum(&tokens), 30, "r2 dies after {dies_after} messages: {tokens:?}");
        assert!(tokens.iter().all(|has| has.offered == 0), "{tokens:?}");
    }
}

#[test]
fn the_leader_of_a_list_of_any_members_is_lost_at_any_moment_of_it() {
    for (leader, dies_after) in (0..24).flat_map(|count| [(R0, count), (R1, count), (R2, count)]) {
        let mut cluster = Cluster::new(3, "A site is lost at any moment of a redistribution.");
        cluster.create_vm(30, Any);
        cluster.acquire(leader, "vm", 25);
        cluster.deliver(dies_after);
        let served = cluster.tokens(leader, "vm").held;
        cluster.kill(leader);
        cluster.declare_lost(if leader == R1 { R2 } else { R1 }, leader);
        cluster.advance(PATIENCE);
        let tokens = cluster.all_tokens();
        let held = tokens.iter().map(|has| has.held).sum::<u64>();
        assert!(sum(&tokens) == 30 && held >= served, "{leader} dies after {dies_after} messages: {tokens:?}");
    }
}
