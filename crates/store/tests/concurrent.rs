//! One thread applies and syncs, another collects, others load: every load sees whole batches, and never an older state
//! than a load before it.

use rhumb_core::actor::{Collect, Space};
use rhumb_core::{Batch, Key, KeyRange, Load, Loaded, Timestamp, Value};
use rhumb_store::{DiskEngine, DiskOptions, Engine, MemoryEngine, Store};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const BATCHES: u64 = 2_000;
const KEYS: u64 = 5;

/// Version `n` of all keys, and a record.
fn batch(n: u64) -> Batch {
    let mut batch = Batch::new();
    for key in 0..KEYS {
        batch.put_version(Key::new(vec![key as u8]), Timestamp::from_bits(n), Some(Value::new(n.to_be_bytes().to_vec())));
    }
    batch.put_record(Space(1), vec![], n.to_be_bytes().to_vec());
    batch
}

/// The one version that all rows show.
fn version(loaded: Loaded) -> u64 {
    let Loaded::Rows { rows, more: false } = loaded else { panic!("{loaded:?}") };
    assert_eq!(rows.len() as u64, KEYS);
    assert!(rows.iter().all(|row| row.version == rows[0].version), "a batch shows in part: {rows:?}");
    rows[0].version.bits()
}

fn check<E: Engine>(store: &Store<E>) {
    let (applied, horizon) = (AtomicU64::new(1), AtomicU64::new(0));
    store.apply(&batch(1)).expect("writable");
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 2..=BATCHES {
                store.apply(&batch(n)).expect("writable");
                applied.store(n, Ordering::Release);
                if n % 100 == 0 {
                    store.sync().expect("syncs");
                }
            }
        });
        scope.spawn(|| {
            while applied.load(Ordering::Acquire) < BATCHES {
                horizon.store(applied.load(Ordering::Acquire).saturating_sub(10), Ordering::Release);
                let horizon = Timestamp::from_bits(horizon.load(Ordering::Acquire));
                store.collect(Collect { horizon, deletions: horizon }, 50).expect("writable");
            }
        });
        scope.spawn(|| {
            while applied.load(Ordering::Acquire) < BATCHES {
                for at in [&horizon, &applied].map(|at| at.load(Ordering::Acquire)) {
                    let keys = (0..KEYS).map(|key| Key::new(vec![key as u8])).collect();
                    let load = Load::Get { keys, at: Timestamp::from_bits(at), bytes: usize::MAX };
                    let loaded = store.load(&load).expect("readable");
                    // Else it was asked too late.
                    if horizon.load(Ordering::Acquire) <= at {
                        assert_eq!(version(loaded), at);
                    }
                }
            }
        });
        for reverse in [false, true] {
            let applied = &applied;
            scope.spawn(move || {
                let range = KeyRange::new(Key::default(), Key::new(vec![0xff]));
                let scan = Load::Scan { range, at: Timestamp::MAX, limit: 100, bytes: usize::MAX, reverse };
                let get =
                    Load::Get { keys: (0..KEYS).map(|key| Key::new(vec![key as u8])).collect(), at: Timestamp::MAX, bytes: usize::MAX };
                let mut seen = 0;
                while seen < BATCHES {
                    for load in [&scan, &get] {
                        let floor = applied.load(Ordering::Acquire).max(seen);
                        seen = version(store.load(load).expect("readable"));
                        assert!(seen >= floor, "version {seen} after {floor}");
                    }
                }
            });
        }
    });
}

#[test]
fn loads_of_the_memory_engine_see_whole_batches_in_order() {
    check(&Store::open(MemoryEngine::new()).expect("empty"));
}

#[test]
fn loads_of_the_disk_engine_see_whole_batches_in_order() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let options = DiskOptions { write_buffer_bytes: 16 << 10, unmerged_files: 1, ..DiskOptions::DEFAULT };
    check(&Store::open(DiskEngine::open(folder.path(), options).expect("a new folder")).expect("the format is known"));
}
