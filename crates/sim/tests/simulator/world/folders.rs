//! Disks that fail, folders that are not what their site left, and sites that are lost for good, by script.

use super::toy::{Answer, C, I, O, Register, Request, V, five_regions, kept, replies, world};
use rhumb_core::{SiteId, Span, Time};
use rhumb_sim::{Fault, Links, Place, Replacement, World};

const START: Time = Time::from_micros(1_000_000);
const DOWN: Span = Span::from_millis(10);
const PAUSE: Span = Span::from_secs(1);

fn started() -> World<Register> {
    let mut world = world(five_regions(), 1);
    world.run_until(START).expect("runs");
    world
}

fn crash(site: SiteId) -> Fault {
    Fault::Crash { place: Place::Site(site), down: Some(DOWN) }
}

/// A snapshot of V, after which it restarts and takes another value; then its folder is replaced `with` another.
fn replaced(mut world: World<Register>, with: Replacement) -> World<Register> {
    world.strike(&Fault::TakeSnapshot { site: V });
    world.strike(&crash(V));
    world.run_for(PAUSE).expect("runs");
    world.submit(C, Request::Put(7));
    world.run_for(PAUSE).expect("runs");
    assert_eq!(kept(&world, V), [7]);
    world.strike(&Fault::ReplaceFolder { site: V, with, down: DOWN });
    world.run_for(PAUSE).expect("runs");
    world
}

#[test]
fn nothing_follows_a_sync_that_fails_but_the_end_of_the_process() {
    let mut world = started();
    world.strike(&Fault::FailSync { site: C, down: Some(DOWN) });
    world.submit(C, Request::PutHere(1));
    world.run_for(Span::from_millis(5)).expect("runs");
    assert_eq!(replies(&mut world, START), [(1_010, None)]);
    assert!(!world.is_up(C));
    world.run_for(PAUSE).expect("runs");
    assert_eq!((world.incarnation(C), world.probe("disk.sync_failed")), (2, 1));
}

#[test]
fn a_site_that_is_lost_never_comes_back() {
    let mut world = started();
    world.strike(&Fault::Lose { place: Place::Region(V.region) });
    world.strike(&Fault::Restart { place: Place::Everywhere });
    world.strike(&Fault::Heal);
    world.run_for(PAUSE).expect("runs");
    assert!(world.is_lost(V) && !world.is_up(V));
    assert_eq!((world.sites_left().count(), world.probe("site.lost")), (4, 1));
    world.submit(C, Request::Put(7));
    world.run_for(PAUSE).expect("runs");
    assert_eq!(world.take_replies().pop().and_then(|reply| reply.answer), Some(Answer::Done), "a majority is left");
}

#[test]
fn a_site_with_another_folder_than_it_left_is_refused_at_each_start() {
    for with in Replacement::ALL {
        let mut world = replaced(started(), with);
        assert_eq!(world.probe(with.probe()), 1, "{with:?}");
        assert_eq!((world.is_up(V), world.incarnation(V), world.probe("folder.refused")), (false, 2, 1), "{with:?}");
        world.strike(&Fault::Restart { place: Place::Site(V) });
        world.run_for(PAUSE).expect("runs");
        assert_eq!((world.is_up(V), world.probe("folder.refused")), (false, 2), "{with:?}");
        world.strike(&Fault::GiveUp { region: V.region });
        assert!(world.is_lost(V), "{with:?}");
    }
}

#[test]
fn a_site_whose_folder_is_old_says_nothing_before_it_meets_one_that_knows() {
    let mut world = started();
    world.strike(&Fault::TakeSnapshot { site: V });
    world.strike(&crash(V));
    world.run_for(PAUSE).expect("runs");
    let out = Links::new(Place::Site(V), Place::Everywhere);
    world.strike(&Fault::Cut { links: out, span: None });
    world.strike(&Fault::ReplaceFolder { site: V, with: Replacement::Older, down: DOWN });
    world.run_for(PAUSE).expect("runs");
    assert_eq!((world.is_up(V), world.incarnation(V), world.probe("folder.refused")), (false, 2, 0), "nobody confirms its clock");
    world.strike(&Fault::Mend { links: out });
    world.run_for(PAUSE).expect("runs");
    assert_eq!((world.is_up(V), world.incarnation(V), world.probe("folder.refused")), (false, 2, 1));
}

#[test]
fn what_no_site_can_tell_is_not_done() {
    let mut world = started();
    world.strike(&Fault::ReplaceFolder { site: V, with: Replacement::Empty, down: DOWN });
    assert!(world.is_up(V), "no snapshot was taken");
    world.strike(&Fault::TakeSnapshot { site: V });
    world.strike(&Fault::ReplaceFolder { site: V, with: Replacement::Older, down: DOWN });
    assert!(world.is_up(V), "it is the folder of this very incarnation");
    world.strike(&Fault::GiveUp { region: V.region });
    assert!(!world.is_lost(V), "it can go on");
}

#[test]
fn who_restarts_with_the_folder_that_it_left_is_believed() {
    let mut world = started();
    for site in [V, O, I, V] {
        world.submit(C, Request::Put(7));
        world.run_for(Span::from_millis(45)).expect("runs");
        world.strike(&crash(site));
        world.run_for(PAUSE).expect("runs");
    }
    assert_eq!((world.incarnation(V), world.probe("folder.refused")), (3, 0));
}

#[test]
fn a_damaged_block_ends_the_process_that_reads_it_and_each_that_follows() {
    let mut world = started();
    world.strike(&Fault::Damage { site: V });
    world.submit(V, Request::Get);
    world.run_for(PAUSE).expect("runs");
    assert_eq!((world.is_up(V), world.probe("folder.refused")), (false, 1));
    world.strike(&Fault::Restart { place: Place::Site(V) });
    world.run_for(PAUSE).expect("runs");
    assert_eq!((world.is_up(V), world.probe("folder.refused")), (false, 2), "its start reads, too");
}
