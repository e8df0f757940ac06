//! The writes of a transaction before it commits, laid over what it reads.
//!
//! Source: Replicated Commit, section 3.2; the sessions of other protocols use it, too.

use rhumb_core::{Key, KeyRange, Row, Timestamp, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Buffered writes; `None` deletes.
#[derive(Clone, Debug, Default)]
pub struct WriteBuffer {
    writes: BTreeMap<Key, Option<Value>>,
    bytes: usize,
    /// By each write since the first savepoint: its key, and the write that it took the place of.
    replaced: Option<Vec<(Key, Option<Option<Value>>)>>,
}

/// A state of a buffer, to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    replaced: usize,
    bytes: usize,
}

impl WriteBuffer {
    /// Buffers a write. The last one of a key counts.
    pub fn write(&mut self, key: Key, value: Option<Value>) {
        self.bytes += key.0.len() + value.as_ref().map_or(0, |value| value.0.len());
        match &mut self.replaced {
            None => drop(self.writes.insert(key, value)),
            Some(replaced) => {
                let before = self.writes.insert(key.clone(), value);
                replaced.push((key, before));
            }
        }
    }

    /// The buffer as it is now. From here on it keeps what writes take the place of, which [`bytes`](Self::bytes) counts anyway.
    pub fn savepoint(&mut self) -> Savepoint {
        Savepoint { replaced: self.replaced.get_or_insert_default().len(), bytes: self.bytes }
    }

    /// Undoes all writes since the savepoint. Those made after it are void; it may be gone back to again.
    pub fn roll_back_to(&mut self, savepoint: Savepoint) {
        for (key, before) in self.replaced.iter_mut().flat_map(|replaced| replaced.drain(savepoint.replaced..).rev()) {
            match before {
                Some(value) => self.writes.insert(key, value),
                None => self.writes.remove(&key),
            };
        }
        self.bytes = savepoint.bytes;
    }

    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// The number of rows written.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// The bytes buffered over time, overwritten ones included, those of writes that were undone not.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The row of `key` as this transaction wrote it, if it did.
    pub fn row(&self, key: &Key) -> Option<Row> {
        self.writes.get(key).map(|value| Row { key: key.clone(), version: Timestamp::MAX, value: value.clone() })
    }

    /// Those of `keys` that were not written, each once, in their order.
    pub fn unwritten(&self, keys: &[Key]) -> Vec<Key> {
        let mut known = BTreeSet::new();
        keys.iter().filter(|key| !self.writes.contains_key(*key) && known.insert(*key)).cloned().collect()
    }

    /// The rows of `keys` as written or as `found`, up to the first that is neither.
    pub fn rows(&self, keys: &[Key], found: Vec<Row>) -> Vec<Row> {
        let found: BTreeMap<Key, Row> = found.into_iter().map(|row| (row.key.clone(), row)).collect();
        keys.iter().map_while(|key| self.row(key).or_else(|| found.get(key).cloned())).collect()
    }

    /// Lays the writes within `covered` over `rows`, live rows of that range in order (`reverse`: descending).
    pub fn overlay(&self, rows: Vec<Row>, covered: &KeyRange, reverse: bool) -> Vec<Row> {
        if covered.is_empty() || self.writes.range(covered.start.clone()..covered.end.clone()).next().is_none() {
            return rows;
        }
        let mut merged: BTreeMap<Key, Row> = rows.into_iter().map(|row| (row.key.clone(), row)).collect();
        for (key, value) in self.writes.range(covered.start.clone()..covered.end.clone()) {
            match value {
                Some(value) => merged.insert(key.clone(), Row { key: key.clone(), version: Timestamp::MAX, value: Some(value.clone()) }),
                None => merged.remove(key),
            };
        }
        if reverse { merged.into_values().rev().collect() } else { merged.into_values().collect() }
    }

    /// All writes, in key order.
    pub fn into_writes(self) -> Vec<(Key, Option<Value>)> {
        self.writes.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, value: &str) -> Row {
        Row { key: key.into(), version: Timestamp::from_bits(1), value: Some(value.into()) }
    }

    #[test]
    fn a_transaction_reads_back_its_own_writes() {
        let mut buffer = WriteBuffer::default();
        buffer.write("b".into(), Some("new".into()));
        buffer.write("c".into(), None);
        buffer.write("z".into(), Some("outside".into()));
        let covered = KeyRange::new("a".into(), "y".into());
        let seen = buffer.overlay(vec![row("a", "1"), row("c", "3"), row("d", "4")], &covered, false);
        assert_eq!(seen.iter().map(|row| row.key.to_string()).collect::<Vec<_>>(), ["a", "b", "d"]);
        assert_eq!(buffer.row(&"c".into()).map(|row| row.value), Some(None));
        assert_eq!(buffer.row(&"a".into()), None);
    }

    #[test]
    fn writes_are_undone_back_to_a_savepoint_as_often_as_is_asked() {
        let mut buffer = WriteBuffer::default();
        buffer.write("a".into(), Some("1".into()));
        buffer.write("b".into(), None);
        let first = buffer.savepoint();
        let (bytes, before) = (buffer.bytes(), buffer.clone().into_writes());
        for _ in 0..2 {
            buffer.write("a".into(), Some("2".into()));
            let second = buffer.savepoint();
            let between = buffer.clone().into_writes();
            buffer.write("a".into(), None);
            buffer.write("b".into(), Some("3".into()));
            buffer.write("c".into(), Some("4".into()));
            buffer.write("c".into(), Some("5".into()));
            buffer.roll_back_to(second);
            assert_eq!(buffer.clone().into_writes(), between);
            buffer.write("d".into(), None);
            buffer.roll_back_to(first);
            assert_eq!((buffer.bytes(), buffer.clone().into_writes()), (bytes, before.clone()));
        }
    }

    #[test]
    fn a_reverse_scan_stays_in_reverse_order() {
        let mut buffer = WriteBuffer::default();
        buffer.write("b".into(), Some("new".into()));
        let covered = KeyRange::new("a".into(), "y".into());
        let seen = buffer.overlay(vec![row("d", "4"), row("a", "1")], &covered, true);
        assert_eq!(seen.iter().map(|row| row.key.to_string()).collect::<Vec<_>>(), ["d", "b", "a"]);
    }
}
