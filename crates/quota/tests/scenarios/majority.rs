//! Avantan[(n+1)/2]: a majority moves tokens; what is frozen stays frozen until its slot is over.

use crate::support::client::has;
use crate::support::messages::{is_accept, is_accept_ok, is_decided, is_election_ok};
use crate::support::{Cluster, R0, R1, R2, R3};
use rhumb_core::Span;
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::ProtocolKind::Majority;

/// A leader gives up what too few answer.
const GIVE_UP: Span = Span::from_millis(1_550);
/// A cohort leads the slot to its end itself.
const TAKE_OVER: Span = Span::from_millis(3_000);
/// A leader goes on without those who do not answer.
const GATHER: Span = Span::from_millis(450);

#[test]
fn an_uncontended_redistribution_takes_two_round_trips() {
    let mut cluster = Cluster::new(
        3,
        "A site lacks tokens: it has them redistributed.
        All offer what they have left. The first answer is enough of a majority, and of tokens: r2 takes no part.",
    );
    cluster.create_vm(30, Majority);
    cluster.narrate("a client of r0 acquires 15 of its 10");
    let acquire = cluster.acquire(R0, "vm", 15);
    assert!(cluster.waits(acquire));
    cluster.settle();
    assert_eq!(cluster.outcome(acquire), Ok(3));
    assert_eq!(cluster.all_tokens(), [has(3, 15), has(2, 0), has(10, 0)]);
    cluster.check("an_uncontended_redistribution_takes_two_round_trips");
}

#[test]
fn a_leader_dies_after_its_accept_and_another_finishes_its_slot() {
    let mut cluster = Cluster::new(
        3,
        "A leader dies with its Accept out, and all answers lost.
        What r1 has accepted may be decided, so its offer stays frozen. It waits, asks, then leads the slot itself, hears
        of nothing accepted but that list, and decides it. The leader, back again, is told.",
    );
    cluster.create_vm(30, Majority);
    cluster.narrate("a client of r0 acquires 15; r1 and r2 accept the list, and r0 dies");
    cluster.hold(is_accept_ok);
    let acquire = cluster.acquire(R0, "vm", 15);
    cluster.settle();
    cluster.kill(R0);
    cluster.lose(is_accept_ok);
    cluster.let_go();
    cluster.narrate("r1 waits, asks, and acts");
    cluster.advance(TAKE_OVER);
    assert!(cluster.waits(acquire));
    assert_eq!(cluster.all_tokens(), [has(2, 0), has(10, 0)], "as in the list that r0 built");
    cluster.narrate("r0 starts again, and leads the slot that it had left open");
    cluster.start(R0);
    cluster.advance(TAKE_OVER);
    assert_eq!(cluster.all_tokens(), [has(18, 0), has(2, 0), has(10, 0)]);
    cluster.check("a_leader_dies_after_its_accept_and_another_finishes_its_slot");
}

#[test]
fn a_leader_that_gives_up_says_so_and_its_cohort_unfreezes() {
    let mut cluster = Cluster::new(
        3,
        "A leader hears no answer to its first phase.
        The cohorts have offered, and keep their offers frozen however long it takes: silence frees nothing. The leader
        gives up, writes so, and says so: the offers are free again, and its client is refused.",
    );
    cluster.create_vm(30, Majority);
    cluster.narrate("a client of r0 acquires 15; no answer reaches r0");
    cluster.hold(is_election_ok);
    let acquire = cluster.acquire(R0, "vm", 15);
    cluster.settle();
    assert_eq!(cluster.tokens(R1, "vm").offered, 10);
    cluster.narrate("r0 gives up");
    cluster.advance(GIVE_UP);
    assert_eq!(cluster.tokens(R1, "vm"), has(10, 0));
    assert_eq!(cluster.tokens(R2, "vm"), has(10, 0));
    cluster.narrate("a second attempt fares no better, and the client is told");
    cluster.advance(GIVE_UP * 2);
    let why = "too few other sites answer".to_owned();
    let vm = rhumb_quota::name::Name::new("vm").expect("a name");
    assert_eq!(cluster.outcome(acquire), Err(Refusal::Unreachable { quota: vm, why }));
    assert_eq!(cluster.all_tokens(), [has(10, 0), has(10, 0), has(10, 0)]);
    cluster.check("a_leader_that_gives_up_says_so_and_its_cohort_unfreezes");
}

#[test]
fn a_site_that_was_away_is_told_the_one_list_it_lacks() {
    let mut cluster = Cluster::new(
        3,
        "A site offers, and is cut off before it hears what became of it.
        The others go on, slot after slot. Of all that it lacks only the list of its own slot can hold an offer of its own:
        back again, it is told that one, and the last, and jumps over those between.",
    );
    cluster.create_vm(30, Majority);
    cluster.narrate("a client of r0 acquires 25: all take part, and r2 is cut off before it hears more");
    cluster.hold(is_accept);
    let acquire = cluster.acquire(R0, "vm", 25);
    cluster.settle();
    cluster.let_go();
    cluster.cut(R2.region);
    cluster.settle();
    assert_eq!(cluster.outcome(acquire), Ok(2));
    assert_eq!(cluster.tokens(R2, "vm").offered, 10);
    cluster.narrate("clients of r0 and r1 acquire what is left");
    for (site, amount) in [(R0, 3), (R1, 1)] {
        let acquire = cluster.acquire(site, "vm", amount);
        // Once for what can be spared, once for all.
        cluster.advance(GATHER * 2);
        assert!(!cluster.waits(acquire));
    }
    cluster.narrate("the cut heals");
    cluster.heal();
    cluster.advance(TAKE_OVER);
    let tokens = cluster.all_tokens();
    assert_eq!(tokens.iter().map(|has| has.left + has.held).sum::<u64>(), 30, "{tokens:?}");
    assert!(tokens.iter().all(|has| has.offered == 0), "{tokens:?}");
    cluster.check("a_site_that_was_away_is_told_the_one_list_it_lacks");
}

#[test]
fn a_frozen_offer_is_not_counted_twice() {
    let mut cluster = Cluster::new(
        4,
        "The double count of the algorithm as the paper prints it.
        A list of all four is decided by r0, r1 and r2, while r3, frozen, never hears. r0 leads again, and collects r3's old
        offer a second time. With slots r3 is told instead that its offer is spent, and offers what it has been granted.",
    );
    cluster.create_vm(40, Majority);
    cluster.narrate("a client of r0 acquires 35; r3 offers its 10, and hears no more");
    cluster.hold(|envelope| envelope.to == R3 && (is_accept(envelope) || is_decided(envelope)));
    let acquire = cluster.acquire(R0, "vm", 35);
    cluster.settle();
    assert_eq!(cluster.outcome(acquire), Ok(2));
    assert_eq!(cluster.tokens(R3, "vm").offered, 10);
    cluster.lose(|envelope| envelope.to == R3);
    cluster.let_go();
    cluster.narrate("a client of r0 acquires 6 more: were r3's old offer counted again, there would seem to be enough");
    let again = cluster.acquire(R0, "vm", 6);
    cluster.advance(GATHER);
    assert!(cluster.outcome(again).is_err());
    let tokens = cluster.all_tokens();
    assert_eq!(tokens.iter().map(|has| has.left + has.held).sum::<u64>(), 40, "{tokens:?}");
    cluster.check("a_frozen_offer_is_not_counted_twice");
}
