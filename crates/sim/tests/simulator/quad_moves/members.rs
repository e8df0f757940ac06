//! Who takes part: sites that join, leave, are lost, or hear nobody.

use super::stage::*;
use rhumb_commit::reason::Reason;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::{SiteId, Span};
use rhumb_quad::quorums::Settings;
use rhumb_quad::{Adaptation, Admin, Answer, Cores, Leave, Request, Site, records};
use rhumb_sim::{Fault, Links, Place, World};

fn leave(sites: &[SiteId], lost: bool) -> Request {
    Request::Admin(Admin::Leave(Leave { sites: sites.iter().copied().collect(), lost }))
}

#[test]
fn a_site_joins_as_a_slave_and_another_leaves() {
    let mut world = world(4, quorums(&[A, B], &[C]));
    surely(&mut world, A, Some("v"));
    let refused = transaction(&mut world, D, None).expect_err("it is no member");
    let why = "site r3.0 takes no part in the quorums; connect to another site, or have it join (rhumb quorum join)";
    assert_eq!(refused.to_string(), why);
    assert_eq!(change(&mut world, A, goal(&[A, B], &[C, D])), Answer::Done);
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    assert_eq!(surely(&mut world, D, Some("w")), Some("v".into()));
    assert!(world.actor(D).is_some_and(Site::is_caught_up));
    assert_eq!(change(&mut world, D, goal(&[B, D], &[C])), Answer::Done);
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    assert!(transaction(&mut world, A, None).expect_err("it has left").to_string().contains("site r0.0 takes no part"));
    assert_eq!(surely(&mut world, C, None), Some("w".into()));
}

#[test]
fn a_site_that_asks_to_join_becomes_a_member() {
    let mut world = world_with(4, quorums(&[A, B], &[C]), adaptation(None));
    surely(&mut world, C, Some("v"));
    assert_eq!(ask(&mut world, D, Request::Admin(Admin::Join)), Answer::Done);
    world.run_for(Span::from_secs(5)).expect("nothing goes wrong");
    assert_eq!(surely(&mut world, D, None), Some("v".into()));
    assert!(!cores(&world, D).contains(&D), "it has not run for a period");
}

#[test]
fn a_site_that_joined_once_does_not_come_again_by_itself() {
    let mut world = world_with(4, quorums(&[A, B], &[C]), adaptation(None));
    assert_eq!(ask(&mut world, D, Request::Admin(Admin::Join)), Answer::Done);
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    let is_member = |world: &World<Site>| world.actor(B).expect("it is up").configuration().members().contains(&D);
    assert!(is_member(&world));
    assert_eq!(change(&mut world, A, goal(&[A, B], &[C])), Answer::Done);
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    assert!(!is_member(&world), "an operator has taken it out");
}

#[test]
fn an_operator_has_a_site_leave_and_join_again() {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, C, Some("v"));
    world.run_for(Span::from_secs(1)).expect("nothing goes wrong");
    let leave = |site, lost| leave(&[site], lost);
    let itself = Reason::from("a site does not take itself out; ask another member");
    let non_member = Reason::from("site ").then(E).then(" takes no part in the quorums already");
    for (site, why) in [(A, itself), (E, non_member)] {
        assert_eq!(ask(&mut world, A, leave(site, false)), Answer::Failed(TxnError::Invalid(why)));
    }
    // A core, and the planner.
    assert_eq!(ask(&mut world, C, leave(A, false)), Answer::Done);
    assert!(!cores(&world, C).contains(&A) && cores(&world, C).len() == 2, "as many cores as before");
    world.run_for(Span::from_secs(20)).expect("nothing goes wrong");
    assert!(transaction(&mut world, A, None).expect_err("it has left").to_string().contains("site r0.0 takes no part"));
    assert_eq!(surely(&mut world, D, Some("w")), Some("v".into()));
    assert_eq!(ask(&mut world, A, Request::Admin(Admin::Join)), Answer::Done);
    world.run_for(Span::from_secs(5)).expect("nothing goes wrong");
    assert_eq!(surely(&mut world, A, None), Some("w".into()));
    // One that is lost is not waited for, and the fewest are left that so many cores take.
    world.strike(&Fault::Crash { place: Place::Site(D), down: None });
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    assert_eq!(ask(&mut world, A, leave(D, true)), Answer::Done);
    assert_eq!(ask(&mut world, A, leave(C, false)), Answer::Done);
    let refused = "2 cores are asked for; 1 sites can have 1 to 1; set cores first";
    assert_eq!(ask(&mut world, A, leave(B, false)), Answer::Failed(TxnError::Invalid(refused.into())));
    assert_eq!(surely(&mut world, B, None), Some("w".into()));
}

/// Three cores, of which two die after a write; the others are slaves.
fn two_cores_die(sites: usize, slaves: &[SiteId]) -> World<Site> {
    let adaptation = adaptation(None).expect("there is one");
    let adaptation = Adaptation { settings: Settings { cores: 3, ..adaptation.settings }, ..adaptation };
    let mut world = world_with(sites, quorums(&[A, B, C], slaves), Some(adaptation));
    surely(&mut world, A, Some("v"));
    for site in [A, B] {
        world.strike(&Fault::Crash { place: Place::Site(site), down: None });
    }
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    world
}

#[test]
fn two_lost_cores_are_declared_lost_together() {
    let mut world = two_cores_die(5, &[D, E]);
    assert_eq!(ask(&mut world, D, leave(&[A], true)), waits_for(&[B]), "it would wait for B");
    assert_eq!(ask(&mut world, D, leave(&[], true)), Answer::Failed(TxnError::Invalid("no site is named that is to leave".into())));
    let too_many = "so many sites are declared lost that the rest could not know what they do: a majority of all must be left, or all slaves and a core";
    assert_eq!(ask(&mut world, D, leave(&[A, B, E], true)), Answer::Failed(TxnError::Invalid(too_many.into())));
    assert_eq!(ask(&mut world, D, leave(&[A, B], true)), Answer::Done);
    world.run_for(Span::from_millis(100)).expect("nothing goes wrong");
    assert_eq!(cores(&world, C), [C, D, E], "as many cores as before");
    assert_eq!(explained(&mut world, E).why.to_string(), "r0.0, r1.0 are lost, an operator says");
    assert_eq!(surely(&mut world, E, Some("w")), Some("v".into()));
}

#[test]
fn so_many_are_lost_that_there_are_fewer_cores() {
    let mut world = two_cores_die(4, &[D]);
    assert_eq!(ask(&mut world, D, leave(&[A, B], true)), Answer::Done, "another number could not be set before");
    world.run_for(Span::from_millis(100)).expect("nothing goes wrong");
    assert_eq!(explained(&mut world, C).cores, Cores::Fixed(2));
    assert_eq!(surely(&mut world, D, Some("w")), Some("v".into()));
}

#[test]
fn a_lost_core_is_replaced_and_comes_back_as_a_slave() {
    let mut world = world_with(5, quorums(&[A, B, C], &[D, E]), {
        let adaptation = adaptation(None).expect("there is one");
        Some(Adaptation { settings: Settings { cores: 3, ..adaptation.settings }, ..adaptation })
    });
    surely(&mut world, A, Some("v"));
    world.run_for(Span::from_secs(12)).expect("nothing goes wrong");
    world.strike(&Fault::Crash { place: Place::Site(A), down: None });
    world.run_for(Span::from_secs(4)).expect("nothing goes wrong");
    assert!(!cores(&world, B).contains(&A), "{:?}", cores(&world, B));
    assert_eq!(surely(&mut world, B, Some("w")), Some("v".into()));
    world.strike(&Fault::Restart { place: Place::Site(A) });
    world.run_for(Span::from_secs(4)).expect("nothing goes wrong");
    assert_eq!(surely(&mut world, A, None), Some("w".into()));
    assert_eq!(epoch(&world, A), epoch(&world, B));
}

#[test]
fn what_a_lost_site_has_missed_is_not_kept_for_ever() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    surely(&mut world, A, Some("v"));
    world.strike(&Fault::Crash { place: Place::Site(D), down: None });
    let epochs = 40;
    for turn in 0..epochs {
        let wish = if turn % 2 == 0 { goal(&[A, B], &[C, D]) } else { goal(&[A, B, C], &[D]) };
        assert_eq!(change(&mut world, A, wish), Answer::Done);
        surely(&mut world, A, Some("w"));
    }
    world.run_for(Span::from_secs(1)).expect("nothing goes wrong");
    let load = Load::Records { space: records::DIFFERENCES, from: Vec::new().into(), limit: 1_000, bytes: usize::MAX };
    let Ok(Loaded::Records { records: kept, .. }) = world.store(A).load(&load) else { panic!("records were asked for") };
    assert!(kept.len() < epochs, "{} differences of {epochs} epochs with one row each", kept.len());
    world.strike(&Fault::Restart { place: Place::Site(D) });
    world.run_for(Span::from_secs(3)).expect("nothing goes wrong");
    assert!(world.actor(D).is_some_and(Site::is_caught_up));
    assert_eq!(world.newest(D)[0].value, Some("w".into()));
}

#[test]
fn a_first_member_that_hears_nobody_does_not_keep_a_lost_core_in_place() {
    let mut world = world_with(5, quorums(&[B, C], &[A, D, E]), adaptation(None));
    surely(&mut world, B, Some("v"));
    // A has much to do, so that nobody thinks of it as a core: that it hears nobody is not known to the others.
    load(&mut world, A, 12);
    for site in [B, C, D, E] {
        let links = Links::new(Place::Site(site), Place::Site(A));
        world.strike(&Fault::Cut { links, span: None });
    }
    world.strike(&Fault::Crash { place: Place::Site(B), down: None });
    world.run_for(Span::from_secs(8)).expect("nothing goes wrong");
    assert!(!cores(&world, C).contains(&B), "{:?}", cores(&world, C));
    assert_eq!(surely(&mut world, C, None), Some("v".into()));
}

#[test]
fn a_core_that_hears_nobody_makes_place_though_it_is_heard() {
    let mut world = world_with(4, quorums(&[A, B], &[C, D]), adaptation(None));
    surely(&mut world, C, Some("v"));
    deafen(&mut world, A);
    world.run_for(Span::from_secs(10)).expect("nothing goes wrong");
    assert!(!cores(&world, B).contains(&A), "{:?}", cores(&world, B));
    assert_eq!(surely(&mut world, D, Some("w")), Some("v".into()));
    world.strike(&Fault::Heal);
    assert_eq!(surely(&mut world, A, None), Some("w".into()));
}

#[test]
fn a_site_that_hears_nobody_is_not_chosen_and_nobody_is_interrupted_for_it() {
    let mut world = world(4, quorums(&[A, B, C], &[D]));
    surely(&mut world, A, Some("v"));
    deafen(&mut world, D);
    world.run_for(Span::from_secs(2)).expect("nothing goes wrong");
    let silent = "too few cores of the new configuration are in reach";
    assert_eq!(change(&mut world, A, goal(&[D], &[A, B, C])), Answer::Failed(TxnError::Unavailable(silent.into())));
    assert_eq!((world.probe("quad.sealed"), surely(&mut world, B, None)), (0, Some("v".into())));
}
