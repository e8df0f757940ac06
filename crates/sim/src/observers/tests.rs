//! The observers themselves, with an actor that breaks each rule when asked to.

use super::bounded_state;
use crate::{Config, Costs, SimError, World};
use rhumb_core::actor::{Actor, Effects, Input};
use rhumb_core::{Inspect, RttMatrix, SiteId, Span, Table, Time, work};
use serde::Serialize;
use std::fmt;

const A: SiteId = SiteId::new(0, 0);
const B: SiteId = SiteId::new(1, 0);
const HOARD_MAX: usize = 3;

/// Nobody says anything.
#[derive(Clone, Debug, Serialize)]
enum Silence {}

impl fmt::Display for Silence {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

enum Request {
    /// Keep so many things.
    Keep(usize),
    /// Work so much.
    Work(usize),
    /// Record this outcome of what all have in hand.
    Decide(u8),
}

/// Keeps things.
#[derive(Default)]
struct Hoard(usize);

impl Actor for Hoard {
    type Note = Silence;
    type Promise = Silence;
    type Timer = ();
    type Request = Request;
    type Answer = ();

    fn step(&mut self, _: Time, input: Input<Hoard>, fx: &mut Effects<Hoard>) {
        let Input::Client { id, request } = input else { return };
        match request {
            Request::Keep(kept) => self.0 = kept,
            Request::Work(units) => work::add(units),
            Request::Decide(outcome) => fx.agree("attempt", 1, &outcome),
        }
        fx.answer(id, ());
    }
}

impl Inspect for Hoard {
    fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("other", 0, 0));
        visit(Table::new("hoard", self.0, HOARD_MAX).resting_at(1));
    }
}

fn world() -> World<Hoard> {
    let config = Config::new(RttMatrix::uniform(vec!["a".into(), "b".into()], Span::from_millis(10)), 1);
    let costs = Costs { unit_nanos: 500, ..Costs::REALISTIC };
    let mut world = World::new(Config { costs, ..config }, 1, |_, _| Hoard::default());
    world.observe(bounded_state::observer());
    world.compare_agreed();
    world
}

/// What comes of these requests, one after the other.
fn run(world: &mut World<Hoard>, requests: impl IntoIterator<Item = (SiteId, Request)>) -> Result<(), SimError> {
    for (site, request) in requests {
        world.submit(site, request);
        world.run_for(Span::from_secs(1))?;
    }
    Ok(())
}

fn violation(result: Result<(), SimError>) -> String {
    match result {
        Err(SimError::Violation { what, .. }) => what,
        other => panic!("{other:?} is no violation"),
    }
}

#[test]
fn a_table_beyond_its_bound_is_found() {
    let mut world = world();
    assert_eq!(run(&mut world, [(A, Request::Keep(HOARD_MAX)), (B, Request::Keep(HOARD_MAX))]), Ok(()));
    assert_eq!(violation(run(&mut world, [(B, Request::Keep(HOARD_MAX + 1))])), "hoard of r1.0 has 4 entries, and 3 at the most");
}

#[test]
fn a_table_that_does_not_come_to_rest_is_found() {
    let mut world = world();
    assert_eq!(run(&mut world, [(B, Request::Keep(1))]), Ok(()));
    assert_eq!(bounded_state::at_rest(&world), Ok(()));
    assert_eq!(run(&mut world, [(B, Request::Keep(2))]), Ok(()));
    assert_eq!(violation(bounded_state::at_rest(&world)), "hoard of r1.0 has 2 entries at rest, and 1 at the most");
}

#[test]
fn two_outcomes_of_one_thing_are_found() {
    let mut world = world();
    assert_eq!(run(&mut world, [(A, Request::Decide(1)), (B, Request::Decide(1))]), Ok(()));
    let second = run(&mut world, [(B, Request::Decide(0))]);
    assert_eq!(violation(second), "r1.0 records another value of attempt 1 than r0.0 did");
}

#[test]
fn a_step_that_takes_too_long_is_found_and_one_that_does_not_keeps_its_site_busy() {
    let mut world = world();
    world.run_for(Span::from_secs(1)).expect("all is well");
    let begins = world.now();
    // As much as is allowed: 100 ms. The next one is taken up after that.
    world.submit(A, Request::Work(200_000));
    world.submit(A, Request::Work(0));
    world.run_for(Span::from_secs(1)).expect("all is well");
    let step = world.config().local.step;
    let answered: Vec<Span> = world.take_replies().iter().map(|reply| reply.at.since(begins)).collect();
    assert_eq!(answered, [step, step * 2 + crate::STEP_MAX]);
    let found = violation(run(&mut world, [(A, Request::Work(200_002))]));
    assert_eq!(found, "one step keeps r0.0 busy for 100.001ms, and may for 100ms");
}
