//! A region that is away for long: the others keep all that they say until it has come back and settled it, and it catches up from
//! that alone. No state is ever copied whole.

use rhumb_catenae::{Config as Protocol, Request, Site, records};
use rhumb_commit::one_shot::operation::Operation;
use rhumb_core::{Load, Loaded, RttMatrix, SiteId, Span};
use rhumb_sim::{Config, Fault, Place, World};
use std::sync::Arc;

const EPOCH: Span = Span::from_millis(20);
const AWAY: Span = Span::from_secs(60);
const HERE: SiteId = SiteId::new(0, 0);
const THERE: SiteId = SiteId::new(1, 0);
const GONE: SiteId = SiteId::new(2, 0);

fn world() -> World<Site> {
    let names = ["a", "b", "c"].map(String::from).to_vec();
    let config = Config::new(RttMatrix::uniform(names, Span::from_millis(60)), 1);
    let topology = Arc::new(config.topology.clone());
    let protocol = Protocol { epoch: EPOCH, tolerance_epochs: 20, window_epochs: 30, ahead_epochs: 60, ..Protocol::default() };
    World::new(config, 1, move |site, _| Site::new(site, Arc::clone(&topology), protocol.clone()))
}

/// A client of each of these sites adds to its counter ten times a second for so long. Returns how many were answered.
fn add(world: &mut World<Site>, sites: &[SiteId], span: Span) -> usize {
    let end = world.now() + span;
    let mut answered = 0;
    while world.now() < end {
        for site in sites {
            let key = format!("n{}", site.region.0).as_str().into();
            world.submit(*site, Request::Run(Operation::Add { key, amount: 1 }.into()));
        }
        world.run_for(Span::from_millis(100)).expect("nothing goes wrong");
        answered += world.take_replies().into_iter().filter(|reply| reply.answer.is_some()).count();
    }
    answered
}

/// Entries of streams on a site's disk.
fn entries(world: &World<Site>, site: SiteId) -> usize {
    let load = Load::Records { space: records::ENTRIES, from: Vec::new().into(), limit: usize::MAX, bytes: usize::MAX };
    let Ok(Loaded::Records { records, .. }) = world.store(site).load(&load) else { panic!("records were asked for") };
    records.len()
}

#[test]
fn what_a_region_misses_is_kept_for_it_however_long_it_is_away() {
    let mut world = world();
    add(&mut world, &[HERE, THERE, GONE], Span::from_secs(10));
    let usual = entries(&world, HERE);
    world.strike_at(world.now(), Fault::Crash { place: Place::Site(GONE), down: None });
    let answered = add(&mut world, &[HERE, THERE], AWAY);
    assert!(answered > 900, "the others go on: {answered}");
    // An entry for each epoch of the two that are there, as nothing is settled everywhere any more.
    let kept = entries(&world, HERE);
    let epochs = (AWAY.as_micros() / EPOCH.as_micros()) as usize;
    assert!(kept > 2 * epochs * 9 / 10 && usual < kept / 4, "{kept} entries, {usual} before");
    assert!(entries(&world, THERE) > 2 * epochs * 9 / 10);

    world.strike_at(world.now(), Fault::Restart { place: Place::Site(GONE) });
    add(&mut world, &[HERE, THERE, GONE], Span::from_secs(20));
    world.run_for(Span::from_secs(5)).expect("nothing goes wrong");
    assert!(world.probe("catenae.caught_up") > 2 * epochs as u64 * 9 / 10, "entry by entry");
    let all = [HERE, THERE, GONE];
    assert!(all.iter().all(|site| world.newest(*site) == world.newest(HERE)), "all regions hold the same");
    assert!(all.iter().all(|site| entries(&world, *site) < kept / 4), "and what all have settled is removed");
}
