//! TPC-C in a database of QuAD, real processes: a core that gets loaded makes place, and one that is killed as `kill -9` does is replaced and
//! comes back.
//!
//! ```text
//!   TPC-C, closed loop, in every region ──▶ load on a core ──▶ another one ──▶ kill that ──▶ the others go on, with another core
//!        ──▶ restart ──▶ it has all that it missed ──▶ the conditions of TPC-C hold
//! ```
//!
//! Nothing here is timed: each step waits until what it is about has happened.

use crate::common::{Demo, done};
use crate::load::{self, Running};
use rhumb_bench::client::postgres::Endpoint;
use rhumb_config::{Cluster, Quad, Wan};
use serde_json::Value;
use std::time::{Duration, Instant};

const REGIONS: [&str; 5] = ["california", "oregon", "virginia", "ireland", "singapore"];
/// Transactions that commit in a region before the next step.
const COMMITS: usize = 12;
/// Nothing takes longer, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(300);
const BREATH: Duration = Duration::from_millis(250);
/// Quorums follow after so many seconds, so that nobody waits for long.
const PERIOD_S: u32 = 2;

/// A demo with TPC-C loaded into a database of protocol `quad`, and where its sites are.
async fn start() -> (Demo, Vec<Endpoint>) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cluster.toml");
    let wan = Wan { profile: Some("paper_replicated_commit_5".into()), ..Wan::default() };
    let mut cluster = Cluster::on_loopback(&REGIONS.map(str::to_owned), Some(wan));
    cluster.quad = Quad { period_s: PERIOD_S, ..Quad::default() };
    std::fs::write(&file, cluster.to_toml()).expect("written");
    let demo = Demo::start_for_load(&["--cluster", &file.display().to_string()]);
    demo.connect(0).await.batch_execute("CREATE DATABASE shop WITH (protocol = 'quad', cores = 3)").await.expect("created");
    let running = demo.running();
    let endpoint = |site: &Value| {
        let (region, pg) = (site["region"].as_str().expect("text"), site["pg"].as_str().expect("text"));
        let (server, _) = pg.rsplit_once('/').expect("an address with a database");
        Endpoint::parse(&format!("{region}={server}/shop")).expect("an address")
    };
    let endpoints: Vec<Endpoint> = running["sites"].as_array().expect("sites").iter().map(endpoint).collect();
    load::init(&endpoints).await;
    (demo, endpoints)
}

/// What `region` says of the quorums.
fn explained(demo: &Demo, region: &str) -> Value {
    let text =
        tokio::task::block_in_place(|| done(&["quorum", "explain", &format!("--demo={}", demo.state()), "--site", region, "--json"]));
    serde_json::from_str(&text).expect("JSON")
}

/// What `region` says of `site`.
fn facts(demo: &Demo, region: &str, site: &str) -> Value {
    let explained = explained(demo, region);
    let sites = explained["sites"].as_array().expect("sites");
    sites.iter().find(|facts| facts["site"] == format!("{site}/0")).expect("it takes part").clone()
}

/// The regions of the cores, as `region` says.
fn cores(demo: &Demo, region: &str) -> Vec<&'static str> {
    REGIONS.into_iter().filter(|site| facts(demo, region, site)["role"] == "core").collect()
}

/// Waits until `met`.
async fn until(what: &str, mut met: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !met() {
        assert!(begun.elapsed() < PATIENCE, "never happened: {what}");
        tokio::time::sleep(BREATH).await;
    }
    println!("{what} after {:.1} s", begun.elapsed().as_secs_f64());
}

/// Waits until transactions have committed in each of `regions` from now on.
async fn go_on(load: &Running, what: &str, regions: &[usize]) {
    let begun = Instant::now();
    until(what, || {
        assert!(load.is_under_way(), "the clients gave up: {what}");
        regions.iter().all(|region| load.committed(*region, begun, Instant::now()) >= COMMITS)
    })
    .await;
}

fn chaos(demo: &Demo, what: &[&str]) {
    println!("{}", tokio::task::block_in_place(|| demo.chaos(what)).trim());
}

fn place(region: &str) -> usize {
    REGIONS.iter().position(|known| *known == region).expect("a region")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_core_is_loaded_and_another_killed_while_tpcc_runs() {
    let (demo, endpoints) = start().await;
    let load = load::start(&endpoints);
    go_on(&load, "all regions commit", &[0, 1, 2, 3, 4]).await;

    let busy = cores(&demo, "singapore")[0];
    chaos(&demo, &["load", busy, "--percent", "1000", "--for", "10m"]);
    until("the load is reported", || facts(&demo, "singapore", busy)["load"].as_f64().is_some_and(|load| load >= 10.0)).await;
    until("another core takes its place", || !cores(&demo, "singapore").contains(&busy)).await;
    go_on(&load, "all regions commit, with other cores", &[0, 1, 2, 3, 4]).await;
    chaos(&demo, &["load", busy, "--percent", "0"]);
    until("it has nothing to do for others any more", || facts(&demo, "singapore", busy)["load"].as_f64().is_some_and(|load| load < 10.0))
        .await;

    let lost = cores(&demo, busy)[0];
    let (here, others): (&str, Vec<usize>) = (busy, (0..REGIONS.len()).filter(|region| *region != place(lost)).collect());
    chaos(&demo, &["kill", lost]);
    until("a slave becomes a core in its place", || {
        let cores = cores(&demo, here);
        cores.len() == 3 && !cores.contains(&lost)
    })
    .await;
    go_on(&load, "the others commit", &others).await;
    chaos(&demo, &["restart", lost]);
    until("it is back, and has all that it missed", || {
        let own = facts(&demo, lost, lost);
        own["caught_up"] == true && explained(&demo, lost)["epoch"] == explained(&demo, here)["epoch"]
    })
    .await;
    go_on(&load, "all regions commit again", &[0, 1, 2, 3, 4]).await;
    println!("\n{}", load.stop());
    load::check(&endpoints).await;
    // By way of the one that was away, too.
    load::check(&endpoints[place(lost)..=place(lost)]).await;
}
