//! Two transactions in each other's way, on the coordinator alone and over two sites.

use super::*;
use crate::bench::{Bench, add, identifier};
use crate::config::Config;
use crate::lone::Lone;
use rhumb_core::RegionId;

const FIRST: SiteId = SiteId::new(0, 0);
const SECOND: SiteId = SiteId::new(0, 1);
const STREAM: StreamId = StreamId::first(RegionId(0));

fn crossing() -> Config {
    Config { chain_sites: ChainSites::Every, ..Lone::config() }
}

fn order(places: [u16; 2]) -> Order {
    Order { epoch: Epoch(1), sequence: places.map(|place| identifier(STREAM, place)).to_vec() }
}

fn visit(place: u16, server: u16) -> Visit {
    Visit { transaction: identifier(STREAM, place), server }
}

#[test]
fn alone_whoever_comes_to_the_chain_server_first_comes_first() {
    let mut bench = Bench::new(FIRST);
    let log = bench.log_with(STREAM, vec![add(&["k"]), add(&["k"])]);
    let server = chain::server_of(&"k".into(), 4);
    let mut chains = Chains::default();
    let (vote, effects) = bench.act(|cx| chains.on_scheduled(Epoch(1), &log, cx));
    assert_eq!(vote, None);
    assert_eq!(effects, [0, 1].map(|place| format!("to r0.0: Visit e1.r0.{place} server {server}")));
    assert_eq!(bench.quietly(|cx| chains.on_visit(visit(1, server), cx)), None);
    assert_eq!(bench.quietly(|cx| chains.on_visit(visit(0, server), cx)), Some(order([1, 0])));
    assert_eq!(bench.quietly(|cx| chains.on_visit(visit(0, server), cx)), None, "it has voted");
    assert_eq!(bench.quietly(|cx| chains.on_end_of_epoch(&log, cx)), [], "and begins no more");
}

#[test]
fn only_the_site_that_speaks_for_the_region_runs_them() {
    let mut bench = Bench::new(SECOND);
    let log = bench.log_with(STREAM, vec![add(&["k"]), add(&["k"])]);
    assert_eq!(bench.quietly(|cx| Chains::default().on_scheduled(Epoch(1), &log, cx)), None);
}

#[test]
fn over_two_sites_the_resolver_grants_what_a_server_claims() {
    let key = ["k", "l", "m", "n"].into_iter().find(|key| chain::server_of(&(*key).into(), 4) % 2 == 1).expect("one of them");
    let server = chain::server_of(&key.into(), 4);
    let batch = || vec![add(&[key]), add(&[key])];
    let (mut first, mut second) = (Bench::with(FIRST, crossing()), Bench::with(SECOND, crossing()));
    let (log, log_of_second) = (first.log_with(STREAM, batch()), second.log_with(STREAM, batch()));
    let (mut chains, mut chains_of_second) = (Chains::default(), Chains::default());
    let (_, effects) = first.act(|cx| chains.on_scheduled(Epoch(1), &log, cx));
    let cross = |place| format!("to r0.1: Cross r0.0@0.000000 e1.r0.{place} server {server}");
    assert_eq!(effects, ["count catenae.crossing".into(), cross(0), cross(1)]);
    let crossing = Crossing { coordinator: FIRST, began: rhumb_core::Time::ZERO };
    let mut on_second = |act: &dyn Fn(&mut Chains, &mut Context<'_>) -> Option<Order>| second.act(|cx| act(&mut chains_of_second, cx)).1;
    let epochs = &log_of_second.epochs;
    let claimed = on_second(&|chains, cx| chains.on_cross(crossing, visit(0, server), epochs, cx));
    assert_eq!(claimed, [format!("to r0.0: Claim r0.0@0.000000 e1.r0.0 server {server} before e1.r0.1")]);
    let (vote, granted) = first.act(|cx| chains.on_claim(crossing, visit(0, server), vec![identifier(STREAM, 1)], &log.epochs, cx));
    assert_eq!((vote, granted), (None, vec![format!("to r0.1: Granted r0.0@0.000000 e1.r0.0 server {server}")]));
    let through = |place| [format!("to r0.0: Through r0.0@0.000000 e1.r0.{place}")];
    assert_eq!(on_second(&|chains, cx| chains.on_granted(crossing, visit(0, server), epochs, cx)), through(0));
    assert_eq!(on_second(&|chains, cx| chains.on_cross(crossing, visit(1, server), epochs, cx)), through(1), "nobody is open there");
    assert_eq!(chains.on_through(crossing, identifier(STREAM, 0), &log.epochs), None);
    assert_eq!(chains.on_through(crossing, identifier(STREAM, 1), &log.epochs), Some(order([0, 1])));
}

#[test]
fn chains_over_two_sites_that_do_not_end_are_run_alone() {
    let mut bench = Bench::with(FIRST, crossing());
    let log = bench.log_with(STREAM, vec![add(&["k"]), add(&["k"])]);
    let mut chains = Chains::default();
    bench.act(|cx| chains.on_scheduled(Epoch(1), &log, cx));
    let mut ticks = |count| {
        bench.act(|cx| {
            cx.ticks += count;
            chains.on_end_of_epoch(&log, cx)
        })
    };
    assert_eq!(ticks(CHAINS_PATIENCE_TICKS), (vec![], vec![]));
    let server = chain::server_of(&"k".into(), 4);
    let visits = [0, 1].map(|place| format!("to r0.0: Visit e1.r0.{place} server {server}"));
    let (_, effects) = ticks(1);
    assert_eq!((&effects[0], &effects[1..]), (&"count catenae.crossing_lost".to_string(), &visits[..]));
}
