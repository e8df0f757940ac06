//! Directed runs of Catenae's replication: what is said fits a frame however it encodes, a cut link is got round, who catches up asks for
//! one page at a time, and what waits for a stream that stands still is bounded.

use rhumb_catenae::planted::Planted;
use rhumb_catenae::{Answer, Config as Protocol, Durability, Request, Site};
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::fields::{By, Change};
use rhumb_core::{Key, RttMatrix, Rules, SiteId, Span, Time};
use rhumb_sim::{Config, Fault, Links, Place, TOO_LARGE, World};
use std::sync::Arc;

const EPOCH: Span = Span::from_millis(20);
const A: SiteId = SiteId::new(0, 0);
const B: SiteId = SiteId::new(1, 0);
const C: SiteId = SiteId::new(2, 0);
const ALL: [SiteId; 3] = [A, B, C];

fn world_of(regions: usize, protocol: Protocol) -> World<Site> {
    by_rules(regions, protocol, Rules::HOLD)
}

fn by_rules(regions: usize, protocol: Protocol, rules: Rules<Planted>) -> World<Site> {
    let names = ["a", "b", "c", "d", "e"].map(String::from)[..regions].to_vec();
    let config = Config::new(RttMatrix::uniform(names, Span::from_millis(60)), 1);
    let topology = Arc::new(config.topology.clone());
    let protocol = Protocol { epoch: EPOCH, tolerance_epochs: 20, window_epochs: 30, ahead_epochs: 60, deadline_epochs: 500, ..protocol };
    World::new(config, 1, move |site, _| Site::new(site, Arc::clone(&topology), protocol.clone()).with_rules(rules))
}

fn world() -> World<Site> {
    world_of(3, Protocol::default())
}

fn run_for(world: &mut World<Site>, span: Span) {
    world.run_for(span).expect("nothing breaks a promise");
}

fn strike(world: &mut World<Site>, fault: Fault) {
    let now = world.now();
    world.strike_at(now, fault);
    run_for(world, Span::from_micros(1));
}

fn cut(world: &mut World<Site>, one: SiteId, other: SiteId, span: Span) {
    let links = |from, to| Links::new(Place::Site(from), Place::Site(to));
    for links in [links(one, other), links(other, one)] {
        strike(world, Fault::Cut { links, span: Some(span) });
    }
}

/// Adds one to a counter of each of these sites, ten times a second for so long. Returns how many were asked for, and how long each took
/// that ran.
fn add(world: &mut World<Site>, sites: &[SiteId], span: Span) -> (usize, Vec<Span>) {
    let end = world.now() + span;
    let (mut asked, mut began, mut took) = (0, std::collections::BTreeMap::new(), Vec::new());
    let mut collect = |world: &mut World<Site>, began: &std::collections::BTreeMap<u64, Time>| {
        for reply in world.take_replies() {
            if let Some(Answer::Ran { .. }) = reply.answer {
                took.push(reply.at.since(began[&reply.id]));
            }
        }
    };
    while world.now() < end {
        for site in sites {
            let key = format!("n{}", site.region.0).as_str().into();
            let now = world.now();
            began.insert(world.submit(*site, Request::Run(Operation::Add { key, amount: 1 }.into())), now);
            asked += 1;
        }
        run_for(world, Span::from_millis(100));
        collect(world, &began);
    }
    run_for(world, Span::from_secs(2));
    collect(world, &began);
    (asked, took)
}

/// Sets so many columns of so many rows to NULL: little is in it, and much says so.
fn nulls(table: usize, rows: usize, columns: u32) -> Request {
    let changes: Vec<Change> = (1_000..1_000 + columns).map(|field| Change { field, by: By::Setting(None) }).collect();
    let amend = |row| Operation::Amend { key: Key::from(format!("t{table}.{row:05}").as_str()), changes: changes.clone() };
    Request::Run(Transaction::new((0..rows).map(amend).collect()))
}

fn all_hold_the_same(world: &World<Site>, sites: &[SiteId]) -> bool {
    sites.iter().all(|site| world.newest(*site) == world.newest(sites[0]))
}

/// How far behind the epochs that `site` seals its settled ones are.
fn behind(world: &World<Site>, site: SiteId) -> u64 {
    world.actor(site).expect("it is up").status().behind()
}

/// Clients of a region set much to NULL, all in one epoch, while another region is down for a while. Returns how many messages no frame held.
fn set_to_null(rules: Rules<Planted>) -> (World<Site>, u64, usize) {
    let mut world = by_rules(3, Protocol::default(), rules);
    run_for(&mut world, Span::from_secs(1));
    strike(&mut world, Fault::Crash { place: Place::Site(C), down: None });
    (0..12).for_each(|table| _ = world.submit(A, nulls(table % 6, 1_000, 400)));
    run_for(&mut world, Span::from_secs(2));
    strike(&mut world, Fault::Restart { place: Place::Site(C) });
    run_for(&mut world, Span::from_secs(5));
    let ran = world.take_replies().iter().filter(|reply| matches!(reply.answer, Some(Answer::Ran { .. }))).count();
    let lost = world.probe(TOO_LARGE);
    (world, lost, ran)
}

#[test]
fn what_encodes_to_much_more_than_it_holds_is_replicated() {
    let (mut world, lost, ran) = set_to_null(Rules::HOLD);
    assert_eq!((ran, lost), (12, 0));
    assert!(ALL.iter().all(|site| behind(&world, *site) < 20), "all have caught up");
    let (asked, took) = add(&mut world, &ALL, Span::from_secs(1));
    assert_eq!(took.len(), asked);
    assert!(all_hold_the_same(&world, &ALL));
}

#[test]
fn a_batch_without_a_bound_is_caught() {
    let (_, lost, _) = set_to_null(Rules::breaking(Planted::BatchUnbounded));
    assert!(lost > 0);
}

#[test]
fn one_cut_link_costs_no_region_its_stream() {
    let mut world = world_of(3, Protocol::default());
    add(&mut world, &ALL, Span::from_secs(2));
    let before = world.probe("catenae.prepare");
    cut(&mut world, A, B, Span::from_secs(30));
    let (asked, took) = add(&mut world, &ALL, Span::from_secs(20));
    assert_eq!((took.len(), world.probe("catenae.prepare") - before), (asked, 0));
    let slowest = took.iter().max().expect("some ran");
    assert!(*slowest < Span::from_millis(500), "{slowest}");
}

#[test]
fn a_region_that_hears_one_other_alone_learns_what_is_chosen_from_it() {
    let mut world = world_of(5, Protocol::default());
    let [d, e] = [SiteId::new(3, 0), SiteId::new(4, 0)];
    let all = [A, B, C, d, e];
    add(&mut world, &all, Span::from_secs(2));
    for other in [C, d, e] {
        cut(&mut world, B, other, Span::from_secs(60));
    }
    let (asked, took) = add(&mut world, &[A, C, d, e], Span::from_secs(20));
    assert!(took.len() * 10 > asked * 9, "{} of {asked}", took.len());
    let settled = |site| world.actor(site).expect("it is up").settled().0;
    assert!(settled(A) < settled(B) + 60, "{} and {}", settled(A), settled(B));
}

#[test]
fn a_gap_is_asked_for_once_at_a_time() {
    let mut world = world();
    add(&mut world, &ALL, Span::from_secs(2));
    strike(&mut world, Fault::Crash { place: Place::Site(C), down: Some(Span::from_secs(20)) });
    add(&mut world, &[A, B], Span::from_secs(18));
    let before = world.probe("catenae.pulled");
    run_for(&mut world, Span::from_secs(5));
    let entries = world.probe("catenae.caught_up");
    let pulls = world.probe("catenae.pulled") - before;
    assert!(behind(&world, C) < 20);
    assert!(entries > 1_000 && pulls < entries / 20, "{pulls} pulls for {entries} entries");
}

#[test]
fn while_a_stream_stands_still_the_others_say_no_more_than_fits_in_memory() {
    let mut world = world_of(3, Protocol { durability: Durability::Region, ..Protocol::default() });
    add(&mut world, &ALL, Span::from_secs(2));
    strike(&mut world, Fault::Crash { place: Place::Site(C), down: None });
    // Nobody may take over without the region itself, for however long it is away.
    let ask_now_and_then = |world: &mut World<Site>, times| {
        for _ in 0..times {
            world.submit(A, Request::Run(Operation::Add { key: "n0".into(), amount: 1 }.into()));
            run_for(world, Span::from_secs(3));
        }
        world.take_replies().into_iter().filter(|reply| matches!(reply.answer, Some(Answer::Ran { .. }))).count()
    };
    ask_now_and_then(&mut world, 120);
    let held = |world: &World<Site>| world.actor(A).expect("it is up").held_entries();
    let after = held(&world);
    assert!(after > 1 << 14);
    let ran = ask_now_and_then(&mut world, 30);
    assert!(ran == 0 && held(&world) <= after, "{} entries after {after}", held(&world));
    let told = world.submit(A, Request::Run(Operation::Add { key: "n0".into(), amount: 1 }.into()));
    run_for(&mut world, Span::from_secs(1));
    let answer = world.take_replies().into_iter().find(|reply| reply.id == told).and_then(|reply| reply.answer);
    let Some(Answer::Failed(why)) = answer else { panic!("{answer:?}") };
    assert!(why.to_string().contains("Try again later"), "{why}");
    strike(&mut world, Fault::Restart { place: Place::Site(C) });
    run_for(&mut world, Span::from_secs(20));
    world.take_replies();
    let (asked, took) = add(&mut world, &ALL, Span::from_secs(2));
    assert_eq!(took.len(), asked);
    assert!(held(&world) < 1_000 && all_hold_the_same(&world, &ALL));
}

#[test]
fn a_cluster_over_a_wide_area_falls_quiet() {
    // Where word of an entry, by way of a nearer region, overtakes the entry itself.
    let config = Config::of_paper(5, 1);
    let topology = Arc::new(config.topology.clone());
    let sites: Vec<SiteId> = topology.sites().collect();
    let mut world = World::new(config, 1, move |site, _| Site::new(site, Arc::clone(&topology), Protocol::default()));
    add(&mut world, &sites, Span::from_secs(2));
    run_for(&mut world, Span::from_secs(20));
    let (events, pulls) = (world.events(), world.probe("catenae.pulled"));
    run_for(&mut world, Span::from_secs(10));
    let (events, pulls) = (world.events() - events, world.probe("catenae.pulled") - pulls);
    // Ticks alone are 5,000.
    assert!(events < 25_000 && pulls == 0, "{events} events and {pulls} pulls in ten seconds in which nobody asks");
}
