//! A process that writes a store is killed, again and again: all that it said was synced is there, and what else is there is a prefix.
//!
//! Write buffers are small, so that segments of the journal are sealed, given up and used again all the time.

use rhumb_core::actor::{Collect, Space};
use rhumb_core::{Batch, Key, Load, Loaded, Timestamp, Value};
use rhumb_store::{DiskEngine, DiskOptions, Store};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const FOLDER: &str = "RHUMB_STORE_TO_KILL";
const OPTIONS: DiskOptions = DiskOptions { write_buffer_bytes: 32 << 10, ..DiskOptions::DEFAULT };
const ROUNDS: u64 = 12;
const KEYS: u64 = 50;

fn open(path: &Path) -> Store<DiskEngine> {
    Store::open(DiskEngine::open(path, OPTIONS).expect("opens")).expect("of a known format")
}

/// How many batches the store has had: each writes its number as a record, and as a version of one of the rows.
fn count(store: &Store<DiskEngine>) -> u64 {
    let load = Load::Records { space: Space(1), from: vec![].into(), limit: 1, bytes: usize::MAX };
    let Loaded::Records { records, .. } = store.load(&load).expect("readable") else { panic!("records are asked") };
    records.first().map_or(0, |(_, bytes)| u64::from_be_bytes(bytes.as_ref().try_into().expect("a number")))
}

fn batch(n: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put_version(key(n), Timestamp::from_bits(n), Some(Value::new(vec![n as u8; 200])));
    batch.put_record(Space(1), "count", n.to_be_bytes().to_vec());
    batch
}

fn key(n: u64) -> Key {
    Key::new((n % KEYS).to_be_bytes().to_vec())
}

/// Below this nobody reads: whatever a crash takes, what is synced is not.
fn horizon(synced: u64) -> u64 {
    synced.saturating_sub(KEYS)
}

/// Each row shows the last batch up to `count` that wrote it, and so it does at the horizon.
fn check(store: &Store<DiskEngine>, count: u64) {
    for at in [count, horizon(count)] {
        for n in at.saturating_sub(KEYS - 1).max(1)..=at {
            let load = Load::Get { keys: vec![key(n)], at: Timestamp::from_bits(at), bytes: usize::MAX };
            let Loaded::Rows { rows, .. } = store.load(&load).expect("readable") else { panic!("rows are asked") };
            assert_eq!((rows[0].version, rows[0].value.is_some()), (Timestamp::from_bits(n), true), "at {at} of {count} batches");
        }
    }
}

/// Not a test: the process that is killed.
#[test]
#[ignore = "is started, and killed, by the other one"]
fn writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = open(Path::new(&folder));
    let mut n = count(&store);
    check(&store, n);
    loop {
        for _ in 0..1 + n % 7 {
            n += 1;
            store.apply(&batch(n)).expect("writable");
        }
        store.sync().expect("syncs");
        store.collect(Collect { horizon: Timestamp::from_bits(horizon(n)), deletions: Timestamp::ZERO }, 100).expect("writable");
        println!("\nsynced {n}");
    }
}

#[test]
fn a_process_that_is_killed_at_any_moment_loses_nothing_that_was_synced() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut synced = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().expect("this one"))
            .args(["writes_until_it_is_killed", "--exact", "--ignored", "--nocapture", "--test-threads", "1"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut numbers = lines.by_ref().filter_map(|line| line.expect("text").strip_prefix("synced ")?.parse::<u64>().ok());
        // Another moment in each round.
        let until = synced + 300 + 37 * round;
        synced = numbers.find(|&number| number >= until).expect("it writes until it is killed");
        child.kill().expect("killed");
        child.wait().expect("dead");
        synced = numbers.last().unwrap_or(synced);
        let store = open(folder.path());
        let held = count(&store);
        assert!(held >= synced, "{held} batches are there, {synced} were synced");
        check(&store, held);
        synced = held;
    }
    let tables = std::fs::read_dir(folder.path().join("engine/tree/tables")).expect("a tree").count();
    let segments = std::fs::read_dir(folder.path().join("engine/journal")).expect("a journal").count();
    assert!(tables > 0, "write buffers were full");
    assert!(segments <= 5, "{segments} segments and spares: they are given up");
}
