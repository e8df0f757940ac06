//! Crashes, stalls and healing, by script.

use super::toy::{Answer, C, I, LOCAL, O, Request, S, V, five_regions, kept, lines, replies, world};
use rhumb_core::{SiteId, Span, Time};
use rhumb_sim::{Config, Fault, Links, Place};
use std::collections::BTreeSet;

const START: Time = Time::from_micros(1_000_000);

fn crash(site: SiteId, down: Option<Span>) -> Fault {
    Fault::Crash { place: Place::Site(site), down }
}

#[test]
fn a_message_under_way_reaches_the_next_incarnation_but_not_a_site_that_is_down() {
    let mut world = world(five_regions(), 1);
    world.run_until(START).expect("runs");
    world.submit(C, Request::Put(7));
    world.strike_at(START + Span::from_millis(20), crash(V, Some(Span::from_millis(10))));
    world.strike_at(START + Span::from_millis(60), crash(I, Some(Span::from_millis(40))));
    world.run_for(Span::from_millis(300)).expect("runs");
    assert_eq!((world.incarnation(V), kept(&world, V)), (2, vec![7]));
    assert_eq!(lines(&world, "is down"), ["1.079510 r3.0 is down ← r0.0 store 7"]);
    assert_eq!(replies(&mut world, START), [(86_000 + 1_030, Some(Answer::Done))]);
}

#[test]
fn timers_of_an_incarnation_end_with_it() {
    let mut world = world(five_regions(), 1);
    world.run_until(START).expect("runs");
    world.submit(C, Request::Put(7));
    world.strike_at(START + Span::from_millis(20), crash(C, Some(Span::from_millis(10))));
    world.run_for(Span::from_secs(2)).expect("runs");
    assert_eq!(lines(&world, "timer"), Vec::<String>::new());
}

#[test]
fn a_region_crashes_and_restarts_whole() {
    let mut world = world(Config::new(five_regions().rtt, 2), 1);
    world.run_until(START).expect("runs");
    world.strike(&Fault::Crash { place: Place::Region(V.region), down: Some(Span::from_secs(1)) });
    let down = |world: &rhumb_sim::World<_>| world.topology().sites().filter(|site| world.actor(*site).is_none()).collect::<Vec<_>>();
    assert_eq!(down(&world), [V, SiteId { shard: 1, ..V }]);
    world.run_for(Span::from_secs(1)).expect("runs");
    assert_eq!(down(&world), []);
    assert_eq!((world.incarnation(SiteId { shard: 1, ..V }), world.incarnation(SiteId { shard: 1, ..C })), (2, 1));
}

#[test]
fn a_crash_in_the_middle_of_a_step_carries_out_a_prefix_of_its_effects() {
    let mut sent = BTreeSet::new();
    for seed in 0..40 {
        let mut world = world(five_regions(), seed);
        world.run_until(START).expect("runs");
        world.strike(&Fault::CrashMidStep { site: C, down: Some(Span::from_secs(1)) });
        world.submit(C, Request::Put(7));
        world.run_for(Span::from_millis(400)).expect("runs");
        assert_eq!(replies(&mut world, START), [(LOCAL.step.as_micros(), None)]);
        let reached: Vec<SiteId> = [O, V, I, S].into_iter().filter(|site| kept(&world, *site) == [7]).collect();
        assert_eq!(reached, [O, V, I, S][..reached.len()], "in the order written");
        sent.insert(reached.len());
    }
    assert_eq!(sent, BTreeSet::from([0, 1, 2, 3, 4]));
}

#[test]
fn a_site_that_stands_still_goes_on_with_all_that_piled_up() {
    let mut world = world(five_regions(), 1);
    world.run_until(START).expect("runs");
    world.strike(&Fault::Stall { site: O, span: Span::from_micros(200_003) });
    for value in [1, 2, 3] {
        world.submit(C, Request::Put(value));
    }
    world.run_for(Span::from_millis(300)).expect("runs");
    let expected = ["1.200003 r1.0 ← r0.0 store 1", "1.200013 r1.0 ← r0.0 store 2", "1.200023 r1.0 ← r0.0 store 3"];
    assert_eq!(lines(&world, "r1.0 ← r0.0"), expected);
}

#[test]
fn a_stall_holds_up_an_input_that_waits_already() {
    let mut world = world(five_regions(), 1);
    world.run_until(START).expect("runs");
    world.submit(C, Request::PutHere(1));
    world.strike(&Fault::Stall { site: C, span: Span::from_micros(777) });
    world.run_for(Span::from_millis(10)).expect("runs");
    assert_eq!(replies(&mut world, START), [(777 + LOCAL.sync.as_micros(), Some(Answer::Done))]);
}

#[test]
fn healing_restarts_reconnects_and_calls_off_what_was_to_come() {
    let mut world = world(five_regions(), 1);
    world.run_until(START).expect("runs");
    world.strike(&Fault::Cut { links: Links::ALL, span: None });
    world.strike(&Fault::Crash { place: Place::Region(V.region), down: None });
    world.strike(&Fault::CrashMidStep { site: C, down: None });
    world.strike(&Fault::Stall { site: O, span: Span::from_secs(100) });
    world.strike(&Fault::SlowDisk { site: C, factor: 100, span: Span::from_secs(100) });
    world.strike_at(START + Span::from_millis(50), Fault::Crash { place: Place::Everywhere, down: None });
    world.heal();
    world.run_for(Span::from_millis(1)).expect("runs");
    let start = world.now();
    world.submit(C, Request::Put(7));
    world.run_for(Span::from_secs(1)).expect("runs");
    assert_eq!(replies(&mut world, start), [(86_000 + 1_030, Some(Answer::Done))]);
    assert!(world.topology().sites().all(|site| kept(&world, site) == [7]));
}

#[test]
fn healing_ends_a_stall_in_which_something_waits_already() {
    let mut world = world(five_regions(), 1);
    world.run_until(START).expect("runs");
    world.strike(&Fault::Stall { site: C, span: Span::from_secs(100) });
    world.submit(C, Request::PutHere(1));
    world.run_for(Span::from_millis(10)).expect("runs");
    world.heal();
    world.run_for(Span::from_millis(10)).expect("runs");
    let answered = 10_000 + LOCAL.step.as_micros() + LOCAL.sync.as_micros();
    assert_eq!(replies(&mut world, START), [(answered, Some(Answer::Done))]);
}

#[test]
fn a_site_that_is_down_stays_so_until_told_to_restart() {
    let mut world = world(five_regions(), 1);
    world.run_until(START).expect("runs");
    world.strike(&crash(C, None));
    world.run_for(Span::from_secs(100)).expect("runs");
    assert!(world.actor(C).is_none());
    world.strike(&Fault::Restart { place: Place::Everywhere });
    assert_eq!((world.incarnation(C), world.incarnation(V)), (2, 1));
}
