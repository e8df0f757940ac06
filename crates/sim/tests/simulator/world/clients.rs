//! Clients: one request at a time, told when their site is lost; and what ends a run.

use super::toy::{Answer, C, I, LOCAL, Register, Request, five_regions, lines, one_site, world};
use rhumb_core::{Span, Time};
use rhumb_sim::{ClientEvent, ClientProgram, Config, Fault, Links, LocalDelays, Next, Place, REFUSED_AFTER, SimError};
use std::cell::RefCell;
use std::rc::Rc;

type Log = Rc<RefCell<Vec<(u64, ClientEvent<Answer>)>>>;

/// Writes `left` values, waits after a loss, and logs what it is told.
struct Writer {
    left: u64,
    log: Log,
}

impl ClientProgram<Register> for Writer {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        self.log.borrow_mut().push((now.as_micros(), event.clone()));
        match event {
            ClientEvent::GatewayLost => Next::Wait(Span::from_millis(10)),
            _ if self.left == 0 => Next::Done,
            _ => {
                self.left -= 1;
                Next::Request(Request::Put(self.left))
            }
        }
    }
}

#[test]
fn a_client_asks_one_thing_after_the_other() {
    let mut world = world(one_site(), 1);
    let log = Log::default();
    world.run_until(Time::from_micros(1_000)).expect("runs");
    world.add_client(C, Writer { left: 2, log: log.clone() });
    assert_eq!(world.run_clients(Time::from_micros(9_000)), Ok(true));
    let done = ClientEvent::Answered(Answer::Done);
    assert_eq!(*log.borrow(), [(1_000, ClientEvent::Started), (2_020, done.clone()), (3_040, done)]);
    assert_eq!((world.clients_left(), world.now()), (0, Time::from_micros(3_040)));
}

#[test]
fn a_request_keeps_its_site_busy_before_it_is_taken_up() {
    let local = LocalDelays { request: Span::from_micros(400), ..LOCAL };
    let mut world = world(Config { local, ..one_site() }, 1);
    world.set_speed(C, 50);
    let log = Log::default();
    world.run_until(Time::from_micros(2_000)).expect("runs");
    world.add_client(C, Writer { left: 1, log: log.clone() });
    world.add_client(C, Writer { left: 1, log: log.clone() });
    assert_eq!(world.run_clients(Time::from_micros(9_000)), Ok(true));
    let answered: Vec<u64> = log.borrow()[2..].iter().map(|(at, _)| *at).collect();
    let (busy, synced, step) = (2 * (400 + 10), 1_000, 2 * 10);
    let first = 2_000 + busy + synced + step;
    assert_eq!(answered, [first, first + synced], "the second one's sync waits for the first one's");
}

#[test]
fn a_client_is_told_that_its_site_crashed_and_that_it_is_down() {
    let mut world = world(one_site(), 1);
    let log = Log::default();
    world.run_until(Time::from_micros(1_000)).expect("runs");
    world.add_client(C, Writer { left: 2, log: log.clone() });
    world.strike_at(Time::from_micros(1_500), Fault::Crash { place: Place::Everywhere, down: None });
    assert_eq!(world.run_clients(Time::from_micros(20_000)), Ok(false));
    let refused = 11_500 + REFUSED_AFTER.as_micros();
    let expected = [
        (1_000, ClientEvent::Started),
        (1_500, ClientEvent::GatewayLost),
        (11_500, ClientEvent::Woken),
        (refused, ClientEvent::GatewayLost),
    ];
    assert_eq!(*log.borrow(), expected);
    assert_eq!((world.clients_left(), world.outstanding().count()), (1, 0));
}

#[test]
fn a_world_can_be_run_to_its_next_reply() {
    let mut world = world(one_site(), 1);
    let end = Time::from_micros(5_000_000);
    assert_eq!(world.run_until_reply(end), Ok(false), "nobody asked anything");
    assert_eq!(world.now(), end);
    let ids = [1, 2].map(|value| world.submit(C, Request::Put(value)));
    for id in ids {
        assert_eq!(world.run_until_reply(end + Span::from_secs(1)), Ok(true));
        let replies = world.take_replies();
        assert_eq!(replies.iter().map(|reply| (reply.id, reply.at)).collect::<Vec<_>>(), [(id, world.now())]);
    }
    assert!(world.now() < end + Span::from_secs(1), "it stops at a reply");
}

#[test]
fn a_run_without_an_end_is_a_livelock_that_shows_its_last_events() {
    let config = Config { events_max: 5_000, tracing: false, ..five_regions() };
    let mut world = world(config, 1);
    world.strike(&Fault::Cut { links: Links::ALL, span: None });
    world.submit(C, Request::Put(7));
    let error = world.run_for(Span::from_secs(100_000)).expect_err("it sends again for ever");
    let SimError::Livelock { events, tail, .. } = &error else { panic!("{error}") };
    assert_eq!(*events, 5_000);
    assert!(tail.contains("timer Resend(4294967297)") && tail.contains("lost: store 7"), "{tail}");
    assert_eq!(world.trace(), "", "the run itself is not traced");
    assert_eq!(world.tick(), Err(error), "a world that failed stays so");
}

#[test]
fn an_observer_ends_the_run_at_the_event_that_breaks_its_invariant() {
    let mut world = world(one_site(), 1);
    world.observe(|world| match super::toy::kept(world, C).len() {
        0 | 1 => Ok(()),
        count => Err(format!("{count} values")),
    });
    for value in [1, 2, 3] {
        world.submit(C, Request::Put(value));
    }
    let violation = SimError::Violation { at: Time::from_micros(30), what: "2 values".into() };
    assert_eq!(world.run_for(Span::from_secs(1)), Err(violation), "starting is the first step, the second value the third");
}

#[test]
fn an_assertion_of_an_actor_ends_the_run_and_says_where() {
    let mut world = world(five_regions(), 1);
    world.submit(I, Request::Panic);
    let error = world.run_for(Span::from_secs(1)).expect_err("it panics");
    assert_eq!(error.to_string(), "at 0.000020: site r3.0 panicked: asked to");
    assert_eq!(lines(&world, "r3.0 ← client"), ["0.000020 r3.0 ← client, request 1"]);
}

#[test]
fn a_request_is_answered_once() {
    let mut world = world(one_site(), 1);
    world.submit(C, Request::AnswerTwice);
    let error = world.run_for(Span::from_secs(1)).expect_err("it breaks the contract");
    assert_eq!(error.to_string(), "at 0.000020: site r0.0 answers request 1, which it was not asked or has answered before");
}
