//! Sites that are lost for ever, and declared so: what they had is held by clients for all that is known, until an operator
//! knows better.

use crate::support::client::{Has, has};
use crate::support::messages::{
    is_accept, is_accept_ok, is_booking, is_election_ok, is_of_a_count, is_of_a_redistribution, is_stand, is_stood,
};
use crate::support::{Cluster, Envelope, R0, R1, R2, R3, R4};
use rhumb_core::actor::RequestId;
use rhumb_core::{SiteId, Span};
use rhumb_quota::info::Read;
use rhumb_quota::name::Name;
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request};
use rhumb_quota::spec::ProtocolKind::{Any, Majority};
use rhumb_quota::spec::Spec;

const SECOND: Span = Span::from_millis(1_000);
/// Until whoever waits has its answer.
const PATIENCE: Span = Span::from_secs(12);

fn vm() -> Name {
    Name::new("vm").expect("a name")
}

fn sum(tokens: &[Has]) -> u64 {
    tokens.iter().map(|has| has.left + has.held + has.offered).sum()
}

fn org_and_team(cluster: &mut Cluster) {
    cluster.create("org", Spec::new(30));
    cluster.create("team", Spec { parent: Some(Name::new("org").expect("a name")), ..Spec::new(15) });
}

#[test]
fn what_a_lost_site_had_is_held_until_it_is_freed() {
    let mut cluster = Cluster::new(
        3,
        "A site dies for good with 6 tokens left and 4 held, and is declared lost.
        The others count what they have; what is missing to the limit is booked as held, at the first of them. Its clients
        release what they hold elsewhere, and an operator frees the rest.",
    );
    cluster.create_vm(30, Majority);
    cluster.acquire(R2, "vm", 4);
    cluster.settle();
    cluster.kill(R2);
    cluster.narrate("r1 is told that r2 is lost");
    cluster.declare_lost(R1, R2);
    assert_eq!(cluster.all_tokens(), [has(10, 10), has(10, 0)]);
    cluster.narrate("no more than 20 can be acquired");
    let more = cluster.acquire(R1, "vm", 21);
    cluster.advance(SECOND);
    assert_eq!(cluster.outcome(more), Err(Refusal::Exceeded { quota: vm(), wanted: 21 }));
    cluster.narrate("clients of r2 release their 4 at r1; an operator frees the other 6 there");
    let release = cluster.release(R1, "vm", 4);
    let free = cluster.free(R1, "vm", 6);
    cluster.advance(SECOND);
    assert!(cluster.outcome(release).is_ok() && cluster.outcome(free).is_ok());
    assert_eq!(sum(&cluster.all_tokens()), 30);
    let all = cluster.acquire(R1, "vm", 30);
    cluster.advance(SECOND);
    assert!(cluster.outcome(all).is_ok());
    cluster.check("what_a_lost_site_had_is_held_until_it_is_freed");
}

#[test]
fn a_lost_site_that_lives_covers_what_it_gives_out_and_learns_that_it_is_lost() {
    let mut cluster = Cluster::new(
        3,
        "A site is cut off, alive, and declared lost. It gives out all it has, which the others have booked as held. When it is heard
        again it is told nothing but that it is lost, and refuses whatever is asked of it from then on, in later incarnations too.",
    );
    cluster.create_vm(30, Any);
    cluster.cut(R2.region);
    cluster.declare_lost(R0, R2);
    cluster.narrate("clients of r2 acquire all it has");
    let acquire = cluster.acquire(R2, "vm", 10);
    assert!(cluster.outcome(acquire).is_ok());
    let others = cluster.acquire(R0, "vm", 20);
    cluster.advance(SECOND);
    assert!(cluster.outcome(others).is_ok());
    assert_eq!(cluster.tokens(R0, "vm").held + cluster.tokens(R1, "vm").held, 30, "10 of them for clients of r2");
    cluster.narrate("r2 is heard again");
    cluster.heal();
    let waits = cluster.acquire(R2, "vm", 1);
    cluster.advance(Span::from_secs(2));
    assert_eq!(cluster.outcome(waits), Err(Refusal::DeclaredLost));
    assert!(cluster.site(R2).is_lost());
    cluster.narrate("its clients release at r1");
    let release = cluster.release(R1, "vm", 10);
    cluster.advance(SECOND);
    assert!(cluster.outcome(release).is_ok());
    cluster.kill(R2);
    cluster.start(R2);
    let refused = cluster.acquire(R2, "vm", 1);
    assert_eq!(cluster.outcome(refused), Err(Refusal::DeclaredLost));
    cluster.check("a_lost_site_that_lives_covers_what_it_gives_out_and_learns_that_it_is_lost");
}

/// r0 is to settle what r2 had, and no count that it leads comes to an end; one that r1 leads for a reader does.
#[test]
fn what_a_lost_site_had_is_settled_by_any_sites_count() {
    let mut cluster = Cluster::new(3, "");
    cluster.create_vm(30, Majority);
    cluster.kill(R2);
    cluster.hold(|envelope| envelope.from == R0 && is_stand(envelope));
    cluster.declare_lost(R1, R2);
    // After each of them r0 serves for a while, and waits longer until the next.
    cluster.advance(SECOND * 40);
    assert_eq!(cluster.all_tokens(), [has(10, 0), has(10, 0)]);
    cluster.get(R1, "vm", Read::Exact);
    cluster.advance(PATIENCE);
    assert_eq!(cluster.all_tokens(), [has(10, 10), has(10, 0)]);
}

/// r0 is to settle what r4 had. For 17 s its counts are void, as r1 and r3 are in a redistribution, and it waits longer before each. Then it takes
/// part in another one, which ends.
#[test]
fn what_a_lost_site_had_is_counted_soon_after_redistributions() {
    let mut cluster = Cluster::new(5, "");
    cluster.create_vm(50, Any);
    cluster.kill(R4);
    cluster.hold(|envelope| is_accept_ok(envelope) || is_election_ok(envelope) && envelope.from != R3);
    cluster.acquire(R1, "vm", 15);
    cluster.declare_lost(R0, R4);
    cluster.advance(SECOND * 17);
    assert!([R1, R3].iter().all(|site| cluster.tokens(*site, "vm").offered > 0), "they wait for each other");
    cluster.let_go();
    cluster.settle();
    assert_eq!(cluster.tokens(R0, "vm"), has(10, 0), "nobody has told it that they wait no more");
    cluster.acquire(R2, "vm", 15);
    cluster.advance(SECOND * 3);
    assert_eq!(cluster.tokens(R0, "vm").held, 10, "what r4 had is booked");
}

/// r2 is lost while its clients hold so many of 30, and declared so; these messages are held up.
fn lose_r2(held: u64, holds: fn(&Envelope) -> bool) -> Cluster {
    let mut cluster = Cluster::new(3, "");
    cluster.create_vm(30, Majority);
    cluster.acquire(R2, "vm", held);
    cluster.settle();
    cluster.kill(R2);
    cluster.hold(holds);
    cluster.declare_lost(R1, R2);
    cluster
}

/// What `ask` asks, where clients of r2 hold 10, has all sites counted; while it is not yet sure that they stood still, it is booked what r2 had.
fn booked_in_the_midst_of_a_count(ask: fn(&mut Cluster) -> RequestId) -> (Cluster, RequestId) {
    let mut cluster = lose_r2(10, is_booking);
    // No count follows at once on the one that is to settle the loss.
    cluster.advance(PATIENCE);
    cluster.hold(|envelope| is_booking(envelope) || is_stood(envelope));
    let id = ask(&mut cluster);
    cluster.settle();
    assert_eq!(cluster.all_tokens(), [has(10, 0), has(10, 0)]);
    cluster.hold(is_stood);
    cluster.settle();
    assert_eq!(cluster.all_tokens(), [has(10, 10), has(10, 0)], "it is booked");
    assert!(cluster.under_way(is_stood) > 0 && cluster.waits(id), "the count is under way");
    cluster.let_go();
    cluster.advance(SECOND);
    (cluster, id)
}

#[test]
fn what_was_counted_before_a_booking_says_nothing_of_what_is_held_after_it() {
    let (cluster, read) = booked_in_the_midst_of_a_count(|cluster| cluster.get(R0, "vm", Read::Exact));
    let info = cluster.info(read);
    assert_eq!((info.left(), info.held()), (20, 10), "counted again");
    let (cluster, release) = booked_in_the_midst_of_a_count(|cluster| cluster.release(R1, "vm", 10));
    assert!(cluster.outcome(release).is_ok(), "clients of r2 hold as many");
}

#[test]
fn a_lowered_limit_that_a_lost_site_never_heard_of_is_owed() {
    let mut cluster = Cluster::new(
        3,
        "A site is cut off with 10 of 30 tokens; the limit is lowered to 15, and the site is lost.
        It may have given out its 10, of which 5 are no longer its own: these are collected from the others.",
    );
    cluster.create_vm(30, Majority);
    cluster.cut(R2.region);
    cluster.set_limit(R0, 15);
    cluster.declare_lost(R0, R2);
    cluster.advance(PATIENCE);
    let mut tokens = cluster.all_tokens();
    tokens.truncate(2);
    assert_eq!(sum(&tokens), 15, "{tokens:?}");
    assert_eq!(tokens[0].held, 10, "{tokens:?}");
    cluster.narrate("the limit is raised: the part of r2 goes to r0");
    cluster.set_limit(R1, 60);
    assert_eq!(cluster.tokens(R0, "vm").left + cluster.tokens(R1, "vm").left, 50);
    cluster.check("a_lowered_limit_that_a_lost_site_never_heard_of_is_owed");
}

/// Schedule. Clients hold the 10 of r4; the other four sites have 10 each.
///
/// 1. A client of r0 asks for 31. r0 cannot be heard at r3, so it redistributes the 30 of the others; r4 gets 7 of them, and dies.
/// 2. r4 is declared lost, and after that the list is decided. It has as many members as there are sites still; r3 is none of them.
/// 3. 33 are left at the others.
#[test]
fn a_list_with_a_lost_member_is_not_one_of_all_sites() {
    let mut cluster = Cluster::new(5, "A list has a lost member, lacks another site, and has fewer tokens than somebody wants.");
    cluster.create_vm(50, Majority);
    cluster.acquire(R4, "vm", 10);
    cluster.hold(|envelope| is_accept(envelope) || envelope.to == R3 && is_of_a_redistribution(envelope));
    let acquire = cluster.acquire(R0, "vm", 31);
    cluster.advance(SECOND);
    cluster.kill(R4);
    cluster.request(R1, Request::DeclareLost { site: R4 });
    cluster.settle();
    cluster.hold(|envelope| envelope.to == R3 && is_of_a_redistribution(envelope));
    cluster.settle();
    cluster.let_go();
    cluster.advance(PATIENCE);
    assert!(cluster.outcome(acquire).is_ok(), "{:?}; {:?}", cluster.outcome(acquire), cluster.all_tokens());
}

/// Tokens of the others, after r2 is lost with 10 of 30, the limit is raised by `raises`, and it is settled. The heir is r0.
fn raised_after_a_loss(raises: &[u64]) -> Vec<Has> {
    let mut cluster = lose_r2(4, is_of_a_count);
    raises.iter().for_each(|limit| cluster.set_limit(R1, *limit));
    cluster.let_go();
    cluster.advance(PATIENCE);
    cluster.all_tokens()
}

#[test]
fn what_the_limit_was_raised_by_after_a_loss_is_left() {
    assert_eq!(raised_after_a_loss(&[]), [has(10, 10), has(10, 0)]);
    assert_eq!(raised_after_a_loss(&[60, 60]), [has(30, 10), has(20, 0)]);
    assert_eq!(raised_after_a_loss(&[60, 90]), [has(40, 20), has(30, 0)], "r2's part of 60 is held");
}

#[test]
fn what_the_limit_was_raised_by_before_a_loss_is_held_until_it_is_freed() {
    let mut cluster = Cluster::new(3, "");
    cluster.create_vm(30, Majority);
    cluster.set_limit(R0, 60);
    cluster.acquire(R2, "vm", 20);
    cluster.settle();
    cluster.cut(R2.region);
    cluster.set_limit(R0, 90);
    cluster.declare_lost(R0, R2);
    cluster.advance(PATIENCE);
    assert_eq!([R0, R1].map(|site| cluster.tokens(site, "vm")), [has(30, 30), has(30, 0)], "r2 may have heard of 90");
    let free = cluster.free(R0, "vm", 10);
    cluster.advance(SECOND);
    assert!(cluster.outcome(free).is_ok());
    assert_eq!(cluster.tokens(R0, "vm"), has(40, 20), "which r2 has not");
}

#[test]
fn the_heir_of_a_lost_site_is_lost_as_well() {
    let site = |region| SiteId::new(region, 0);
    let mut cluster = Cluster::new(5, "Of five sites the fourth is lost, then the first, which had its share; a third one cannot be.");
    cluster.create_vm(50, Majority);
    cluster.acquire(R3, "vm", 7);
    cluster.settle();
    cluster.kill(R3);
    cluster.declare_lost(R4, R3);
    assert_eq!(cluster.tokens(R0, "vm"), has(10, 10));
    cluster.kill(R0);
    cluster.declare_lost(R4, R0);
    assert_eq!([R1, R2, R4].map(|site| cluster.tokens(site, "vm")), [has(10, 20), has(10, 0), has(10, 0)]);
    let third = cluster.declares(R4, R1);
    assert!(matches!(third, Some(Answer::Changed(Err(Refusal::Invalid(_))))), "{third:?}");
    assert_eq!(cluster.declares(R4, R0), Some(Answer::Changed(Ok(()))), "once more is no harm");
    assert!(matches!(cluster.declares(R4, site(9)), Some(Answer::Changed(Err(Refusal::Invalid(_))))));
    assert!(matches!(cluster.declares(R4, R4), Some(Answer::Changed(Err(Refusal::Invalid(_))))));
    cluster.set_limit(R2, 100);
    assert_eq!(cluster.tokens(R1, "vm"), has(40, 20), "three parts of the raise are r1's");
    let get = cluster.get(R2, "vm", Read::Exact);
    cluster.advance(SECOND);
    let info = cluster.info(get);
    assert_eq!((info.left(), info.held(), info.booked), (80, 20, 20));
}

#[test]
fn nothing_is_booked_while_another_site_is_away_and_nobody_is_told_a_wrong_count() {
    let mut cluster = Cluster::new(5, "A site is lost while another one is away for a while.");
    cluster.create_vm(50, Majority);
    cluster.acquire(R3, "vm", 10);
    cluster.settle();
    cluster.kill(R3);
    cluster.kill(R2);
    cluster.declare_lost(R0, R3);
    assert_eq!(cluster.tokens(R0, "vm"), has(10, 0));
    let release = cluster.release(R1, "vm", 10);
    let read = cluster.get(R1, "vm", Read::Global);
    cluster.advance(PATIENCE);
    assert!(matches!(cluster.outcome(release), Err(Refusal::Unreachable { .. })), "clients of r3 hold tokens");
    assert_eq!(cluster.info(read).missing, [R2, R3]);
    cluster.start(R2);
    cluster.advance(PATIENCE);
    let release = cluster.release(R1, "vm", 10);
    let read = cluster.get(R1, "vm", Read::Global);
    cluster.advance(SECOND);
    assert!(cluster.outcome(release).is_ok());
    assert_eq!(cluster.info(read).missing, []);
}

#[test]
fn a_quota_below_another_is_settled_by_itself() {
    let mut cluster = Cluster::new(
        3,
        "A lost site has given out tokens of a quota and of the one above it. Each is booked by itself; what is freed below stays held above,
        and so does all when the quota below is dropped.",
    );
    org_and_team(&mut cluster);
    cluster.acquire(R2, "team", 2);
    cluster.acquire(R2, "org", 8);
    cluster.settle();
    cluster.kill(R2);
    cluster.declare_lost(R1, R2);
    assert_eq!([R0, R1].map(|site| cluster.tokens(site, "team")), [has(5, 5), has(5, 0)]);
    assert_eq!([R0, R1].map(|site| cluster.tokens(site, "org")), [has(10, 10), has(10, 0)]);
    cluster.narrate("3 of team are freed: all 10 of org are held still");
    let free = cluster.free(R0, "team", 3);
    cluster.advance(SECOND);
    assert!(cluster.outcome(free).is_ok());
    assert_eq!(cluster.tokens(R0, "org"), has(10, 10));
    cluster.narrate("a client of r2 releases its 2 of team at r0, of org as well");
    cluster.release(R0, "team", 2);
    assert_eq!((cluster.tokens(R0, "team"), cluster.tokens(R0, "org")), (has(10, 0), has(12, 8)));
    cluster.acquire(R0, "team", 1);
    cluster.narrate("team is dropped");
    cluster.drop_quota(R1, "team");
    assert_eq!(cluster.tokens(R0, "org"), has(11, 9), "nobody knows how many of these were clients' of team");
}

#[test]
fn a_quota_made_after_a_loss_is_whole() {
    let mut cluster = Cluster::new(3, "A quota is made when a site is lost already: the others have all of it.");
    cluster.kill(R2);
    cluster.declare_lost(R0, R2);
    cluster.create_vm(30, Any);
    assert_eq!(cluster.all_tokens(), [has(20, 0), has(10, 0)]);
    let all = cluster.acquire(R1, "vm", 30);
    cluster.advance(SECOND);
    assert!(cluster.outcome(all).is_ok());
}

#[test]
fn two_declarations_race_and_a_majority_remains() {
    let mut cluster = Cluster::new(3, "Two sites of three declare each other lost, and the third incarnations. One of the two is.");
    cluster.create_vm(30, Majority);
    let first = cluster.declares(R0, R1);
    let second = cluster.declares(R1, R0);
    cluster.advance(PATIENCE);
    assert_eq!(first, Some(Answer::Changed(Ok(()))));
    assert_eq!(second, Some(Answer::Changed(Err(Refusal::DeclaredLost))));
    assert_eq!(sum(&[R0, R2].map(|site| cluster.tokens(site, "vm"))), 30);
}
