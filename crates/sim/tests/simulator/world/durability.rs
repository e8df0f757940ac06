//! What waits for the disk, and what a crash leaves at each point of a write.

use super::toy::{Answer, C, I, O, Register, Request, V, five_regions, kept, lines, one_site, replies, world};
use rhumb_core::{SiteId, Span, Time};
use rhumb_sim::{Fault, Links, Place, World};
use std::collections::BTreeSet;

/// The only site.
const A: SiteId = SiteId::new(0, 0);
const START: Time = Time::from_micros(1_000_000);

fn started(seed: u64) -> World<Register> {
    let mut world = world(one_site(), seed);
    world.run_until(START).expect("runs");
    world
}

fn crash_at(world: &mut World<Register>, micros: u64) {
    let crash = Fault::Crash { place: Place::Site(A), down: Some(Span::from_millis(5)) };
    world.strike_at(START + Span::from_micros(micros), crash);
}

#[test]
fn an_answer_waits_for_the_sync_and_one_sync_serves_all_written_before_it_began() {
    let mut world = started(1);
    for value in [1, 2, 3] {
        world.submit(A, Request::Put(value));
    }
    world.run_for(Span::from_millis(10)).expect("runs");
    // Written at 10, 20 and 30. The first sync, from 10 on, covers only the first; the second, from 1010 on, the others.
    let done = Some(Answer::Done);
    assert_eq!(replies(&mut world, START), [(1_020, done.clone()), (2_020, done.clone()), (2_030, done)]);
}

#[test]
fn a_gated_answer_leaves_when_its_write_is_durable() {
    let mut world = started(1);
    world.submit(A, Request::PutHere(1));
    world.submit(A, Request::PutHere(2));
    world.run_for(Span::from_millis(10)).expect("runs");
    assert_eq!(replies(&mut world, START), [(1_010, Some(Answer::Done)), (2_010, Some(Answer::Done))]);
}

#[test]
fn a_long_load_shows_what_was_written_before_its_answer_durable_or_not() {
    let mut world = started(1);
    world.submit(A, Request::Get);
    world.submit(A, Request::Put(1));
    world.submit(A, Request::Get);
    world.submit(A, Request::Put(2));
    world.run_for(Span::from_micros(200)).expect("runs");
    // Loads are asked for at 10 and 30, take 50, and the answer is stepped 10 later. The last write is of 40.
    assert_eq!(replies(&mut world, START), [(70, Some(Answer::Value(Some(2)))), (90, Some(Answer::Value(Some(2))))]);
}

#[test]
fn a_crash_before_the_step_loses_the_request_and_its_client_is_told() {
    let mut world = started(1);
    world.submit(A, Request::Put(1));
    crash_at(&mut world, 5);
    world.run_for(Span::from_millis(20)).expect("runs");
    assert_eq!(replies(&mut world, START), [(5, None)]);
    assert_eq!((kept(&world, A), world.incarnation(A)), (vec![], 2));
}

#[test]
fn a_crash_before_the_sync_keeps_some_prefix_of_what_was_written() {
    let mut lengths = BTreeSet::new();
    for seed in 0..60 {
        let mut world = started(seed);
        for value in [1, 2, 3] {
            world.submit(A, Request::Put(value));
        }
        crash_at(&mut world, 500);
        world.run_for(Span::from_millis(20)).expect("runs");
        let kept = kept(&world, A);
        assert_eq!(kept, [1, 2, 3][..kept.len()], "whole writes, in order, or nothing");
        assert_eq!(replies(&mut world, START), [(500, None), (500, None), (500, None)]);
        lengths.insert(kept.len());
    }
    assert_eq!(lengths, BTreeSet::from([0, 1, 2, 3]), "nothing, all, and torn in between");
}

#[test]
fn a_crash_after_the_sync_loses_nothing() {
    for seed in 0..20 {
        let mut world = started(seed);
        world.submit(A, Request::Put(1));
        crash_at(&mut world, 1_011);
        world.run_for(Span::from_millis(20)).expect("runs");
        assert_eq!(kept(&world, A), [1]);
    }
}

#[test]
fn a_sync_under_way_does_not_end_in_the_next_incarnation() {
    let mut world = started(1);
    world.submit(A, Request::Put(1));
    world.strike_at(START + Span::from_micros(500), Fault::Crash { place: Place::Site(A), down: Some(Span::from_micros(100)) });
    world.run_for(Span::from_millis(20)).expect("runs");
    assert_eq!(lines(&world, "persisted"), Vec::<String>::new());
}

#[test]
fn a_slow_disk_delays_what_depends_on_it_by_its_factor() {
    let mut world = started(1);
    world.strike(&Fault::SlowDisk { site: A, factor: 100, span: Span::from_millis(1) });
    world.submit(A, Request::Put(1));
    world.run_for(Span::from_millis(200)).expect("runs");
    world.submit(A, Request::Put(2));
    world.run_for(Span::from_millis(200)).expect("runs");
    assert_eq!(replies(&mut world, START), [(100_020, Some(Answer::Done)), (201_020, Some(Answer::Done))]);
}

#[test]
fn a_promise_leaves_only_once_durable_and_what_is_durable_in_a_stall_survives_the_crash_in_it() {
    let stall_then = |crash: bool| {
        let mut world = world(five_regions(), 1);
        world.run_until(START).expect("runs");
        world.submit(C, Request::Put(7));
        // V has written at 43.020 ms and synced at 44.020 ms, but stands still from 43.5 ms on.
        world.strike_at(START + Span::from_micros(43_500), Fault::Stall { site: V, span: Span::from_millis(300) });
        if crash {
            let fault = Fault::Crash { place: Place::Site(V), down: Some(Span::from_secs(9)) };
            world.strike_at(START + Span::from_micros(100_000), fault);
        }
        world.run_for(Span::from_millis(450)).expect("runs");
        assert_eq!(kept(&world, V), [7]);
        lines(&world, "r0.0 ← r2.0")
    };
    assert_eq!(stall_then(false), [format!("1.386510 r0.0 ← r2.0 stored {:x}", (1_u64 << 32) + 1)], "343.5 ms, the way back and a step");
    assert_eq!(stall_then(true), Vec::<String>::new());
}

#[test]
fn a_promise_made_again_leaves_at_once_if_all_before_it_is_durable() {
    let mut world = world(five_regions(), 1);
    world.run_until(START).expect("runs");
    // The answer of O is lost, so the primary sends again, and O, which has it on disk, promises without a sync.
    world.strike(&Fault::Crash { place: Place::Site(V), down: None });
    world.strike(&Fault::Crash { place: Place::Site(I), down: None });
    let links = Links::new(Place::Site(O), Place::Site(C));
    world.strike(&Fault::Cut { links, span: Some(Span::from_millis(400)) });
    world.submit(C, Request::Put(7));
    world.run_for(Span::from_secs(1)).expect("runs");
    // The resend leaves at 500.020 (timer after 10, stepped in 10): 21 ms of round trip, two steps, no sync.
    assert_eq!(replies(&mut world, START), [(500_020 + 21_000 + 20, Some(Answer::Done))]);
}
