//! The newest versions of keys that were read lately, in memory: what the store would answer, without asking it.
//!
//! ```text
//!   fill   a key's newest version was read from the store, and no write of that key is on its way
//!   note   a batch is on its way to the store: newer versions take the place of those held
//!   row    the answer, if the key is held and the reader asks for its newest version or may see it
//! ```
//!
//! It belongs to whoever alone queues the writes of a store, so that a write is noted before anything can be read behind it, and it goes
//! with the incarnation.
//!
//! Invariant: what is held is the newest version among those in the store and on their way there. Deletions are not held: they are
//! collected, and their keys then have no version at all; nor are large values.

use crate::scan::within;
use bytes::Bytes;
use quick_cache::unsync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};
use rhumb_core::actor::Op;
use rhumb_core::{Batch, Key, Load, Loaded, Row, Timestamp, Value};
use std::hash::{BuildHasherDefault, DefaultHasher};

/// Memory of a key beside its bytes and those of its value, about.
const EXTRA_BYTES: u64 = 128;
/// Rows with larger values are not held: they would take the place of many, and to read one costs little beside to tell it.
const VALUE_BYTES_MAX: usize = 64 << 10;
/// About what a row has, to begin with a table of the right size.
const ROW_BYTES: u64 = 256;

/// Newest versions, the most used ones of them once they have so many bytes.
pub struct Newest {
    rows: Cache<Key, Held, Weight, BuildHasherDefault<DefaultHasher>>,
}

/// The newest version of a key; zero without a value if it has none.
#[derive(Clone)]
struct Held {
    version: Timestamp,
    value: Option<Value>,
}

/// Weighs a key by the bytes that it has in memory.
#[derive(Clone)]
struct Weight;

impl Weighter<Key, Held> for Weight {
    fn weight(&self, key: &Key, held: &Held) -> u64 {
        EXTRA_BYTES + key.0.len() as u64 + held.value.as_ref().map_or(0, |value| value.0.len() as u64)
    }
}

/// Bytes of their own: those that were read may be a part of a block of a file, or of a message, which they would keep in memory.
fn own(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

fn own_value(value: &Value) -> Value {
    Value(own(&value.0))
}

impl Newest {
    /// None held yet, and about `bytes` bytes at the most. The same questions and writes in the same order leave the same.
    pub fn new(bytes: u64) -> Newest {
        let options = OptionsBuilder::new().weight_capacity(bytes).estimated_items_capacity((bytes / ROW_BYTES) as usize).build();
        let options = options.expect("both capacities are given");
        Newest { rows: Cache::with_options(options, Weight, BuildHasherDefault::default(), DefaultLifecycle::default()) }
    }

    /// `batch` is on its way to the store.
    pub fn note(&mut self, batch: &Batch) {
        for op in &batch.ops {
            let Op::PutVersion { key, at, value } = op else { continue };
            if self.rows.peek(key).is_none_or(|held| held.version > *at) {
                continue;
            }
            match value {
                Some(value) if value.0.len() <= VALUE_BYTES_MAX => {
                    let held = Held { version: *at, value: Some(own_value(value)) };
                    // It makes room for what has grown, unlike a change in place; what has no room at all takes the old version out with it.
                    let _ = self.rows.replace(Key(own(&key.0)), held, true);
                }
                Some(_) | None => drop(self.rows.remove(key)),
            }
        }
    }

    /// `row` is the newest version in the store, and no write of its key is on its way.
    pub(crate) fn fill(&mut self, row: &Row) {
        let is_deleted = row.value.is_none() && row.version > Timestamp::ZERO;
        if !is_deleted && row.value.as_ref().is_none_or(|value| value.0.len() <= VALUE_BYTES_MAX) {
            let key = Key(own(&row.key.0));
            self.rows.insert(key, Held { version: row.version, value: row.value.as_ref().map(own_value) });
        }
    }

    /// True if the newest version of `key` is known.
    pub(crate) fn holds(&self, key: &Key) -> bool {
        self.rows.contains_key(key)
    }

    /// The newest version of `key` at or below `at`, if that is known.
    pub(crate) fn row(&self, key: &Key, at: Timestamp) -> Option<Row> {
        let held = self.rows.get(key).filter(|held| held.version <= at)?;
        Some(Row { key: key.clone(), version: held.version, value: held.value.clone() })
    }

    /// The whole answer to `load`, if that is known.
    pub fn answer(&self, load: &Load) -> Option<Loaded> {
        match load {
            Load::Get { keys, at, bytes } => within(keys.iter().map(|key| self.row(key, *at).ok_or(())), *bytes).ok(),
            Load::Stamps { keys } => {
                let stamp = |key| self.row(key, Timestamp::MAX).map(|row| Row { value: None, ..row });
                Some(Loaded::Rows { rows: keys.iter().map(stamp).collect::<Option<_>>()?, more: false })
            }
            Load::ScanStamps { .. } | Load::Scan { .. } | Load::Versions { .. } | Load::Records { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 50_000;

    fn key(number: u64) -> Key {
        Key::new(number.to_be_bytes().to_vec())
    }

    fn value(bytes: usize) -> Option<Value> {
        Some(Value::new(vec![7; bytes]))
    }

    fn written(number: u64, bytes: usize) -> Batch {
        let mut batch = Batch::new();
        batch.put_version(key(number), Timestamp::from_bits(2), value(bytes));
        batch
    }

    #[test]
    fn a_row_is_held_in_bytes_of_its_own() {
        let mut newest = Newest::new(BYTES);
        let read = Row { key: key(1), version: Timestamp::from_bits(1), value: value(100) };
        newest.fill(&read);
        let bytes = |row: &Row| row.value.as_ref().expect("it has one").0.as_ptr();
        let held = newest.row(&key(1), Timestamp::MAX).expect("held");
        assert_ne!(bytes(&held), bytes(&read), "it would keep the block that it was read from");
    }

    #[test]
    fn rows_that_grow_make_room_and_large_ones_are_not_held() {
        let mut newest = Newest::new(BYTES);
        for number in 0..100 {
            newest.fill(&Row { key: key(number), version: Timestamp::from_bits(1), value: value(1) });
        }
        assert!((0..100).all(|number| newest.holds(&key(number))));
        for number in 0..100 {
            newest.note(&written(number, 1_000));
            assert!(newest.rows.weight() <= BYTES, "{number}: {}", newest.rows.weight());
        }
        let held: Vec<u64> = (0..100).filter(|number| newest.holds(&key(*number))).collect();
        assert!(held.len() > 20, "{held:?}");

        newest.note(&written(held[0], VALUE_BYTES_MAX + 1));
        assert!(!newest.holds(&key(held[0])));
        newest.fill(&Row { key: key(held[0]), version: Timestamp::from_bits(2), value: value(VALUE_BYTES_MAX + 1) });
        assert!(!newest.holds(&key(held[0])));
    }
}
