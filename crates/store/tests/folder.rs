//! Each refusal of a data folder: its message, and that it changes nothing.

use rhumb_core::{Batch, Key, Load, Loaded, Timestamp, Value};
use rhumb_store::{DiskEngine, DiskOptions, MemoryEngine, Store, StoreError};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn open(path: &Path) -> Result<Store<DiskEngine>, StoreError> {
    Store::open(DiskEngine::open(path, DiskOptions::DEFAULT)?)
}

/// Every file below `path` with its bytes.
fn content(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(path).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files.extend(content(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).expect("readable"));
        }
    }
    files
}

/// Opens `path`, which must be refused and left as it was.
fn refused(path: &Path) -> StoreError {
    let before = content(path);
    let error = open(path).err().expect("must be refused");
    assert_eq!(content(path), before, "the refusal changed something");
    error
}

fn put(store: &Store<DiskEngine>) {
    let mut batch = Batch::new();
    batch.put_version(Key::from("k"), Timestamp::from_bits(1), Some(Value::from("v")));
    store.apply(&batch).expect("writable");
    store.sync().expect("syncs");
}

fn holds_what_was_put(store: &Store<DiskEngine>) -> bool {
    let loaded = store.load(&Load::Get { keys: vec![Key::from("k")], at: Timestamp::MAX, bytes: usize::MAX }).expect("readable");
    matches!(loaded, Loaded::Rows { rows, .. } if rows[0].value == Some(Value::from("v")))
}

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder can be made")
}

#[test]
fn a_new_folder_says_its_format_in_a_plain_file() {
    let folder = temporary();
    drop(open(&folder.path().join("a/b")).expect("a new folder"));
    assert_eq!(fs::read_to_string(folder.path().join("a/b/FORMAT")).expect("readable"), "rhumb 13\n");
}

#[test]
fn a_folder_is_its_owners_alone_whatever_the_umask_and_an_open_one_is_closed() {
    let folder = temporary();
    let path = folder.path().join("a/b");
    drop(open(&path).expect("a new folder"));
    for made in [folder.path().join("a"), path.clone(), path.join("engine")] {
        assert_eq!(fs::metadata(&made).expect("there").permissions().mode() & 0o7777, 0o700, "{}", made.display());
    }
    assert_eq!(fs::metadata(path.join("FORMAT")).expect("there").permissions().mode() & 0o7777, 0o600);

    let before = folder.path().join("before");
    for content in ["none", "a store"] {
        fs::create_dir_all(&before).expect("made");
        fs::set_permissions(&before, fs::Permissions::from_mode(0o755)).expect("opened");
        drop(open(&before).expect(content));
        assert_eq!(fs::metadata(&before).expect("there").permissions().mode() & 0o7777, 0o700, "a folder with {content} in it");
    }
    let foreign = folder.path().join("foreign");
    fs::create_dir(&foreign).expect("made");
    fs::write(foreign.join("thesis.tex"), "precious").expect("written");
    fs::set_permissions(&foreign, fs::Permissions::from_mode(0o755)).expect("opened");
    refused(&foreign);
    assert_eq!(fs::metadata(&foreign).expect("there").permissions().mode() & 0o7777, 0o755, "what is refused is left as it is");
}

#[test]
fn an_unknown_format_is_refused() {
    let folder = temporary();
    put(&open(folder.path()).expect("a new folder"));
    fs::write(folder.path().join("FORMAT"), "rhumb 14\n").expect("writable");
    let message = format!(
        "{} holds data of format `rhumb 14`, but this version of rhumb knows only `rhumb 13`: run the version that wrote it",
        folder.path().display()
    );
    assert_eq!(refused(folder.path()).to_string(), message);
    fs::write(folder.path().join("FORMAT"), "rhumb 13\n").expect("writable");
    assert!(holds_what_was_put(&open(folder.path()).expect("the format is known again")));
}

#[test]
fn a_folder_of_somebody_else_is_refused() {
    let folder = temporary();
    fs::write(folder.path().join("thesis.tex"), "precious").expect("writable");
    let message = format!(
        "{} is not a data folder of rhumb (it is not empty and has no file FORMAT): name an empty or a new folder",
        folder.path().display()
    );
    assert_eq!(refused(folder.path()).to_string(), message);
}

#[test]
fn a_folder_that_lost_its_format_or_its_engine_is_refused() {
    let folder = temporary();
    put(&open(folder.path()).expect("a new folder"));
    fs::rename(folder.path().join("FORMAT"), folder.path().join("kept")).expect("renamed");
    assert!(matches!(refused(folder.path()), StoreError::NotRhumb { .. }));
    fs::rename(folder.path().join("kept"), folder.path().join("FORMAT")).expect("renamed");
    fs::rename(folder.path().join("engine"), folder.path().join("kept")).expect("renamed");
    assert!(matches!(refused(folder.path()), StoreError::Corrupt { detail, .. } if detail == "the folder `engine` is missing"));
    fs::rename(folder.path().join("kept"), folder.path().join("engine")).expect("renamed");
    assert!(holds_what_was_put(&open(folder.path()).expect("whole again")));
}

#[test]
fn the_making_of_a_folder_is_taken_up_where_a_crash_left_it() {
    let folder = temporary();
    fs::create_dir(folder.path().join("creating")).expect("made");
    fs::write(folder.path().join("creating/0.jnl"), "half made").expect("writable");
    fs::write(folder.path().join("FORMAT.new"), "rhu").expect("writable");
    put(&open(folder.path()).expect("made anew"));
    fs::rename(folder.path().join("engine"), folder.path().join("creating")).expect("renamed");
    assert!(holds_what_was_put(&open(folder.path()).expect("the last step is done")), "the crash was before the last rename");
}

#[test]
fn a_folder_in_use_is_refused() {
    let folder = temporary();
    let store = open(folder.path()).expect("a new folder");
    let message = format!("{} is in use by another process: stop that one first, or name another folder", folder.path().display());
    assert_eq!(open(folder.path()).err().expect("in use").to_string(), message);
    put(&store);
    drop(store);
    assert!(holds_what_was_put(&open(folder.path()).expect("free again")));
}

#[test]
fn a_path_that_is_a_file_is_refused() {
    let folder = temporary();
    let path = folder.path().join("file");
    fs::write(&path, "precious").expect("writable");
    let error = open(&path).err().expect("not a folder");
    assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    assert_eq!(fs::read_to_string(&path).expect("readable"), "precious");
}

/// No user may write there, not even the superuser, whom permissions do not stop.
#[test]
#[cfg(target_os = "linux")]
fn a_folder_that_cannot_be_written_is_refused() {
    let error = open(Path::new("/sys/kernel/rhumb")).err().expect("read-only");
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    assert!(error.to_string().starts_with("/sys/kernel/rhumb cannot be written"), "{error}");
}

#[test]
fn a_store_of_an_unknown_format_in_memory_is_refused() {
    use rhumb_store::{Engine, Write};
    let engine = MemoryEngine::new();
    engine.write(vec![Write::Put { key: b"\x00format"[..].into(), value: b"999"[..].into() }]).expect("in memory");
    assert!(matches!(Store::open(engine), Err(StoreError::UnknownFormat { found, .. }) if found == "999"));
}

#[test]
fn a_key_too_long_is_refused_and_the_longest_is_stored() {
    let folder = temporary();
    let store = open(folder.path()).expect("a new folder");
    let long = |bytes| {
        let mut batch = Batch::new();
        // Zeroes take two bytes each once escaped.
        batch.put_version(Key::new(vec![0; bytes]), Timestamp::from_bits(1), None);
        store.apply(&batch)
    };
    long(rhumb_store::KEY_BYTES_MAX).expect("fits");
    let error = long(rhumb_store::KEY_BYTES_MAX + 1).expect_err("does not fit");
    assert_eq!(error.to_string(), "a key of 32001 bytes is too long: 32000 is the most that can be stored");
}
