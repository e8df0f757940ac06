//! The keys and values of the store in an engine that holds any others: reading and collecting never panics, reports them
//! as corrupt or does not meet them, and finds what is written beside them.

#![no_main]

use arbitrary::Arbitrary;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rhumb_core::actor::{Collect, Space};
use rhumb_core::{Batch, Key, KeyRange, Load, Loaded, Row, Timestamp, Value};
use rhumb_store::{Engine, MemoryEngine, Store, StoreError, Write};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    /// Keys and values; the key's last byte is counted up, as versions of one key would be, to make so many entries more.
    entries: Vec<(&'a [u8], &'a [u8], u8)>,
    start: &'a [u8],
    end: &'a [u8],
    at: u64,
    limit: u8,
    reverse: bool,
}

fuzz_target!(|input: Input<'_>| {
    let engine = MemoryEngine::new();
    engine.write(input.entries.iter().flat_map(writes).collect()).expect("memory can be written");
    let Some(store) = sound(Store::open(engine)) else { return };

    let (start, end) = (Key::new(input.start.to_vec()), Key::new(input.end.to_vec()));
    let (at, limit) = (Timestamp::from_bits(input.at), usize::from(input.limit));
    let row = Row { key: start.clone(), version: at, value: Some(Value::from("value")) };
    let mut batch = Batch::new();
    batch.put_version(row.key.clone(), row.version, row.value.clone());
    if sound(store.apply(&batch)).is_none() {
        return;
    }
    let versions = Load::Versions { versions: vec![(start.clone(), at)], bytes: usize::MAX };
    assert_eq!(sound(store.load(&versions)), Some(Loaded::Rows { rows: vec![row.clone()], more: false }));
    let get = Load::Get { keys: vec![start.clone()], at, bytes: usize::MAX };
    assert_eq!(sound(store.load(&get)), Some(Loaded::Rows { rows: vec![row], more: false }));
    let space = Space(input.limit);
    sound(store.load(&Load::Scan { range: KeyRange::new(start, end), at, limit, bytes: usize::MAX, reverse: input.reverse }));
    sound(store.load(&Load::Records { space, from: input.end.to_vec().into(), limit, bytes: usize::MAX }));
    let collect = Collect { horizon: at, deletions: at };
    while sound(store.collect(collect, limit)).is_some_and(|collected| collected.more) {}
});

fn writes<'a>((key, value, more): &(&'a [u8], &'a [u8], u8)) -> impl Iterator<Item = Write> + use<'a> {
    let (value, more) = (Bytes::copy_from_slice(value), more % 32);
    key.split_last().into_iter().flat_map(move |(last, rest)| {
        let value = value.clone();
        (0..=more).map(move |n| Write::Put { key: [rest, &[last.wrapping_add(n)]].concat().into(), value: value.clone() })
    })
}

/// What a call gave, unless it found the damage.
fn sound<T>(result: Result<T, StoreError>) -> Option<T> {
    match result {
        Ok(found) => Some(found),
        Err(StoreError::Corrupt { .. } | StoreError::UnknownFormat { .. } | StoreError::KeyTooLong { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}
