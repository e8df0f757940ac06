//! Quorums that follow what is measured, and what operators are told of that.

use super::stage::*;
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{SiteId, Span};
use rhumb_quad::{Admin, Answer, Availability, Cause, Cores, Epoch, InjectedLoad, Request, Site};
use rhumb_sim::{Fault, LinkFaults, Links, Place, World};
use std::collections::BTreeSet;

/// Four sites that follow what they measure, right after a change: else all rows there are would have to be copied, which no gain is worth.
fn following() -> World<Site> {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, C, Some("v"));
    assert_eq!(change(&mut world, A, goal(&[A, B], &[C, D])), Answer::Done);
    world
}

#[test]
fn a_core_that_gets_loaded_makes_place_within_two_periods_and_only_once() {
    let mut world = following();
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    assert_eq!(cores(&world, A), [A, B], "nothing has changed");
    let before = epoch(&world, B);
    load(&mut world, A, 12);
    let after = epoch(&world, B);
    assert!(after > before && !cores(&world, B).contains(&A), "{:?} in {after}", cores(&world, B));
    assert_eq!(surely(&mut world, D, None), Some("v".into()));
    load(&mut world, A, 30);
    assert_eq!(epoch(&world, B), after, "the load lasts, the change is over");
}

#[test]
fn a_core_that_moves_far_away_makes_place_once() {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, C, Some("v"));
    world.run_for(Span::from_secs(60)).expect("nothing goes wrong");
    let before = epoch(&world, B);
    assert_eq!(cores(&world, B), [A, B], "all are as near as all");
    let far = LinkFaults { delay: Span::from_millis(80), ..LinkFaults::default() };
    for links in [Links::new(Place::Site(A), Place::Everywhere), Links::new(Place::Everywhere, Place::Site(A))] {
        world.strike(&Fault::Disturb { links, faults: far, span: None });
    }
    world.run_for(Span::from_secs(20)).expect("nothing goes wrong");
    let after = epoch(&world, B);
    assert_eq!((after, cores(&world, B).contains(&A)), (before.next(), false), "{:?}", cores(&world, B));
    assert_eq!(surely(&mut world, D, None), Some("v".into()));
    world.run_for(Span::from_secs(120)).expect("nothing goes wrong");
    assert_eq!(epoch(&world, B), after, "the distance lasts, the change is over");
}

#[test]
fn what_cores_do_for_others_moves_no_roles() {
    let mut world = following();
    world.run_for(Span::from_millis(500)).expect("nothing goes wrong");
    let before = epoch(&world, B);
    let end = world.now() + Span::from_secs(60);
    while world.now() < end {
        for site in [A, B, C, D] {
            surely(&mut world, site, None);
        }
    }
    assert_eq!((epoch(&world, B), cores(&world, B)), (before, vec![A, B]), "clients of all sites do the same");
}

/// The load of `site` in its last period, as `at` has heard it.
fn load_of(world: &mut World<Site>, at: SiteId, site: SiteId) -> Option<f64> {
    explained(world, at).sites.into_iter().find(|facts| facts.site == site).expect("a member").load
}

#[test]
fn a_core_that_is_kept_busy_is_slower_and_makes_place_and_is_as_before_once_that_is_over() {
    let mut world = following();
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    assert_eq!((cores(&world, A), load_of(&mut world, C, A)), (vec![A, B], Some(0.0)));
    let took = |world: &mut World<Site>| {
        let begun = world.now();
        assert!(transaction(world, A, None).is_ok());
        world.now().since(begun)
    };
    let before = took(&mut world);
    let absurd = ask(&mut world, A, Request::Admin(Admin::InjectLoad(InjectedLoad { percent: 10_001, span: None })));
    assert!(matches!(absurd, Answer::Failed(TxnError::Invalid(_))), "{absurd:?}");
    assert_eq!(
        ask(&mut world, A, Request::Admin(Admin::InjectLoad(InjectedLoad { percent: 2_000, span: Some(Span::from_secs(22)) }))),
        Answer::Done
    );
    // It begins at A and reads there, each time 100 ms later; 40 ms of that it waits for B in any case.
    let during = took(&mut world);
    assert!(during.as_micros() >= before.as_micros() + 150_000, "{before:?}, then {during:?}");
    world.run_for(Span::from_secs(17)).expect("nothing goes wrong");
    assert!(load_of(&mut world, C, A) >= Some(20.0), "its reports say so");
    let moved = explained(&mut world, B);
    assert!(!cores(&world, B).contains(&A), "{moved:?}");
    assert_eq!((moved.cause, moved.tally.changes.get(&Cause::Gain)), (Cause::Gain, Some(&1)));
    world.run_for(Span::from_secs(14)).expect("nothing goes wrong");
    assert_eq!(load_of(&mut world, C, A), Some(0.0), "the work for others is done");
    assert_eq!(surely(&mut world, D, None), Some("v".into()));
}

#[test]
fn what_a_busy_site_holds_is_served_at_once_when_it_is_busy_no_more() {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, A, Some("v"));
    for span in [None, Some(Span::from_secs(1))] {
        assert_eq!(ask(&mut world, A, Request::Admin(Admin::InjectLoad(InjectedLoad { percent: 10_000, span }))), Answer::Done);
        let begun: BTreeSet<RequestId> = (0..20).map(|_| world.submit(A, Request::Begin { mode: ReadMode::Locking })).collect();
        let served = |world: &mut World<Site>| world.take_replies().iter().filter(|reply| begun.contains(&reply.id)).count();
        world.run_for(Span::from_millis(900)).expect("nothing goes wrong");
        let early = served(&mut world);
        assert!(early <= 1, "half a second for each: {early}");
        if span.is_none() {
            world.submit(A, Request::Admin(Admin::InjectLoad(InjectedLoad { percent: 0, span })));
        }
        world.run_for(Span::from_secs(1)).expect("nothing goes wrong");
        assert_eq!(early + served(&mut world), begun.len(), "one after the other would take ten seconds");
    }
}

#[test]
fn cores_are_as_many_as_the_availability_asked_for_takes() {
    let auto = Some(Availability { wanted: 0.9995, of_site: 0.99 });
    let mut world = world_with(5, quorums(&[A], &[B, C, D, E]), adaptation(auto));
    surely(&mut world, C, Some("v"));
    world.strike(&Fault::Crash { place: Place::Site(E), down: Some(Span::from_secs(3)) });
    world.run_for(Span::from_secs(15)).expect("nothing goes wrong");
    assert_eq!(cores(&world, A).len(), 3, "three of which each is up 99 % of the time are 99.97 %");
}

#[test]
fn an_operator_changes_the_number_of_cores_and_later_configurations_keep_it() {
    let mut world = world_with(5, quorums(&[A, B], &[C, D, E]), adaptation(None));
    surely(&mut world, C, Some("v"));
    world.run_for(Span::from_secs(6)).expect("nothing goes wrong");
    for (asked, why) in [(0, "0 cores are asked for; 5 sites can have 1 to 5"), (6, "6 cores are asked for; 5 sites can have 1 to 5")] {
        assert_eq!(ask(&mut world, D, Request::Admin(Admin::Cores(Cores::Fixed(asked)))), Answer::Failed(TxnError::Invalid(why.into())));
    }
    assert_eq!(ask(&mut world, D, Request::Admin(Admin::Cores(Cores::Fixed(2)))), Answer::Done);
    assert_eq!(epoch(&world, D), Epoch::FIRST, "that is how it is");
    assert_eq!(ask(&mut world, D, Request::Admin(Admin::Cores(Cores::Fixed(3)))), Answer::Done);
    assert_eq!((cores(&world, D).len(), explained(&mut world, D).cores), (3, Cores::Fixed(3)));
    let lost = cores(&world, D)[0];
    let (here, slave) = (cores(&world, D)[1], D);
    world.run_for(Span::from_secs(6)).expect("nothing goes wrong");
    world.strike(&Fault::Crash { place: Place::Site(lost), down: None });
    world.run_for(Span::from_secs(6)).expect("nothing goes wrong");
    let now = explained(&mut world, here);
    assert_eq!((cores(&world, here).len(), now.cores, now.cause), (3, Cores::Fixed(3), Cause::Silence), "{now:?}");
    assert_eq!(ask(&mut world, slave, Request::Admin(Admin::Cores(Cores::Auto))), Answer::Done);
    assert_eq!(explained(&mut world, slave).cores, Cores::Auto);
    assert_eq!(surely(&mut world, slave, None), Some("v".into()));
}

#[test]
fn an_operator_is_told_what_would_change_and_why_nothing_does() {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, C, Some("v"));
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    let calm = explained(&mut world, C);
    let plan = calm.plan.expect("quorums follow what is measured");
    assert_eq!(plan.goal, None);
    assert!(!plan.why.is_empty() && plan.before > 0.0 && plan.verdict.gain <= plan.gain_min, "{plan:?}");
    assert_eq!((calm.planner, calm.sites.len()), (Some(A), 4));
    let roles: Vec<String> = calm.sites.iter().map(|facts| facts.role.to_string()).collect();
    assert_eq!(roles, ["core", "core", "slave", "slave"]);
    assert_eq!((&calm.sites[0].writes, calm.sites[3].reads.len()), (&BTreeSet::from([A, B]), 3), "all cores; two of two, and itself");
    assert!(calm.sites.iter().all(|facts| facts.up && facts.caught_up && facts.score.is_some()), "{:?}", calm.sites);
}
