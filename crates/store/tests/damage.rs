//! Flipped bytes in the engine's files: noticed at the opening or at the first read that meets them, never answered
//! wrongly, and nothing is changed or cut off by the refusal.

use rhumb_core::actor::Space;
use rhumb_core::{Batch, Key, KeyRange, Load, Loaded, Timestamp, Value};
use rhumb_store::{DiskEngine, DiskOptions, Engine, MemoryEngine, Store, StoreError, Write};
use rhumb_testkit::folders::copy;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ROWS: u16 = 400;

/// Write buffers so small that most rows are in table files, and no merging: the engine's own thread never reads a
/// table file, so damage is met by whoever opens or reads, and the file is still there.
const SMALL: DiskOptions = DiskOptions { write_buffer_bytes: 8 << 10, unmerged_files: u8::MAX, ..DiskOptions::DEFAULT };
/// So many rows overflow a small write buffer: at least one more table file is written.
const ROWS_PER_TABLE: u16 = 100;
/// Write buffers so large that all rows are in the journal alone.
const LARGE: DiskOptions = DiskOptions::DEFAULT;

fn open(path: &Path, options: DiskOptions) -> Result<Store<DiskEngine>, StoreError> {
    Store::open(DiskEngine::open(path, options)?)
}

fn fill(path: &Path, options: DiskOptions, rows: u16) -> Answers {
    let store = open(path, options).expect("a new folder");
    for n in 0..rows {
        let mut batch = Batch::new();
        batch.put_version(Key::new(n.to_be_bytes().to_vec()), Timestamp::from_bits(1), Some(Value::new(vec![n as u8; 100])));
        batch.put_record(Space(1), "last", n.to_be_bytes().to_vec());
        store.apply(&batch).expect("writable");
        if n % 10 == 0 {
            store.sync().expect("syncs");
        }
        let due = usize::from((n + 1) / ROWS_PER_TABLE);
        while options == SMALL && tables(path) < due {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    read_all(&store).expect("readable")
}

/// All rows, and the record that every batch wrote anew.
type Answers = [Loaded; 2];

fn read_all(store: &Store<DiskEngine>) -> Result<Answers, StoreError> {
    let range = KeyRange::new(Key::default(), Key::new(vec![0xff; 4]));
    let rows = store.load(&Load::Scan { range, at: Timestamp::MAX, limit: usize::MAX, bytes: usize::MAX, reverse: false })?;
    Ok([rows, store.load(&Load::Records { space: Space(1), from: vec![].into(), limit: 2, bytes: usize::MAX })?])
}

fn files(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn is_table(file: &Path) -> bool {
    file.parent().is_some_and(|folder| folder.ends_with("tables"))
}

/// The number of table files of the store in `path`.
fn tables(path: &Path) -> usize {
    files(path).iter().filter(|file| is_table(file)).count()
}

/// What came of damage.
#[derive(Debug, PartialEq)]
enum Outcome {
    Refused,
    Harmless,
    Wrong,
}

/// Opens and reads a copy of `whole` in which `file` has other bytes, or none if it is removed.
fn harm(whole: &Path, file: &Path, bytes: Option<&[u8]>, options: DiskOptions, expected: &Answers) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder can be made");
    copy(whole, folder.path());
    let target = folder.path().join(file.strip_prefix(whole).expect("below"));
    match bytes {
        Some(bytes) => fs::write(&target, bytes).expect("writable"),
        None => fs::remove_file(&target).expect("removable"),
    }
    match open(folder.path(), options).and_then(|store| read_all(&store)) {
        Err(StoreError::Corrupt { place, .. }) => {
            assert!(place.starts_with(&folder.path().display().to_string()), "{place} names the place");
            assert_eq!(fs::read(&target).ok().as_deref(), bytes, "the refusal changed the file");
            Outcome::Refused
        }
        Err(error) => panic!("{}: {error}", file.display()),
        Ok(found) if found == *expected => Outcome::Harmless,
        Ok(_) => Outcome::Wrong,
    }
}

/// The length of a segment of the journal but for the zeroes behind it.
fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
}

fn flipped(bytes: &[u8], offset: usize) -> Vec<u8> {
    let mut flipped = bytes.to_vec();
    flipped[offset] ^= 0x55;
    flipped
}

#[test]
fn a_byte_flipped_anywhere_in_the_journal_is_refused_or_harmless() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let expected = fill(folder.path(), LARGE, 15);
    let journal = folder.path().join("engine/journal/1.jnl");
    let bytes = fs::read(&journal).expect("readable");
    let offsets: Vec<usize> = (0..used(&bytes)).step_by(5).collect();
    let mut refused = 0;
    for &offset in &offsets {
        match harm(folder.path(), &journal, Some(&flipped(&bytes, offset)), LARGE, &expected) {
            Outcome::Refused => refused += 1,
            Outcome::Harmless => {}
            Outcome::Wrong => panic!("byte {offset} of {}", bytes.len()),
        }
    }
    // Harmless is damage to the last mark, which nothing follows.
    assert!(refused > offsets.len() * 9 / 10, "only {refused} of {} were noticed", offsets.len());
}

/// The process died: no mark was left at the end, only those of the writes after each sync.
#[test]
fn damage_to_what_was_synced_before_the_last_sync_is_refused_after_a_crash() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (live, image) = (folder.path().join("live"), folder.path().join("image"));
    let store = open(&live, LARGE).expect("a new folder");
    let journal = live.join("engine/journal/1.jnl");
    let put = |n: u8| {
        let mut batch = Batch::new();
        batch.put_version(Key::new(vec![n]), Timestamp::from_bits(1), Some(Value::new(vec![n; 100])));
        store.apply(&batch).expect("writable");
        store.sync().expect("syncs");
        used(&fs::read(&journal).expect("there"))
    };
    let ends = [put(1), put(2), put(3)];
    let expected = read_all(&store).expect("readable");
    copy(&live, &image);
    let bytes = fs::read(image.join("engine/journal/1.jnl")).expect("readable");
    for offset in (ends[0] - 60..ends[1]).step_by(7) {
        let outcome = harm(&image, &image.join("engine/journal/1.jnl"), Some(&flipped(&bytes, offset)), LARGE, &expected);
        assert_eq!(outcome, Outcome::Refused, "byte {offset}, batches end at {ends:?}");
    }
}

#[test]
fn a_lost_journal_is_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let expected = fill(folder.path(), SMALL, ROWS);
    let mut segments = files(&folder.path().join("engine/journal"));
    segments.retain(|file| file.extension().is_some_and(|extension| extension == "jnl"));
    assert!(!segments.is_empty());
    for segment in &segments {
        assert_eq!(harm(folder.path(), segment, None, SMALL, &expected), Outcome::Refused, "{}", segment.display());
    }
}

#[test]
fn damage_to_any_other_file_is_never_answered_wrongly() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let expected = fill(folder.path(), SMALL, ROWS);
    let current = |file: &Path| {
        let tree = file.parent().expect("below");
        let number = fs::read(tree.join("current")).map(|bytes| bytes[0]).unwrap_or_default();
        !file.ends_with("spare") && (!tree.join("current").exists() || file.ends_with("current") || file.ends_with(format!("v{number}")))
    };
    let files = files(&folder.path().join("engine"));
    assert!(tables(folder.path()) >= usize::from(ROWS / ROWS_PER_TABLE), "{files:?}");
    let mut refused = 0;
    let mut tried = 0;
    for file in files.iter().filter(|file| current(file) && file.extension().is_none_or(|extension| extension != "jnl")) {
        let bytes = fs::read(file).expect("readable");
        let flips = (0..bytes.len()).step_by((bytes.len() / 12).max(1)).map(|offset| Some(flipped(&bytes, offset)));
        let others = [None, Some(Vec::new()), Some(bytes[..bytes.len() / 2].to_vec())];
        for (number, harmed) in flips.chain(others).enumerate() {
            let outcome = harm(folder.path(), file, harmed.as_deref(), SMALL, &expected);
            assert_ne!(outcome, Outcome::Wrong, "{} number {number}", file.display());
            tried += 1;
            refused += usize::from(outcome == Outcome::Refused);
        }
    }
    assert!(refused > tried * 9 / 10, "only {refused} of {tried} were noticed");
}

/// So many that a scan would seek past them, to a place that a malformed key does not have.
#[test]
fn versions_of_a_malformed_key_are_refused_by_a_scan_in_either_direction() {
    let engine = MemoryEngine::new();
    let version = |n: u8| [&b"\x01a\xff"[..], &[n; 8]].concat().into();
    engine
        .write((0..20).map(|n| Write::Put { key: version(n), value: b"\x01v".to_vec().into() }).collect())
        .expect("memory can be written");
    let store = Store::open(engine).expect("the format is known");
    let range = KeyRange::new(Key::default(), Key::new(vec![0xff]));
    for (at, reverse) in [(Timestamp::MAX, false), (Timestamp::MAX, true), (Timestamp::ZERO, false), (Timestamp::ZERO, true)] {
        let found = store.load(&Load::Scan { range: range.clone(), at, limit: 10, bytes: usize::MAX, reverse });
        assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{at} {reverse}: {found:?}");
    }
}
