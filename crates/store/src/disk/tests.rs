//! The engine as a whole: disks that fail, stamps, and what is let go of.

use super::*;

fn put(engine: &DiskEngine, key: &'static str) -> Result<(), StoreError> {
    engine.write(vec![Write::Put { key: Bytes::from_static(key.as_bytes()), value: Bytes::from_static(&[7; 100]) }])
}

fn holds(engine: &DiskEngine, key: &str) -> bool {
    engine.view().get(key.as_bytes()).expect("readable").is_some()
}

/// The device may have what the failed sync was for, or not; the system remembers it either way.
#[test]
fn after_a_failed_sync_nothing_follows_and_a_restart_goes_by_what_the_device_has() {
    for device_has_it in [true, false] {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || DiskEngine::open(folder.path(), DiskOptions::DEFAULT);
        let journal = folder.path().join("engine/journal/1.jnl");
        let length = || std::fs::read(&journal).expect("there").iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let engine = open().expect("a new folder");
        engine.begin(7).expect("begun");
        put(&engine, "a").and_then(|()| engine.sync()).expect("a disk that works");
        let synced = length();
        let told = engine.syncs();
        put(&engine, "b").expect("written");
        engine.sync_fails.store(true, std::sync::atomic::Ordering::Relaxed);
        let error = engine.sync().expect_err("the disk fails").to_string();
        assert!(error.contains("Input/output error (os error 5)"), "{error}");
        let written = length();
        // Though the disk works again.
        assert!(matches!(engine.sync(), Err(StoreError::Poisoned { .. })));
        assert!(matches!(put(&engine, "c"), Err(StoreError::Poisoned { .. })));
        drop(engine);
        assert_eq!(length(), written, "no mark vouches for what may not be there");
        assert_eq!((told.durable(), told.is_closed()), (1, false), "nobody is told of the second");
        if !device_has_it {
            let mut bytes = std::fs::read(&journal).expect("readable");
            bytes[synced..].fill(0);
            std::fs::write(&journal, bytes).expect("written");
        }
        let engine = open().expect("whole as far as it was synced");
        assert_eq!((holds(&engine, "a"), holds(&engine, "b"), holds(&engine, "c")), (true, device_has_it, false));
        assert!(engine.stamp().is_some_and(|stamp| stamp.syncs >= told.durable()));
    }
}

/// Small write buffers, of which each takes a few rows.
const SMALL: DiskOptions = DiskOptions { write_buffer_bytes: 4 << 10, ..DiskOptions::DEFAULT };

fn fill(engine: &DiskEngine, rows: u32) -> Result<(), StoreError> {
    (0..rows).try_for_each(|row| {
        engine.write(vec![Write::Put { key: row.to_be_bytes().to_vec().into(), value: vec![7; 500].into() }])?;
        engine.sync()
    })
}

#[test]
fn a_store_whose_buffers_cannot_go_to_table_files_takes_no_more_writes_and_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = DiskEngine::open(folder.path(), SMALL).expect("a new folder");
    std::fs::remove_dir_all(engine.files().join("tree/tables")).expect("removable");
    // Whoever waits for room is told, too.
    let error = fill(&engine, 1_000).expect_err("no table file can be made");
    assert!(matches!(error, StoreError::Poisoned { .. }), "{error}");
    assert!(error.to_string().contains("No such file or directory"), "{error}");
    let error = engine.sync().expect_err("nothing follows");
    assert!(matches!(error, StoreError::Poisoned { .. }), "{error}");
}

#[test]
fn buffers_and_segments_are_let_go_of_once_table_files_hold_what_they_had() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = DiskEngine::open(folder.path(), SMALL).expect("a new folder");
    fill(&engine, 300).expect("a disk that works");
    let shared = &engine.shared;
    let mut writing = shared.lock();
    while !writing.sealed.is_empty() || writing.merge_due {
        writing = shared.wait(writing);
    }
    drop(writing);
    let held = shared.tree.get_version_history_lock().memtable_size_sum();
    assert!(held <= 2 * SMALL.write_buffer_bytes, "{held} bytes are held");
    let files = std::fs::read_dir(engine.files().join("journal")).expect("a journal").count();
    assert!(files <= 2, "{files} segments and spares");
    // Nor is a large file kept for the next segment.
    engine.write(vec![Write::Put { key: Bytes::from_static(b"large"), value: vec![7; 3 << 20].into() }]).expect("writable");
    fill(&engine, 300).expect("a disk that works");
    drop(engine);
    let engine = DiskEngine::open(folder.path(), SMALL).expect("whole");
    let lengths = std::fs::read_dir(engine.files().join("journal")).expect("a journal");
    let longest = lengths.map(|entry| entry.and_then(|entry| entry.metadata()).expect("there").len()).max();
    assert!(longest < Some(1 << 20), "{longest:?} bytes");
    assert!(holds(&engine, "large"));
}

#[test]
fn a_stamp_rises_with_each_group_that_is_synced_and_is_on_disk_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || DiskEngine::open(folder.path(), DiskOptions::DEFAULT).expect("its own");
    let engine = open();
    assert_eq!(engine.stamp(), None);
    put(&engine, "a").and_then(|()| engine.sync()).expect("written");
    assert_eq!((engine.stamp(), engine.syncs().durable()), (None, 0), "no site has begun to write it");
    engine.begin(7).expect("begun");
    let syncs = engine.syncs();
    for count in 1..=3 {
        put(&engine, "a").and_then(|()| put(&engine, "b")).expect("written");
        assert_eq!(syncs.durable(), count - 1, "not on disk yet");
        engine.sync().and_then(|()| engine.sync()).expect("synced");
        assert_eq!((engine.stamp(), syncs.durable()), (Some(Stamp { incarnation: 7, syncs: count }), count));
    }
    assert!(!syncs.is_closed());
    drop(engine);
    assert!(syncs.is_closed());
    for _ in 0..3 {
        assert_eq!(open().stamp(), Some(Stamp { incarnation: 7, syncs: 3 }), "to open it is no sync");
    }
    let engine = open();
    engine.begin(8).expect("begun");
    assert_eq!(engine.stamp(), Some(Stamp { incarnation: 8, syncs: 0 }));
}

/// A version of one of ten keys.
fn version(at: u64) -> Write {
    let prefix = crate::layout::key_prefix(&rhumb_core::Key::new(vec![(at % 10) as u8]));
    Write::Put { key: crate::layout::version_key(&prefix, Timestamp::from_bits(at)).into(), value: vec![1; 100].into() }
}

fn versions(view: &dyn View) -> usize {
    let (start, end) = crate::layout::all_versions();
    view.range(start, end, false).inspect(|entry| assert!(entry.is_ok(), "readable")).count()
}

#[test]
fn merges_drop_garbage_and_a_view_that_was_open_before_still_shows_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = DiskEngine::open(folder.path(), SMALL).expect("a new folder");
    (0..300).for_each(|at| engine.write(vec![version(at)]).expect("written"));
    let view = engine.view();
    engine.collect(Timestamp::from_bits(1_000_000));
    let mut at = 300;
    // The more is written, the more is merged.
    while versions(&*engine.view()) > 200 {
        engine.write(vec![version(at)]).expect("written");
        at += 1;
        assert!(at < 1_000_000, "nothing is dropped");
    }
    assert_eq!(versions(&*view), 300);
    let now = engine.view();
    for newest in at - 10..at {
        let Write::Put { key, .. } = version(newest) else { unreachable!() };
        assert!(now.get(&key).expect("readable").is_some(), "{newest} of {at}");
    }
}
