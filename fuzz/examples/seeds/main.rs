//! Writes `seeds/` anew: inputs that the decoders take, made by the encoders, for the fuzzer to begin with. Run it after a
//! change of format: `cargo run --example seeds` in this folder.

mod catenae;
mod quad;
mod quotas;
mod replicated_commit;

use rhumb_api::chaos::{Chaos, Direction};
use rhumb_core::record::encode;
use rhumb_core::{Batch, Body, Key, KeyRange, Row, SiteId, Time, Timestamp, TxnId, Value};
use rhumb_forecast::{LstmConfig, Order, Spec};
use rhumb_config::{
    Catenae, Clock, Cluster, ClusterRegion, Config, Coordinators, Http, Limits, Listen, OwnSite, Placement, Quad, Quotas, Region, Storage,
    Wan,
};
use rhumb_node::incarnation::Progress;
use rhumb_node::secret::Secret;
use rhumb_node::service::Service;
use rhumb_node::transport::frame::{Greeting, Greetings, Hello, Kind, NONCE_BYTES, Ping, Side, encode as framed};
use rhumb_store::{DiskEngine, DiskOptions, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::type_name;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    // What is left of an older format would be in the fuzzer's way.
    if seeds().exists() {
        fs::remove_dir_all(seeds()).expect("the seeds before these can be removed");
    }
    let heard = Progress { incarnation: 8, counts: [1, 2, 3, 4] };
    let hello = Hello { cluster: 7, site: SiteId::new(3, 1), to: SiteId::new(0, 0), incarnation: 9, heard };
    let greetings = Greetings { connecting: Greeting { nonce: [1; NONCE_BYTES] }, accepting: Greeting { nonce: [0; NONCE_BYTES] } };
    let hello = hello.seal(&Secret::of([0; 32]), &greetings, Side::Connecting);
    write("hello", "hello", &[&greetings.connecting.encode()[..], &hello].concat());
    let ping = Ping { number: 300, counts: [1, 2, 3, 4] };
    let messages = Service::ALL.map(|service| frame(Kind::Message(service), b"data")).concat();
    write("frame", "stream", &[frame(Kind::Ping, &ping.encode()), messages, frame(Kind::Pong, &ping.number.to_le_bytes())].concat());
    write_messages("replicated-commit", replicated_commit::notes(), replicated_commit::promises());
    write_messages("catenae", catenae::notes(), catenae::promises());
    let (notes, promises) = (quad::notes().into_iter(), quad::promises().into_iter());
    write_messages("quad", notes.map(|note| quad::EPOCH.says(note)).collect(), promises.map(|promise| quad::EPOCH.says(promise)).collect());
    write_messages("quotas", quotas::notes(), quotas::promises());
    write_all("record", "replicated-commit-", replicated_commit::records());
    write_all("record", "catenae-", catenae::records());
    write_all("record", "quad-", quad::records());
    write_all("quota_record", "", quotas::records());
    write("config", "two-regions.toml", config().to_toml().as_bytes());
    write("config", "cluster.toml", cluster().to_toml().as_bytes());
    write("matrix", "three-regions.csv", b"# ms\nregion,a,b,c\na,0.5,10,20\nb,11,0.5,30\nc,20,30,0.5\n");
    write("resp", "array", b"*5\r\n$7\r\nACQUIRE\r\n$2\r\nvm\r\n$1\r\n1\r\n$2\r\nID\r\n$3\r\na\0b\r\n");
    write("resp", "lines", b"ACQUIRE vm 1\r\n\nrelease 'v\\'m' \"\\x31\\n\"\n*0\r\n");
    for (name, chaos) in chaos() {
        write("chaos", name, serde_json::to_string(&chaos).expect("plain data").as_bytes());
    }
    for (name, spec) in models() {
        write("model", name, &saved(&spec));
    }
    write("tables", "workload.csv", b"# clients\nregion,clients,reads_per_txn\na,10,2.5\nc,1,0\n");
    write("tables", "prices.csv", b"region,replica_month,gigabyte_sent\na,100,0.09\nb,80.5,0.02\nc,90,0.1\n");
    write("tables", "groups.csv", b"region,provider\na,x\nb,y\nc,x\n");
    write("tables", "capacity.csv", b"region,clients\na,50\nc,0\n");
    write("tables", "places.csv", b"region,latitude,longitude\na,37.4,-122.0833\nb,-33.9,151.2\nc,0,180\n");
    write("series", "two-columns.csv", b"# VMs\ntime,vms\n0,91\n5,61.5\n10,-2e3\n");
    let (journal, manifest) = engine_files();
    write("store_journal", "three-batches", &journal);
    write("store_manifest", "of-rows", &manifest);
}

fn seeds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds")
}

fn write(target: &str, name: &str, bytes: &[u8]) {
    let folder = seeds().join(target);
    fs::create_dir_all(&folder).expect("a folder can be made");
    fs::write(folder.join(name), bytes).expect("writable");
}

fn write_all(target: &str, prefix: &str, seeds: impl IntoIterator<Item = (&'static str, Vec<u8>)>) {
    seeds.into_iter().for_each(|(name, bytes)| write(target, &format!("{prefix}{name}"), &bytes));
}

fn write_messages<N: Serialize, P: Serialize>(service: &str, notes: Vec<N>, promises: Vec<P>) {
    let messages = notes.into_iter().map(Body::Note).chain(promises.into_iter().map(Body::Promise));
    for (number, message) in messages.enumerate() {
        write("message", &format!("{service}-{number:02}"), &encode(&message));
    }
}

/// These values, with at least one of every variant of their type.
///
/// # Panics
///
/// If a variant is missing: it has come since, and wants a seed.
fn every<T: Serialize + DeserializeOwned>(values: Vec<T>) -> Vec<T> {
    // A variant's number is the first byte. Alone, it is too short a value if there are fields, and an error of another kind if there is no
    // such variant.
    let is_variant = |number: u8| !matches!(postcard::from_bytes::<T>(&[number]), Err(postcard::Error::SerdeDeCustom));
    let is_there = |number: u8| values.iter().any(|value| encode(value)[0] == number);
    let missing: Vec<u8> = (0..0x80).filter(|number| is_variant(*number) && !is_there(*number)).collect();
    assert!(missing.is_empty(), "no seed for variants {missing:?} of {}, counted from 0", type_name::<T>());
    values
}

fn frame(kind: Kind, data: &[u8]) -> Vec<u8> {
    let Ok(bytes) = framed(kind, Time::from_micros(1_700_000_000_000_000), |header| Ok::<_, Infallible>([&header, data].concat()));
    bytes
}

fn timestamp() -> Timestamp {
    Timestamp::from_time(Time::from_micros(1_700_000_000_000_000))
}

fn txn() -> TxnId {
    TxnId { began: timestamp(), gateway: SiteId::new(1, 0) }
}

fn range() -> KeyRange {
    KeyRange::new(Key::from("a"), Key::from("c"))
}

fn row() -> Row {
    Row { key: Key::from("a"), version: timestamp(), value: Some(Value::from("value")) }
}

fn writes() -> Vec<(Key, Option<Value>)> {
    vec![(Key::from("a"), Some(Value::from("value"))), (Key::from("b"), None)]
}

fn config() -> Config {
    let address = |port: u16| format!("127.0.0.1:{port}").parse().expect("an address");
    Config {
        data_dir: "data".into(),
        cluster: "seed".into(),
        secret_file: "cluster.secret".into(),
        chaos: true,
        tls: None,
        site: OwnSite { region: "california".into(), shard: 0 },
        listen: Listen { sql: address(5432), resp: Some(address(6379)), http: address(8080), peer: address(9001) },
        regions: ["california", "virginia"]
            .into_iter()
            .zip([9001, 9002])
            .map(|(name, port)| Region { name: name.into(), sites: vec![address(port)] })
            .collect(),
        wan: Some(Wan { profile: Some("paper_replicated_commit_5".into()), jitter_ms: 1.5, loss: 0.01, ..Wan::default() }),
        placement: Some(placement()),
        clock: Clock::default(),
        storage: Storage::default(),
        quotas: Quotas::default(),
        catenae: Catenae::default(),
        quad: Quad::default(),
        http: Http { names: vec!["rhumb.example".into()] },
        limits: Limits::default(),
    }
}

fn placement() -> Placement {
    let coordinators = Coordinators { read: "california".into(), commit: "california".into() };
    Placement { active: vec!["california".into()], passive: Vec::new(), coordinators: [("virginia".into(), coordinators)].into() }
}

/// The same regions in one file.
fn cluster() -> Cluster {
    let Config {
        data_dir, cluster, secret_file, chaos, listen, wan, placement, clock, storage, quotas, catenae, quad, http, limits, ..
    } = config();
    let regions = ["california", "virginia"].map(|name| ClusterRegion { name: name.into(), sites: vec![listen.clone()] }).into();
    Cluster { cluster, data_dir, secret_file, chaos, regions, wan, placement, clock, storage, quotas, catenae, quad, http, limits }
}

fn chaos() -> [(&'static str, Chaos); 4] {
    let region = || Some("virginia".to_owned());
    [
        ("cut.json", Chaos::Cut { region: region(), shard: Some(0), direction: Direction::In }),
        ("slow.json", Chaos::Slow { region: region(), shard: None, extra_ms: 12.5 }),
        ("load.json", Chaos::Load { percent: 300, for_s: Some(60.5) }),
        ("heal.json", Chaos::Heal { region: None, shard: None }),
    ]
}

/// Every kind of model, small.
fn models() -> [(&'static str, Spec); 7] {
    let arima = |season| Spec::Arima(Order { p: 2, d: 1, q: 1, season });
    let lstm = LstmConfig { hidden: 2, window: 4, passes: 1, ..LstmConfig::with_periods(&[6], 1) };
    [
        ("random-walk", Spec::RandomWalk),
        ("moving-average", Spec::MovingAverage(3)),
        ("exponential", Spec::Exponential),
        ("seasonal-naive", Spec::SeasonalNaive(6)),
        ("arima", arima(None)),
        ("seasonal-arima", arima(Some(6))),
        ("lstm", Spec::Lstm(lstm)),
    ]
}

/// Such a model, trained.
fn saved(spec: &Spec) -> Vec<u8> {
    let series: Vec<f64> = (0..120).map(|epoch| f64::from(epoch * 37 % 101)).collect();
    let mut model = spec.build();
    model.train(&series, &mut |_| ()).expect("the series is long enough");
    model.save()
}

/// A journal of the engine, without the zeroes that it ends with; and the manifest of its rows behind what points to it.
fn engine_files() -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let store = Store::open(DiskEngine::open(folder.path(), DiskOptions::DEFAULT).expect("a new folder")).expect("a new store");
    for key in ["a", "b", "c"] {
        let mut batch = Batch::new();
        batch.put_version(Key::from(key), timestamp(), Some(Value::from("value")));
        store.apply(&batch).expect("writable");
        store.sync().expect("syncs");
    }
    drop(store);
    let engine = folder.path().join("engine");
    let mut journal = fs::read(engine.join("journal/1.jnl")).expect("a journal");
    journal.truncate(journal.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1));
    let current = fs::read(engine.join("tree/current")).expect("it points to a manifest");
    let number = u64::from_le_bytes(*current.first_chunk().expect("it begins with the number of a manifest"));
    let manifest = fs::read(engine.join(format!("tree/v{number}"))).expect("a manifest");
    (journal, [current, manifest].concat())
}
