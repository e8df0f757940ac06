//! Measures what a durable request costs that writes nearly nothing: clients with one request outstanding each ask a toy
//! that keeps one balance and writes it for every request: 60 bytes, as a record under one key, or as a row of its own.
//!
//! ```text
//!   cargo run --release -p rhumb-node --example tiny_batches -- [CLIENTS] [OPERATIONS PER REQUEST] [SECONDS] [FOLDER] [rows]
//! ```

use bytes::Bytes;
use rhumb_config::{Config, Setup};
use rhumb_core::actor::{Actor, Batch, Effects, Input, Space};
use rhumb_core::{Key, Time, Timestamp, Value};
use rhumb_node::clock::Clock;
use rhumb_node::incarnation::Incarnations;
use rhumb_node::metrics::Metrics;
use rhumb_node::secret::Secret;
use rhumb_node::service::Service;
use rhumb_node::site::Site;
use rhumb_store::{DiskEngine, DiskOptions, Store};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Keeps one balance.
struct Balance {
    now: u64,
    /// Requests answered.
    version: u64,
    /// Writes a row per request, as commits do, not a record.
    rows: bool,
}

impl Actor for Balance {
    type Note = String;
    type Promise = String;
    type Timer = ();
    type Request = Vec<u64>;
    type Answer = Vec<u64>;

    fn step(&mut self, _: Time, input: Input<Balance>, fx: &mut Effects<Balance>) {
        let Input::Client { id, request } = input else { return };
        let outcomes = request.into_iter().map(|amount| {
            self.now = self.now.wrapping_add(amount);
            self.now
        });
        let outcomes = outcomes.collect();
        let mut record = vec![0; 60];
        record[..8].copy_from_slice(&self.now.to_le_bytes());
        self.version += 1;
        let mut batch = Batch::new();
        if self.rows {
            let key = Key::from(self.version.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string().as_str());
            batch.put_version(key, Timestamp::from_bits(self.version), Some(Value(record.into())));
        } else {
            batch.put_record(Space(1), Bytes::from_static(b"balance"), record);
        }
        fx.persist(batch).answer(id, outcomes);
    }
}

const SITE: &str = r#"
data_dir = "data"
site = { region = "a", shard = 0 }
listen = { sql = "127.0.0.1:0", http = "127.0.0.1:0", peer = "127.0.0.1:9001" }
regions = [{ name = "a", sites = ["127.0.0.1:9001"] }]
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| arguments.get(index).map_or(Ok(default), |text| text.parse());
    let (clients, operations, seconds) = (number(0, 50)?, number(1, 1)?, number(2, 5)?);
    let folder = arguments.get(3).map_or(Path::new("."), |path| Path::new(path)).join("tiny_batches.data");
    let balance = Balance { now: 0, version: 0, rows: arguments.get(4).is_some_and(|what| what == "rows") };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let asked = runtime.block_on(run(&folder, balance, clients, operations, Duration::from_secs(seconds)));
    std::fs::remove_dir_all(&folder)?;
    let rate = asked? as f64 / seconds as f64;
    println!("{clients} clients, {operations} per request: {rate:.0} requests/s, {:.0} operations/s", rate * operations as f64);
    Ok(())
}

/// Counts the requests answered within `time`.
async fn run(folder: &Path, balance: Balance, clients: u64, operations: u64, time: Duration) -> Result<u64, Box<dyn Error>> {
    let setup = Arc::new(Setup::new(Config::parse("site", SITE)?, "site", Path::new(""))?);
    let store = Store::open(DiskEngine::open(folder, DiskOptions::DEFAULT)?)?;
    let mut site = Site::new(setup, Secret::random()?, Incarnations::begin(folder)?, Clock::start(), Arc::new(Metrics::new()))?;
    let handle = site.host(Service::Quotas, store, balance)?;
    let end = Instant::now() + time;
    let mut tasks = JoinSet::new();
    for client in 0..clients {
        let handle = handle.clone();
        tasks.spawn(async move {
            let mut asked = 0;
            while Instant::now() < end {
                handle.ask(vec![client; operations as usize]).await?;
                asked += 1;
            }
            Ok::<u64, rhumb_node::runtime::Rejected>(asked)
        });
    }
    let mut asked = 0;
    while let Some(client) = tasks.join_next().await {
        asked += client??;
    }
    println!("{}", summary(&site.status().metrics()));
    site.stop().await;
    Ok(asked)
}

/// The syncs, and how many batches each made durable.
fn summary(metrics: &str) -> String {
    let shown = |line: &&str| line.starts_with("rhumb_store_sync") && (line.contains("_sum{") || line.contains("_count{"));
    metrics.lines().filter(shown).collect::<Vec<_>>().join("\n")
}
