//! What a crash leaves, byte by byte: in memory for every length of a torn tail, on disk for every cut of the journal.

use rhumb_core::actor::Space;
use rhumb_core::{Batch, Key, Load, Loaded, Timestamp, Value};
use rhumb_store::{DiskEngine, DiskOptions, Engine, MemoryEngine, Store};
use rhumb_testkit::folders::copy;
use std::fs;
use std::path::Path;

/// Batch number `n`: a row and a record, so that half a batch would show.
fn batch(n: u8) -> Batch {
    let mut batch = Batch::new();
    batch.put_version(Key::new(vec![n]), Timestamp::from_bits(u64::from(n)), Some(Value::new(vec![n; usize::from(n)])));
    batch.put_record(Space(n), vec![n], vec![n]);
    batch
}

/// How many batches the store holds: the first so many, each whole.
fn batches<E: Engine>(store: &Store<E>) -> u8 {
    let held = |n: u8| {
        let Loaded::Rows { rows, .. } =
            store.load(&Load::Get { keys: vec![Key::new(vec![n])], at: Timestamp::MAX, bytes: usize::MAX }).expect("readable")
        else {
            panic!("rows are asked")
        };
        let Loaded::Records { records, .. } =
            store.load(&Load::Records { space: Space(n), from: vec![].into(), limit: 1, bytes: usize::MAX }).expect("readable")
        else {
            panic!("records are asked")
        };
        assert_eq!(rows[0].value.is_some(), records.len() == 1, "batch {n} is torn");
        records.len() == 1
    };
    let count = (1..=9).take_while(|&n| held(n)).count() as u8;
    assert!(!(count + 1..=9).any(held), "a batch behind the first {count} survived");
    count
}

#[test]
fn a_crash_in_memory_keeps_what_was_synced_and_the_whole_batches_of_the_torn_tail() {
    /// Two batches synced, three more written; returns the unsynced bytes after each of those.
    fn written() -> (Store<MemoryEngine>, Vec<usize>) {
        let engine = MemoryEngine::new();
        let store = Store::open(engine).expect("empty");
        for n in 1..=2 {
            store.apply(&batch(n)).expect("in memory");
        }
        store.sync().expect("in memory");
        let unsynced = (3..=5).map(|n| {
            store.apply(&batch(n)).expect("in memory");
            store.engine().unsynced_bytes()
        });
        let unsynced = unsynced.collect();
        (store, unsynced)
    }
    let (_, unsynced) = written();
    for torn in 0..=unsynced[2] + 1 {
        let mut engine = written().0.into_engine();
        engine.crash(torn);
        let store = Store::open(engine).expect("a crash leaves a store");
        assert_eq!(usize::from(batches(&store)), 2 + unsynced.iter().filter(|&&end| end <= torn).count(), "torn at {torn}");
        store.apply(&batch(9)).expect("a store that crashed can be written");
        store.sync().expect("and synced");
        let mut engine = store.into_engine();
        engine.crash(0);
        let loaded =
            Store::open(engine).expect("a store").load(&Load::Get { keys: vec![Key::new(vec![9])], at: Timestamp::MAX, bytes: usize::MAX });
        assert!(matches!(loaded, Ok(Loaded::Rows { rows, .. }) if rows[0].value.is_some()));
    }
}

#[test]
fn a_crash_in_memory_keeps_what_was_folded_out_of_the_log() {
    let store = Store::open(MemoryEngine::new()).expect("empty");
    let big = Value::new(vec![1; 600_000]);
    for n in 1..=5 {
        let mut batch = batch(n);
        batch.put_version(Key::from("big"), Timestamp::from_bits(u64::from(n)), Some(big.clone()));
        store.apply(&batch).expect("in memory");
        store.sync().expect("in memory");
    }
    let mut engine = store.into_engine();
    engine.crash(0);
    assert_eq!(batches(&Store::open(engine).expect("a crash leaves a store")), 5);
}

fn open(path: &Path) -> Store<DiskEngine> {
    Store::open(DiskEngine::open(path, DiskOptions::DEFAULT).expect("opens")).expect("of a known format")
}

/// The copy of a folder in use is what the death of the process leaves: what was not synced is still in its memory.
#[test]
fn the_death_of_the_process_loses_nothing_that_was_synced() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (live, image) = (folder.path().join("live"), folder.path().join("image"));
    let store = open(&live);
    for n in 1..=4 {
        store.apply(&batch(n)).expect("writable");
        store.sync().expect("syncs");
    }
    store.apply(&batch(5)).expect("writable");
    assert_eq!(batches(&store), 5, "visible before it is durable");
    copy(&live, &image);
    let store = open(&image);
    assert_eq!(batches(&store), 4);
    store.apply(&batch(5)).expect("writable");
    drop(store);
    assert_eq!(batches(&open(&image)), 5);
}

/// The journal is cut, or its pages behind the cut are zeroes with some that made it to the disk: as a power loss may.
#[test]
fn the_journal_torn_anywhere_in_what_was_not_synced_opens_to_whole_batches() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (live, synced) = (folder.path().join("live"), folder.path().join("synced"));
    let store = open(&live);
    for n in 1..=2 {
        store.apply(&batch(n)).expect("writable");
    }
    store.sync().expect("syncs");
    copy(&live, &synced);
    for n in 3..=5 {
        store.apply(&batch(n)).expect("writable");
    }
    // One sync brings all three to the disk at once: until it returns, any part of them may be there.
    store.sync().expect("syncs");
    let journal = Path::new("engine/journal/1.jnl");
    let (before, after) = (fs::read(synced.join(journal)).expect("readable"), fs::read(live.join(journal)).expect("readable"));
    let start = before.iter().zip(&after).position(|(before, after)| before != after).unwrap_or(before.len());
    let end = after.len() - after.iter().rev().position(|&byte| byte != 0).expect("not empty");
    for cut in (start..end).step_by(7) {
        for hole in [0, 40] {
            let mut torn = after.clone();
            if hole == 0 {
                torn.truncate(cut)
            } else {
                torn[cut..end.min(cut + hole)].fill(0)
            }
            let image = folder.path().join("image");
            copy(&synced, &image);
            fs::write(image.join(journal), torn).expect("writable");
            let held = batches(&open(&image));
            assert!((2..=4).contains(&held), "{held} batches, cut at {cut}, hole of {hole}");
            fs::remove_dir_all(&image).expect("removable");
        }
    }
}
