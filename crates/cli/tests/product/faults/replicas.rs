//! What the replicas hold: everything acknowledged, and all the same.

use super::cluster::Cluster;
use super::probe::{self, Probe};
use crate::load;
use rhumb_bench::client::postgres::{Access, Endpoint, Failure, Session};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TABLES: [&str; 11] =
    ["warehouse", "district", "customer", "history", "new_order", "orders", "order_line", "item", "stock", "probe", "late"];

/// The tables whose rows of a warehouse only transactions of its own terminals write, and the column that names it.
const OF_WAREHOUSE: [(&str, &str); 6] = [
    ("warehouse", "w_id"),
    ("district", "d_w_id"),
    ("history", "h_w_id"),
    ("new_order", "no_w_id"),
    ("orders", "o_w_id"),
    ("order_line", "ol_w_id"),
];

/// How long a replica may take to catch up.
const CATCH_UP_MAX: Duration = Duration::from_secs(60);
/// How long a row may stay locked by transactions that lack the votes of the dead.
const UNLOCKED_MAX: Duration = Duration::from_secs(20);
const BREATH: Duration = Duration::from_millis(200);

/// Expects that all regions commit again, that nothing is lost, and that all replicas come to agree.
pub async fn recovered(cluster: &Cluster) {
    let since = Instant::now();
    for (region, probe) in cluster.probes().iter().enumerate() {
        while probe.acknowledged_from(since).len() < 2 {
            assert!(since.elapsed() < CATCH_UP_MAX, "{} does not commit again", cluster.name(region));
            tokio::time::sleep(BREATH).await;
        }
    }
    nothing_is_lost(cluster).await;
    agree(cluster).await;
    println!("recovered, and all replicas the same, {:.1} s after the restart", since.elapsed().as_secs_f64());
}

/// Expects of strong reads at every one of `alive` that they get through what only its own terminals write: they would
/// wait for any row that a transaction without an outcome keeps locked at so many sites that no majority is free of it.
/// What the dead were writing may wait for their return.
pub async fn nothing_stays_locked(cluster: &Cluster, alive: &[usize]) {
    let begun = Instant::now();
    let read = async |&region: &usize| {
        let client = cluster.connect(region).await;
        for (table, warehouse) in OF_WAREHOUSE {
            let count = format!("SELECT COUNT(*) FROM {table} WHERE {warehouse} = {}", load::home(region));
            while let Err(error) = client.simple_query(&count).await {
                assert!(begun.elapsed() < UNLOCKED_MAX, "{table} of {} stays locked: {error:?}", cluster.name(region));
                tokio::time::sleep(BREATH).await;
            }
        }
    };
    futures::future::join_all(alive.iter().map(read)).await;
    println!("no row of the others stays locked: read through in {:.1} s", begun.elapsed().as_secs_f64());
}

/// Expects of strong reads at every one of `alive` what is expected of them when nobody is dead; but the counter of a dead
/// region may be locked by the raise that it was at, and then no answer is the right one.
pub async fn nothing_is_hidden(cluster: &Cluster, alive: &[usize]) {
    let everywhere = alive.iter().flat_map(|&at| cluster.probes().iter().enumerate().map(move |(of, probe)| (at, of, probe)));
    let read = async |(at, of, probe): (usize, usize, &Arc<Probe>)| {
        let mut session = connect(&cluster.endpoints()[at]).await;
        let least = *probe.range().start();
        let counter = match probe::counter(&mut session, of).await {
            Err(Failure::Unavailable { .. }) if !alive.contains(&of) => return false,
            Err(failure) if !failure.is_retryable() => panic!("{failure:?}"),
            Err(_) => patiently("a strong read", async || probe::counter(&mut session, of).await).await,
            Ok(counter) => counter,
        };
        let may_be = least..=*probe.range().end();
        assert!(may_be.contains(&counter), "{} shows {counter} for {}; {may_be:?} is possible", cluster.name(at), cluster.name(of));
        true
    };
    let read = futures::future::join_all(everywhere.map(read)).await;
    let locked = read.iter().filter(|answered| !**answered).count();
    println!("no acknowledged commit is hidden; {locked} of {} reads meet a row that a dead gateway keeps locked", read.len());
}

/// Expects of a fresh strong read at every gateway that it shows each counter as it may be: with all that was
/// acknowledged before the read began, and nothing that failed.
async fn nothing_is_lost(cluster: &Cluster) {
    for endpoint in cluster.endpoints() {
        let mut session = connect(endpoint).await;
        let before: Vec<i64> = cluster.probes().iter().map(|probe| *probe.range().start()).collect();
        let counters = patiently("a strong read", async || probe::counters(&mut session, "").await).await;
        for ((probe, least), counter) in cluster.probes().iter().zip(before).zip(&counters) {
            let may_be = least..=*probe.range().end();
            assert!(may_be.contains(counter), "{} shows {counters:?}; {may_be:?} is possible", endpoint.display_url());
        }
        assert_eq!(counters.len(), cluster.probes().len());
    }
}

/// Expects of all replicas that they come to hold the same rows as of one moment, which is now.
async fn agree(cluster: &Cluster) {
    let moment = now(&cluster.endpoints()[0]).await;
    let mut first = None;
    for endpoint in cluster.endpoints() {
        let held = patiently("a stale read", async || contents(endpoint, &moment).await).await;
        let first = first.get_or_insert_with(|| held.clone());
        assert_eq!(&held, first, "{} as of {moment}: rows and their hash, by table", endpoint.display_url());
    }
}

/// A moment for `AS OF SYSTEM TIME`: now.
pub async fn now(endpoint: &Endpoint) -> String {
    let session = connect(endpoint).await;
    let rows = session.query_text("SELECT now()").await.expect("told");
    rows[0][0].1.clone().expect("no null")
}

pub async fn connect(endpoint: &Endpoint) -> Session {
    Session::connect(endpoint, &BTreeMap::new()).await.expect("connected")
}

/// How many rows each table has in this region's replica as of `moment`, and a hash of them.
async fn contents(endpoint: &Endpoint, moment: &str) -> Result<BTreeMap<&'static str, (usize, u64)>, Failure> {
    let mut session = connect(endpoint).await;
    session.begin_autocommit(Access::ReadOnly).await?;
    session.batch(&format!("BEGIN AS OF SYSTEM TIME '{moment}'")).await?;
    let mut contents = BTreeMap::new();
    for table in TABLES {
        let mut rows = session.query_text(&format!("SELECT * FROM {table}")).await?;
        rows.sort_unstable();
        let mut hasher = DefaultHasher::new();
        rows.hash(&mut hasher);
        contents.insert(table, (rows.len(), hasher.finish()));
    }
    session.batch("COMMIT").await?;
    Ok(contents)
}

/// Asks until there is an answer.
async fn patiently<T>(what: &str, mut ask: impl AsyncFnMut() -> Result<T, Failure>) -> T {
    let begun = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(failure) => assert!(begun.elapsed() < CATCH_UP_MAX && failure.is_retryable(), "{what}: {failure:?}"),
        }
        tokio::time::sleep(BREATH).await;
    }
}
