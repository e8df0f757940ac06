//! A region that was away for long takes its stream back, by whichever of its sites is there, though a link is cut and others are busy.

use rhumb_catenae::{Answer, Config as Protocol, Request, Site};
use rhumb_commit::one_shot::operation::Operation;
use rhumb_core::{RttMatrix, SiteId, Span};
use rhumb_sim::{Config, Fault, Links, Place, World};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The coordinators of three regions, and the secondary of the first.
const A: SiteId = SiteId::new(0, 0);
const B: SiteId = SiteId::new(1, 0);
const C: SiteId = SiteId::new(2, 0);
const SECOND: SiteId = SiteId::new(0, 1);

fn world(sites: u16) -> World<Site> {
    let config = Config::new(RttMatrix::uniform(["a", "b", "c"].map(String::from).to_vec(), Span::from_millis(60)), sites);
    let topology = Arc::new(config.topology.clone());
    let epoch = Span::from_millis(20);
    let protocol =
        Protocol { epoch, tolerance_epochs: 20, window_epochs: 30, ahead_epochs: 60, deadline_epochs: 100, ..Protocol::default() };
    World::new(config, 1, move |site, _| Site::new(site, Arc::clone(&topology), protocol.clone()))
}

fn run_for(world: &mut World<Site>, span: Span) {
    world.run_for(span).expect("nothing breaks a promise");
}

/// Has clients of these sites add to counters ten times a second for so long, and returns the sites at which one of the last second was served.
fn served_at_last(world: &mut World<Site>, sites: &[SiteId], span: Span) -> BTreeSet<SiteId> {
    let (end, mut last) = (world.now() + span, BTreeSet::new());
    while world.now() < end {
        for site in sites {
            let key = format!("n{}", site.region.0).as_str().into();
            let id = world.submit(*site, Request::Run(Operation::Add { key, amount: 1 }.into()));
            if end.since(world.now()) <= Span::from_secs(1) {
                last.insert(id);
            }
        }
        run_for(world, Span::from_millis(100));
    }
    run_for(world, Span::from_secs(3));
    let served =
        world.take_replies().into_iter().filter(|reply| matches!(reply.answer, Some(Answer::Ran { .. })) && last.contains(&reply.id));
    served.map(|reply| reply.site).collect()
}

fn crash(world: &mut World<Site>, region: u16, sites: u16) {
    for site in 0..sites {
        world.strike(&Fault::Crash { place: Place::Site(SiteId::new(region, site)), down: None });
    }
    run_for(world, Span::from_micros(1));
}

fn restart(world: &mut World<Site>, site: SiteId) {
    world.strike(&Fault::Restart { place: Place::Site(site) });
    run_for(world, Span::from_micros(1));
}

#[test]
fn a_region_that_was_away_takes_its_stream_back_though_the_link_to_who_leads_it_stays_cut() {
    // Who leads passes over further every 15 epochs: whenever the region is back, it hears of that at once, or only later.
    let stuck: Vec<u64> = (0..15)
        .filter(|epochs| {
            let mut world = world(1);
            served_at_last(&mut world, &[A, B, C], Span::from_secs(1));
            crash(&mut world, 0, 1);
            served_at_last(&mut world, &[B, C], Span::from_secs(2));
            let links = Links::new(Place::Site(A), Place::Site(B));
            for links in [links, links.reversed()] {
                world.strike(&Fault::Cut { links, span: None });
            }
            // What is under way arrives: nobody is there to hear who leads.
            run_for(&mut world, Span::from_millis(100 + 20 * epochs));
            restart(&mut world, A);
            served_at_last(&mut world, &[A, B, C], Span::from_secs(5)).len() < 3
        })
        .collect();
    assert!(stuck.is_empty(), "clients of one region wait for ever if it is back after any of {stuck:?} epochs");
}

#[test]
fn a_secondary_that_comes_back_alone_leads_although_others_are_busy() {
    let mut world = world(2);
    served_at_last(&mut world, &[A, B, C], Span::from_secs(1));
    crash(&mut world, 0, 2);
    served_at_last(&mut world, &[B, C], Span::from_secs(2));
    restart(&mut world, SECOND);
    let all = [SECOND, B, C];
    assert_eq!(served_at_last(&mut world, &all, Span::from_secs(5)), BTreeSet::from(all));
    restart(&mut world, A);
    let all = [A, B, C];
    assert_eq!(served_at_last(&mut world, &all, Span::from_secs(5)), BTreeSet::from(all), "the coordinator takes it back");
}
