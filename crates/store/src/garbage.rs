//! Garbage collection: drops versions that no reader can ask for any more, without a scan of the store.
//!
//! The index of what was written is walked in timestamp order up to the horizon. Each entry names a key that got a version
//! there, so that of its versions at or below the horizon all but the newest may go. Deletions have an index of their own,
//! walked up to the (lower) bound for deletions, past which the deletion itself goes. Either way the entry is done with
//! and removed, so each version written is visited once, and late versions, which bring an entry of their own, too.

use crate::engine::{Engine, View, Write};
use crate::error::StoreError;
use crate::layout::{self, Index};
use crate::store::Store;
use bytes::Bytes;
use rhumb_core::Timestamp;
use rhumb_core::actor::Collect;
use std::collections::BTreeSet;

/// What one call of [`Store::collect`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Versions removed, deletions among them.
    pub versions: usize,
    /// True if the limit cut the work off: call again.
    pub more: bool,
}

impl<E: Engine> Store<E> {
    /// Removes what [`Collect`] allows, in steps of at most `limit` (at least 1) removed versions and index entries each.
    /// Durable after the next sync; lost in a crash, it is done again. Writers wait for the removals, not for the walk that finds them, unless
    /// they put versions as old as those that may go. One at a time: what is put meanwhile is noted for one walk only.
    pub fn collect(&self, collect: Collect, limit: usize) -> Result<Collected, StoreError> {
        let mut total = Collected { versions: 0, more: false };
        let mut left = limit.max(1);
        for (index, upto) in [(Index::Written, collect.horizon), (Index::Deleted, collect.deletions.min(collect.horizon))] {
            let from = self.lock().begin(index);
            let mut sweep = Sweep::run(&*self.engine().view(), index, &from, upto, left)?;
            let mut swept = self.lock();
            if swept.is_late(upto) {
                // What it would remove may have been put again meanwhile.
                let from = swept.of(index).clone();
                sweep = Sweep::run(&*self.engine().view(), index, &from, upto, left)?;
            }
            left -= sweep.writes.len();
            total.versions += sweep.versions;
            total.more |= sweep.cut_off_at.is_some();
            self.engine().write(sweep.writes)?;
            let from = swept.of(index);
            let end = sweep.cut_off_at.unwrap_or_else(|| layout::index_past(index, upto));
            if *from < end {
                *from = end;
            }
            if total.more {
                break;
            }
        }
        Ok(total)
    }
}

/// One walk over an index.
struct Sweep {
    /// What it removes.
    writes: Vec<Write>,
    /// How many of those are versions.
    versions: usize,
    /// The first entry that it did not finish.
    cut_off_at: Option<Vec<u8>>,
}

impl Sweep {
    fn run(view: &dyn View, index: Index, from: &[u8], upto: Timestamp, limit: usize) -> Result<Sweep, StoreError> {
        let mut sweep = Sweep { writes: Vec::new(), versions: 0, cut_off_at: None };
        let past = layout::index_past(index, upto);
        if *from >= *past {
            return Ok(sweep);
        }
        let mut done = BTreeSet::new();
        for entry in view.range(from, &past, false) {
            let (entry, _) = entry?;
            let (_, prefix) = layout::split_index(&entry)?;
            if !done.contains(&prefix) {
                sweep.key(view, index, &prefix, upto, limit)?;
                done.insert(prefix);
            }
            if sweep.writes.len() == limit {
                sweep.cut_off_at = Some(entry.to_vec());
                break;
            }
            sweep.writes.push(Write::Remove { key: entry });
        }
        Ok(sweep)
    }

    /// Removes the versions of one key at or below `upto`, up to the limit. The newest of them stays, unless it is a
    /// deletion and those are swept. Oldest first: a deletion must not go before all that it covers has gone.
    fn key(&mut self, view: &dyn View, index: Index, prefix: &[u8], upto: Timestamp, limit: usize) -> Result<(), StoreError> {
        let mut newest: Option<(Bytes, Bytes)> = None;
        for entry in view.range(&layout::version_key(prefix, upto), &layout::past_key(prefix), true) {
            let Some((superseded, _)) = newest.replace(entry?) else { continue };
            if self.writes.len() == limit {
                return Ok(());
            }
            self.remove_version(superseded);
        }
        if let Some((stored, value)) = newest
            && index == Index::Deleted
            && layout::decode_value(&value)?.is_none()
            && self.writes.len() < limit
        {
            self.remove_version(stored);
        }
        Ok(())
    }

    fn remove_version(&mut self, key: Bytes) {
        self.writes.push(Write::Remove { key });
        self.versions += 1;
    }
}
