//! Batches that go to the engine as one write.
//!
//! What a group costs is decided by the keys it writes, not by the batches in it: of several writes of a key only the last
//! one counts, since nobody can see the store, not even after a crash, with a part of a group in it.

use crate::engine::Write;
use crate::error::StoreError;
use crate::layout;
use bytes::Bytes;
use rhumb_core::actor::Op;
use rhumb_core::{Batch, Key, Timestamp};
use std::collections::BTreeMap;

/// The longest key of a row or a record, in bytes. Escaped and in its place it fits into the 65,535 bytes of an engine's key.
pub const KEY_BYTES_MAX: usize = 32_000;

/// Batches to be applied as one, by [`Store::apply_group`](crate::Store::apply_group).
#[derive(Debug, Default)]
pub struct Group {
    /// The last write of each key of the engine; `None` removes it.
    writes: BTreeMap<Bytes, Option<Bytes>>,
    /// The versions written.
    versions: Vec<Timestamp>,
    /// The bytes of keys and values that were added.
    bytes: usize,
}

impl Group {
    /// Adds `batch` behind those that are in it. If the batch cannot be stored, the group is as it was.
    pub fn add(&mut self, batch: &Batch) -> Result<(), StoreError> {
        for op in &batch.ops {
            let (Op::PutVersion { key: Key(key), .. } | Op::PutRecord { key, .. } | Op::DeleteRecord { key, .. }) = op;
            if key.len() > KEY_BYTES_MAX {
                return Err(StoreError::KeyTooLong { bytes: key.len(), bytes_max: KEY_BYTES_MAX });
            }
        }
        for op in &batch.ops {
            match op {
                Op::PutVersion { key, at, value } => {
                    let prefix = layout::key_prefix(key);
                    self.put(layout::version_key(&prefix, *at), layout::encode_value(value.as_ref()));
                    if value.is_none() {
                        self.put(layout::deletion_key(*at, &prefix), Bytes::new());
                    }
                    self.versions.push(*at);
                }
                Op::PutRecord { space, key, bytes } => self.put(layout::record_key(*space, key), bytes.clone()),
                Op::DeleteRecord { space, key } => {
                    self.writes.insert(layout::record_key(*space, key).into(), None);
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, key: Vec<u8>, value: Bytes) {
        self.bytes += key.len() + value.len();
        self.writes.insert(key.into(), Some(value));
    }

    /// The number of keys of the engine that it writes.
    pub fn keys(&self) -> usize {
        self.writes.len()
    }

    /// The bytes of what was added, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The versions it writes, and the writes that do.
    pub(crate) fn into_parts(self) -> (Vec<Timestamp>, Vec<Write>) {
        let write = |(key, value)| match value {
            Some(value) => Write::Put { key, value },
            None => Write::Remove { key },
        };
        (self.versions, self.writes.into_iter().map(write).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::actor::Space;

    #[test]
    fn of_several_writes_of_a_key_the_last_one_counts() {
        let mut group = Group::default();
        let mut add = |change: fn(&mut Batch)| {
            let mut batch = Batch::new();
            change(&mut batch);
            group.add(&batch).expect("short keys");
        };
        add(|batch| batch.put_record(Space(1), "a", "1"));
        add(|batch| {
            batch.put_record(Space(1), "a", "2");
            batch.put_record(Space(1), "b", "1");
            batch.delete_record(Space(1), "c");
        });
        add(|batch| {
            batch.delete_record(Space(1), "b");
            batch.put_record(Space(1), "c", "1");
            batch.put_record(Space(2), "a", "3");
        });
        let key = |space, key: &str| Bytes::from(layout::record_key(Space(space), key.as_bytes()));
        let put = |space, at, value: &'static str| Write::Put { key: key(space, at), value: value.into() };
        assert_eq!(group.keys(), 4);
        assert_eq!(group.into_parts().1, [put(1, "a", "2"), Write::Remove { key: key(1, "b") }, put(1, "c", "1"), put(2, "a", "3")]);
    }

    #[test]
    fn a_batch_that_cannot_be_stored_leaves_no_trace_in_a_group() {
        let mut group = Group::default();
        let mut batch = Batch::new();
        batch.put_record(Space(1), "a", "1");
        batch.put_record(Space(1), vec![b'x'; KEY_BYTES_MAX + 1], "1");
        let error = group.add(&batch).expect_err("a key is too long");
        assert_eq!(error.to_string(), "a key of 32001 bytes is too long: 32000 is the most that can be stored");
        assert_eq!(group.keys(), 0);
    }
}
