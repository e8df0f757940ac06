//! Sites with escrows in the simulator: what a shortage leads to, message by message, and that the limit holds.

use super::{Escrow, Lending, Shortage};
use rhumb_core::rtt::RttMatrix;
use rhumb_core::{SiteId, Span, Topology};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Done, Operation};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request};
use rhumb_quota::spec::Spec;
use rhumb_sim::{Config, Fault, LocalDelays, Place, World};

const A: SiteId = SiteId::new(0, 0);
const B: SiteId = SiteId::new(1, 0);
const C: SiteId = SiteId::new(2, 0);
const RTT: Span = Span::from_millis(80);

fn vm() -> Name {
    Name::new("vm").expect("a name")
}

/// Three regions 80 ms apart, and a quota of `limit` tokens.
fn world(shortage: Shortage, limit: u64) -> World<Escrow> {
    let rtt = RttMatrix::uniform(["a", "b", "c"].map(str::to_owned).to_vec(), RTT);
    let config = Config { local: LocalDelays::NONE, ..Config::new(rtt, 1) };
    let topology: Topology = config.topology.clone();
    let others = move |site| topology.sites().filter(|other| *other != site).collect();
    let mut world = World::new(config, 1, move |site, _| Escrow::new(site, others(site), shortage));
    world.run_for(RTT).expect("no fault");
    assert_eq!(ask(&mut world, A, Request::Create { name: vm(), spec: Spec::new(limit) }), Answer::Changed(Ok(())));
    world
}

fn ask(world: &mut World<Escrow>, site: SiteId, request: Request) -> Answer {
    world.submit(site, request);
    world.run_until_reply(world.now() + Span::from_secs(10)).expect("no fault");
    let mut replies = world.take_replies();
    assert_eq!(replies.len(), 1);
    replies.remove(0).answer.expect("the site is up")
}

fn acquire(world: &mut World<Escrow>, site: SiteId, amount: u64) -> Result<Done, Refusal> {
    run(world, site, vec![Operation::acquire(vm(), amount, None).expect("valid")]).remove(0)
}

fn release(world: &mut World<Escrow>, site: SiteId, amount: u64) -> Result<Done, Refusal> {
    run(world, site, vec![Operation::release(vm(), amount, None).expect("valid")]).remove(0)
}

fn run(world: &mut World<Escrow>, site: SiteId, operations: Vec<Operation>) -> Vec<Result<Done, Refusal>> {
    match ask(world, site, Request::Run(operations)) {
        Answer::Ran(outcomes) => outcomes,
        other => panic!("{other:?}"),
    }
}

/// Tokens left and held over all sites.
fn tokens(world: &mut World<Escrow>) -> (u64, u64) {
    [A, B, C].into_iter().fold((0, 0), |(left, held), site| match ask(world, site, Request::List) {
        Answer::Listed(infos) => (left + infos[0].left(), held + infos[0].held()),
        other => panic!("{other:?}"),
    })
}

fn exceeded(wanted: u64) -> Result<Done, Refusal> {
    Err(Refusal::Exceeded { quota: vm(), wanted })
}

#[test]
fn a_site_short_of_tokens_borrows_from_one_site_after_another() {
    let mut world = world(Shortage::Borrow(Lending::Half), 30);
    assert_eq!(acquire(&mut world, A, 10), Ok(Done { left: 0 }));
    let before = world.now();
    assert_eq!(acquire(&mut world, A, 1), Ok(Done { left: 4 }), "B lends half of its ten");
    assert_eq!(world.now().since(before), RTT);
    let before = world.now();
    assert_eq!(acquire(&mut world, A, 12), Ok(Done { left: 2 }), "B lends all five it has, then C half of its ten");
    assert_eq!(world.now().since(before), RTT * 2);
    assert_eq!(tokens(&mut world), (7, 23));
}

#[test]
fn an_acquire_is_refused_once_all_were_asked_in_vain() {
    let mut world = world(Shortage::Borrow(Lending::Need), 30);
    let before = world.now();
    assert_eq!(acquire(&mut world, A, 31), exceeded(31));
    assert_eq!(world.now().since(before), RTT * 2);
    assert_eq!(acquire(&mut world, A, 30), Ok(Done { left: 0 }), "what was lent in vain is at A and not lost");
    assert_eq!(acquire(&mut world, B, 1), exceeded(1));
    assert_eq!(release(&mut world, A, 1), Ok(Done { left: 1 }));
    assert_eq!(acquire(&mut world, B, 1), Ok(Done { left: 0 }));
    assert_eq!(tokens(&mut world), (0, 30));
}

#[test]
fn sites_short_at_once_do_not_wait_for_each_other_for_ever() {
    let mut world = world(Shortage::Borrow(Lending::Half), 9);
    for site in [A, B, C] {
        for _ in 0..5 {
            world.submit(site, Request::Run(vec![Operation::acquire(vm(), 1, None).expect("valid")]));
        }
    }
    world.run_for(Span::from_secs(5)).expect("no fault");
    let granted = |answer: &Option<Answer>| matches!(answer, Some(Answer::Ran(outcomes)) if outcomes[0].is_ok());
    let replies = world.take_replies();
    assert_eq!(replies.len(), 15, "every request is answered");
    assert_eq!(replies.iter().filter(|reply| granted(&reply.answer)).count(), 9);
    assert_eq!(tokens(&mut world), (0, 9));
}

#[test]
fn without_redistribution_a_site_refuses_what_it_has_not_got() {
    let mut world = world(Shortage::Reject, 31);
    assert_eq!(acquire(&mut world, A, 11), Ok(Done { left: 0 }), "the odd token is at the first site");
    assert_eq!(acquire(&mut world, A, 1), exceeded(1));
    assert_eq!(acquire(&mut world, B, 10), Ok(Done { left: 0 }));
    assert_eq!(release(&mut world, A, 2), Ok(Done { left: 2 }));
    assert_eq!(release(&mut world, A, 10), Err(Refusal::NotHeld { quota: vm(), amount: 10 }));
    assert_eq!(tokens(&mut world), (12, 19));
}

#[test]
fn without_constraint_everything_is_granted() {
    let mut world = world(Shortage::Allow, 3);
    assert!((0..50).all(|_| acquire(&mut world, A, 7).is_ok()));
    assert_eq!(tokens(&mut world).1, 350);
}

#[test]
fn each_operation_of_a_call_stands_for_itself() {
    let mut world = world(Shortage::Borrow(Lending::Need), 30);
    let operations = [(1, vm()), (40, vm()), (1, Name::new("gpu").expect("a name")), (12, vm())];
    let operations = operations.map(|(amount, quota)| Operation::acquire(quota, amount, None).expect("valid")).to_vec();
    let outcomes = run(&mut world, A, operations);
    assert_eq!(outcomes[0], Ok(Done { left: 9 }));
    assert_eq!(outcomes[1], exceeded(40));
    assert_eq!(outcomes[2], Err(Refusal::Unknown(Name::new("gpu").expect("a name"))));
    assert_eq!(outcomes[3], Ok(Done { left: 17 }), "what was borrowed for the one before stays");
}

#[test]
fn tokens_outlive_a_crash() {
    let mut world = world(Shortage::Borrow(Lending::Half), 30);
    assert!(acquire(&mut world, A, 12).is_ok());
    world.strike(&Fault::Crash { place: Place::Everywhere, down: Some(Span::from_millis(10)) });
    world.run_for(Span::from_secs(1)).expect("no other fault, and time enough to compare clocks");
    assert_eq!(tokens(&mut world), (18, 12));
    assert_eq!(release(&mut world, A, 12).map(|done| done.left), Ok(15));
}
