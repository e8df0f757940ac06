//! Flipped bytes in the engine's files: noticed at the opening or at the first read that meets them, never answered
//! wrongly, and nothing is changed or cut off by the refusal.

use rhumb_core::actor::Space;
use rhumb_core::{Batch, Key, KeyRange, Load, Loaded, Timestamp, Value};
use rhumb_store::{FjallEngine, FjallOptions, Store, StoreError};
use std::fs;
use std::path::{Path, PathBuf};

const ROWS: u16 = 400;

/// Write buffers so small that most rows are in table files.
const SMALL: FjallOptions = FjallOptions { write_buffer_bytes: 8 << 10, ..FjallOptions::DEFAULT };
/// Write buffers so large that all rows are in the journal alone.
const LARGE: FjallOptions = FjallOptions::DEFAULT;

fn open(path: &Path, options: FjallOptions) -> Result<Store<FjallEngine>, StoreError> {
    Store::open(FjallEngine::open(path, options)?)
}

fn fill(path: &Path, options: FjallOptions, rows: u16) -> Loaded {
    let store = open(path, options).expect("a new folder");
    for n in 0..rows {
        let mut batch = Batch::new();
        batch.put_version(Key::new(n.to_be_bytes().to_vec()), Timestamp::from_bits(1), Some(Value::new(vec![n as u8; 100])));
        batch.put_record(Space(1), n.to_be_bytes().to_vec(), vec![]);
        store.apply(&batch).expect("writable");
        if n % 10 == 0 {
            store.sync().expect("syncs");
        }
    }
    read_all(&store).expect("readable")
}

fn read_all(store: &Store<FjallEngine>) -> Result<Loaded, StoreError> {
    let range = KeyRange::new(Key::default(), Key::new(vec![0xff; 4]));
    store.load(&Load::Scan { range, at: Timestamp::MAX, limit: usize::MAX, reverse: false })
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

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).expect("below"));
        fs::create_dir_all(target.parent().expect("below")).expect("a folder can be made");
        fs::copy(&file, target).expect("copied");
    }
}

/// What came of one flipped byte.
#[derive(Debug, PartialEq)]
enum Outcome {
    Refused,
    Harmless,
    Wrong,
}

/// Opens and reads a copy of `whole` with the byte at `offset` of `file` flipped.
fn flip(whole: &Path, file: &Path, offset: usize, options: FjallOptions, expected: &Loaded) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder can be made");
    copy(whole, folder.path());
    let target = folder.path().join(file.strip_prefix(whole).expect("below"));
    let mut bytes = fs::read(&target).expect("readable");
    bytes[offset] ^= 0x55;
    fs::write(&target, &bytes).expect("writable");
    match open(folder.path(), options).and_then(|store| read_all(&store)) {
        Err(StoreError::Corrupt { place, .. }) => {
            assert!(place.starts_with(&folder.path().display().to_string()), "{place} names the place");
            assert_eq!(fs::read(&target).expect("readable"), bytes, "the refusal changed the file");
            Outcome::Refused
        }
        Err(error) => panic!("{} at {offset}: {error}", file.display()),
        Ok(found) if found == *expected => Outcome::Harmless,
        Ok(_) => Outcome::Wrong,
    }
}

#[test]
fn a_byte_flipped_anywhere_in_the_journal_is_refused_or_harmless() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let expected = fill(folder.path(), LARGE, 25);
    let journal = folder.path().join("engine/0.jnl");
    let length = fs::metadata(&journal).expect("there").len() as usize;
    let mut refused = 0;
    for offset in 0..length {
        match flip(folder.path(), &journal, offset, LARGE, &expected) {
            Outcome::Refused => refused += 1,
            Outcome::Harmless => {}
            Outcome::Wrong => panic!("byte {offset} of {length}"),
        }
    }
    assert!(refused > length * 9 / 10, "only {refused} of {length} were noticed");
}

#[test]
fn a_byte_flipped_anywhere_in_another_file_is_never_answered_wrongly() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let expected = fill(folder.path(), SMALL, ROWS);
    let files = files(&folder.path().join("engine"));
    assert!(files.iter().any(|file| file.components().any(|part| part.as_os_str() == "tables")), "{files:?}");
    for file in files.iter().filter(|file| file.extension().is_none_or(|extension| extension != "jnl")) {
        let length = fs::metadata(file).expect("there").len() as usize;
        for offset in (0..length).step_by((length / 16).max(1)) {
            let outcome = flip(folder.path(), file, offset, SMALL, &expected);
            println!("{} {offset}/{length} {outcome:?}", file.strip_prefix(folder.path()).unwrap().display());
        }
    }
}
