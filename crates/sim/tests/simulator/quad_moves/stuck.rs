//! Changes that may not come about, take long, or are given up in their midst.

use super::stage::*;
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::Span;
use rhumb_core::actor::RequestId;
use rhumb_quad::{Admin, Answer, Config as Protocol, Epoch, Goal, Request, Site};
use rhumb_sim::{Fault, Links, Place, World};
use std::collections::BTreeSet;

#[test]
fn cores_that_are_merely_cut_off_are_not_left_behind() {
    let mut world = world(5, quorums(&[A, B, C], &[D, E]));
    surely(&mut world, D, Some("v"));
    for site in [A, B] {
        let links = Links::new(Place::Site(site), Place::Everywhere);
        world.strike(&Fault::Crash { place: Place::Site(site), down: None });
        world.strike(&Fault::Cut { links, span: None });
    }
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    let refused = change(&mut world, D, goal(&[C, D, E], &[]));
    assert_eq!(refused, waits_for(&[A, B]));
    assert_eq!(epoch(&world, C), Epoch(1));
    let declared = Goal { lost: BTreeSet::from([A, B]), ..goal(&[C, D, E], &[]) };
    assert_eq!(change(&mut world, D, declared), Answer::Done);
    assert_eq!(surely(&mut world, E, Some("w")), Some("v".into()));
    assert_eq!(surely(&mut world, C, None), Some("w".into()));
}

#[test]
fn without_a_slave_too_nothing_is_based_on_one_core() {
    let mut world = world(5, quorums(&[A, B, C], &[D, E]));
    surely(&mut world, D, Some("v"));
    for site in [A, B, E] {
        world.strike(&Fault::Crash { place: Place::Site(site), down: None });
    }
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    let declared = Goal { lost: BTreeSet::from([A, B]), ..goal(&[C, D], &[]) };
    let refused = change(&mut world, D, declared);
    assert_eq!(refused, waits_for(&[E]));
}

#[test]
fn sites_declared_lost_that_go_on_unheard_decide_nothing_without_a_slave() {
    let mut world = world(5, quorums(&[A, B, C, D], &[E]));
    surely(&mut world, A, Some("v"));
    for site in [D, E] {
        for other in [A, B, C] {
            let links = Links::new(Place::Site(site), Place::Site(other));
            world.strike(&Fault::Cut { links, span: None });
            let links = Links::new(Place::Site(other), Place::Site(site));
            world.strike(&Fault::Cut { links, span: None });
        }
    }
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    let refused = change(&mut world, A, goal(&[A, B], &[C, D, E]));
    assert_eq!(refused, waits_for(&[D, E]), "three of five, and of four cores");
    let declared = Goal { lost: BTreeSet::from([A, B, C]), ..goal(&[D], &[E]) };
    assert_eq!(change(&mut world, E, declared), Answer::Done);
    assert_eq!(surely(&mut world, E, Some("w")), Some("v".into()));
    assert_eq!((epoch(&world, A), epoch(&world, D)), (Epoch(1), Epoch(2)));
}

#[test]
fn who_is_sealed_and_left_alone_ends_the_change() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    surely(&mut world, A, Some("v"));
    world.submit(B, Request::Admin(Admin::Change(goal(&[B, C, D], &[A]))));
    while world.probe("quad.sealed") < 3 {
        world.tick().expect("nothing goes wrong");
    }
    world.strike(&Fault::Crash { place: Place::Site(B), down: None });
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    assert!(epoch(&world, A) > Epoch(1));
    assert_eq!(epoch(&world, A), epoch(&world, D));
    assert_eq!(surely(&mut world, D, None), Some("v".into()));
}

#[test]
fn what_waits_for_a_configuration_that_does_not_come_is_told_so() {
    let mut world = world(3, quorums(&[A, B, C], &[]));
    let Answer::Began { txn } = ask(&mut world, C, Request::Begin { mode: ReadMode::Locking }) else { panic!("it begins") };
    world.submit(B, Request::Admin(Admin::Change(goal(&[A], &[B, C]))));
    while world.probe("quad.sealed") < 3 {
        world.tick().expect("nothing goes wrong");
    }
    for site in [A, B] {
        world.strike(&Fault::Crash { place: Place::Site(site), down: None });
    }
    let answer = ask(&mut world, C, Request::Get { txn, mode: ReadMode::Locking, keys: vec!["k".into()], expect: vec![] });
    assert!(matches!(&answer, Answer::Failed(error) if error.is_retryable()), "{answer:?}");
}

/// Cores A, B and C and a slave D; pages of one row. The change makes D the only core, which has to copy all.
fn slow_reconciliation(rows: usize) -> (World<Site>, RequestId) {
    let mut world = world_of(4, quorums(&[A, B, C], &[D]), Protocol { page_rows: 1, ..Protocol::default() });
    fill(&mut world, A, rows);
    let id = world.submit(B, Request::Admin(Admin::Change(goal(&[D], &[A, B, C]))));
    (world, id)
}

#[test]
fn a_reconciliation_that_advances_takes_as_long_as_it_takes() {
    let (mut world, id) = slow_reconciliation(60);
    assert_eq!(answer(&mut world, id), Answer::Done, "60 pages of 80 ms are longer than any wait for news");
    assert_eq!((world.probe("quad.attempt"), world.probe("quad.taken_over")), (1, 0));
    assert_eq!(world.newest(D).len(), 60);
}

#[test]
fn who_takes_a_reconciliation_over_goes_on_where_it_came_to() {
    let (mut world, _) = slow_reconciliation(60);
    world.run_for(Span::from_millis(4_000)).expect("nothing goes wrong");
    let pages = world.probe("quad.page");
    assert!(pages > 100, "{pages} pages of three sources");
    world.strike(&Fault::Crash { place: Place::Site(B), down: None });
    let end = world.now() + Span::from_secs(9);
    while epoch(&world, D) == Epoch(1) {
        assert!(world.tick().expect("nothing goes wrong") && world.now() < end, "the rest takes a second or two after the wait for news");
    }
    assert!(world.probe("quad.page") < 200, "{} pages: a source was begun anew", world.probe("quad.page"));
    assert_eq!(surely(&mut world, D, None), None);
}

/// Three sites, all sealed for a configuration in which site A is the only core, and that one has died.
fn sealed_for_a_dead_core() -> World<Site> {
    let mut world = world(3, quorums(&[A, B, C], &[]));
    surely(&mut world, A, Some("v"));
    world.submit(B, Request::Admin(Admin::Change(goal(&[A], &[B, C]))));
    while world.probe("quad.sealed") < 3 {
        world.tick().expect("nothing goes wrong");
    }
    world.strike(&Fault::Crash { place: Place::Site(A), down: None });
    world
}

#[test]
fn a_goal_whose_core_dies_does_not_keep_the_others_sealed() {
    let mut world = sealed_for_a_dead_core();
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    assert_eq!(cores(&world, B), [B, C], "all that is left; it took three before");
    assert_eq!(surely(&mut world, C, Some("w")), Some("v".into()));
    world.strike(&Fault::Restart { place: Place::Site(A) });
    world.run_for(Span::from_secs(4)).expect("nothing goes wrong");
    assert_eq!(surely(&mut world, A, None), Some("w".into()), "it is a slave");
}

#[test]
fn an_operator_gets_through_while_sites_are_sealed_for_long() {
    let mut world = sealed_for_a_dead_core();
    let wish = || goal(&[C], &[A, B]);
    world.run_for(Span::from_millis(500)).expect("nothing goes wrong");
    let busy = TxnError::Unavailable("the configuration is being changed already".into());
    assert_eq!(change(&mut world, C, wish()), Answer::Failed(busy), "the first has a chance");
    world.run_for(Span::from_millis(1_600)).expect("nothing goes wrong");
    assert_eq!(change(&mut world, C, wish()), Answer::Done);
    assert_eq!(cores(&world, C), [C]);
}
