//! Which keys have writes that are queued but not yet in the store, so that a read of any other key need not wait.
//!
//! The engine takes no write while it syncs, so batches are applied by the thread that syncs, between two syncs, and the
//! actor never waits for the disk. A read of a key with a write on its way must see that write: it goes behind
//! it into the same queue. Any other read finds in the store exactly what it would find later.

use rhumb_core::Key;
use rhumb_core::actor::{Batch, Load, Op};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The writes on their way.
#[derive(Default)]
pub struct Unapplied {
    /// Batches queued in all.
    queued: u64,
    /// Batches applied in all: the writer's thread counts.
    applied: Arc<AtomicU64>,
    /// Each batch on its way, by number, with its keys.
    batches: VecDeque<(u64, Vec<Key>)>,
    /// The newest batch on its way that writes a key.
    newest: BTreeMap<Key, u64>,
}

impl Unapplied {
    /// Where the writer counts the batches that it has applied.
    pub fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.applied)
    }

    /// Notes that `batch` is queued.
    pub fn queue(&mut self, batch: &Batch) {
        self.forget_applied();
        self.queued += 1;
        let keys = batch.ops.iter().filter_map(|op| match op {
            Op::PutVersion { key, .. } => Some(key.clone()),
            // Records are read by range only, and a range always waits.
            Op::PutRecord { .. } | Op::DeleteRecord { .. } => None,
        });
        let keys: Vec<Key> = keys.collect();
        for key in &keys {
            self.newest.insert(key.clone(), self.queued);
        }
        self.batches.push_back((self.queued, keys));
    }

    /// True if `load` may find something that a batch on its way is about to change.
    pub fn concern(&mut self, load: &Load) -> bool {
        self.forget_applied();
        match load {
            Load::Get { keys, .. } | Load::Stamps { keys } => keys.iter().any(|key| self.newest.contains_key(key)),
            Load::Versions { versions, .. } => versions.iter().any(|(key, _)| self.newest.contains_key(key)),
            Load::Scan { .. } | Load::ScanStamps { .. } | Load::Records { .. } => !self.batches.is_empty(),
        }
    }

    fn forget_applied(&mut self) {
        let applied = self.applied.load(Ordering::Acquire);
        while let Some((batch, keys)) = self.batches.pop_front_if(|(batch, _)| *batch <= applied) {
            for key in keys {
                if self.newest.get(&key) == Some(&batch) {
                    self.newest.remove(&key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::{KeyRange, Timestamp};

    fn get(key: &str) -> Load {
        Load::Get { keys: vec![Key::from(key)], at: Timestamp::MAX, bytes: usize::MAX }
    }

    fn put(key: &str) -> Batch {
        let mut batch = Batch::new();
        batch.put_version(Key::from(key), Timestamp::ZERO, None);
        batch
    }

    #[test]
    fn a_read_waits_only_for_writes_of_its_own_keys() {
        let mut unapplied = Unapplied::default();
        let scan = Load::Scan { range: KeyRange::prefix(b"a"), at: Timestamp::MAX, limit: 1, bytes: usize::MAX, reverse: false };
        assert!(!unapplied.concern(&get("a")) && !unapplied.concern(&scan));
        unapplied.queue(&put("a"));
        unapplied.queue(&put("b"));
        unapplied.queue(&put("a"));
        assert!(unapplied.concern(&get("a")) && unapplied.concern(&get("b")) && unapplied.concern(&scan));
        assert!(!unapplied.concern(&get("c")));
        unapplied.counter().store(2, Ordering::Release);
        assert!(unapplied.concern(&get("a")), "its newest write is still on its way");
        assert!(!unapplied.concern(&get("b")));
        unapplied.counter().store(3, Ordering::Release);
        assert!(!unapplied.concern(&get("a")) && !unapplied.concern(&scan));
        assert!(unapplied.newest.is_empty() && unapplied.batches.is_empty());
    }
}
