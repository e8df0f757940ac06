//! TPC-C in a database of Catenae, real processes under it killed as `kill -9` does: a region, and the coordinator of a region that has a
//! secondary one.
//!
//! ```text
//!   TPC-C, closed loop, in every region ──▶ kill ──▶ the others go on ──▶ restart ──▶ so does what was killed ──▶ its conditions hold
//! ```
//!
//! Nothing here is timed: each step waits until transactions have committed where they should.

use crate::common::{Demo, get};
use crate::load::{self, Running};
use rhumb_bench::client::postgres::Endpoint;
use std::time::{Duration, Instant};
use tokio_postgres::Client;

/// Transactions that commit in a region before the next step.
const COMMITS: usize = 12;
/// Nothing takes longer, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(240);
const BREATH: Duration = Duration::from_millis(50);

/// The sites of a demo: region, shard, address of the database, address for HTTP.
fn sites(demo: &Demo) -> Vec<(String, u64, String, String)> {
    let running = demo.running();
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    let site = |site: &serde_json::Value| {
        let pg = text(&site["pg"]);
        let (server, _) = pg.rsplit_once('/').expect("an address with a database");
        (text(&site["region"]), site["shard"].as_u64().expect("a number"), format!("{server}/shop"), text(&site["http"]))
    };
    running["sites"].as_array().expect("sites").iter().map(site).collect()
}

fn endpoint((region, _, url, _): &(String, u64, String, String)) -> Endpoint {
    Endpoint::parse(&format!("{region}={url}")).expect("an address")
}

/// A demo with TPC-C loaded into a database of protocol `catenae`; the first site of each region.
async fn start(arguments: &[&str]) -> (Demo, Vec<Endpoint>) {
    let demo = Demo::start_for_load(arguments);
    demo.connect(0).await.batch_execute("CREATE DATABASE shop WITH (protocol = 'catenae')").await.expect("created");
    let firsts: Vec<Endpoint> = sites(&demo).iter().filter(|(_, shard, ..)| *shard == 0).map(endpoint).collect();
    load::init(&firsts).await;
    (demo, firsts)
}

/// Waits until transactions have committed in each of `regions` from now on.
async fn go_on(load: &Running, what: &str, regions: &[usize]) {
    let begun = Instant::now();
    let lacks = |region: &&usize| load.committed(**region, begun, Instant::now()) < COMMITS;
    while let Some(region) = regions.iter().find(lacks) {
        assert!(begun.elapsed() < PATIENCE, "{what}: too little commits in region {region}");
        tokio::time::sleep(BREATH).await;
    }
    println!("{what}: {COMMITS} commits in each of {regions:?} after {:.1} s", begun.elapsed().as_secs_f64());
}

fn chaos(demo: &Demo, what: &[&str]) {
    tokio::task::block_in_place(|| demo.chaos(what));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_region_is_killed_and_back() {
    let (demo, endpoints) = start(&[]).await;
    let load = load::start(&endpoints);
    go_on(&load, "all regions", &[0, 1, 2, 3, 4]).await;
    chaos(&demo, &["kill", "virginia"]);
    go_on(&load, "without virginia", &[0, 1, 3, 4]).await;
    chaos(&demo, &["restart", "virginia"]);
    go_on(&load, "virginia is back", &[0, 1, 2, 3, 4]).await;
    println!("\n{}", load.stop());
    load::check(&endpoints).await;
    // What it missed it has: its own settled snapshot satisfies the conditions as well.
    load::check(&endpoints[2..3]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secondary_coordinator_takes_over_and_gives_back() {
    let (demo, endpoints) = start(&["--regions", "3", "--sites-per-region", "2"]).await;
    let all = sites(&demo);
    let secondary = all.iter().find(|(region, shard, ..)| region == "virginia" && *shard == 1).expect("a second site");
    let load = load::start(&endpoints);
    go_on(&load, "all regions", &[0, 1, 2]).await;
    chaos(&demo, &["kill", "virginia.0"]);
    go_on(&load, "without the coordinator of virginia", &[0, 1]).await;
    serves(&secondary.2).await;
    let beside = [endpoint(secondary)];
    let second = load::start(&beside);
    go_on(&second, "the secondary of virginia", &[0]).await;
    let metrics = get(secondary.3.trim_end_matches('/'), "/metrics");
    assert!(metrics.contains("event=\"catenae.led_own\""), "it leads: {metrics}");
    chaos(&demo, &["restart", "virginia.0"]);
    go_on(&load, "the coordinator of virginia is back", &[0, 1, 2]).await;
    println!("\n{}\n\n{}", second.stop(), load.stop());
    load::check(&endpoints).await;
    load::check(&endpoints[2..3]).await;
}

/// Waits until the site behind `url` writes.
async fn serves(url: &str) {
    let begun = Instant::now();
    loop {
        match written(url).await {
            Ok(()) => return,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "it never takes over: {error:?}"),
        }
        tokio::time::sleep(BREATH).await;
    }
}

async fn written(url: &str) -> Result<(), tokio_postgres::Error> {
    let (client, connection): (Client, _) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("UPDATE warehouse SET w_tax = w_tax + 0 WHERE w_id = 1").await
}
