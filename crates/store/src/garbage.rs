//! Garbage collection: drops versions that no reader can ask for any more.
//!
//! ```text
//!   superseded versions    the engine drops them when it rewrites what it holds: they cost no write
//!                          a pass over all versions (`pass.rs`) removes the few that it left
//!   deletions              an index of them is walked in timestamp order up to their (lower) bound: each goes, after all that it covers
//! ```
//!
//! A deletion cannot be left to the engine: files that it rewrites do not show whether there is something older elsewhere, which would come back. An
//! entry of the index is removed with the deletion, so each is visited once.

use crate::engine::{Engine, View, Write};
use crate::error::StoreError;
use crate::layout;
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
    /// Lets the engine drop what [`Collect`] allows, and removes deletions and what they cover: at most `limit` (at least 1) versions and entries of
    /// the index. Durable after the next sync; lost in a crash, it is done again. Writers wait for the removals, not for the walk that finds them,
    /// unless they put versions as old as those that may go. One at a time: what is put meanwhile is noted for one walk only.
    pub fn collect(&self, collect: Collect, limit: usize) -> Result<Collected, StoreError> {
        self.engine().collect(collect.horizon);
        let upto = collect.deletions.min(collect.horizon);
        let from = self.lock().begin();
        let mut walk = Walk::run(&*self.engine().view(), &from, upto, limit.max(1))?;
        let mut swept = self.lock();
        if swept.is_late(upto) {
            // What it would remove may have been put again meanwhile.
            let from = swept.deletions().clone();
            walk = Walk::run(&*self.engine().view(), &from, upto, limit.max(1))?;
        }
        let collected = Collected { versions: walk.versions, more: walk.cut_off_at.is_some() };
        self.engine().write(walk.writes)?;
        let from = swept.deletions();
        let end = walk.cut_off_at.unwrap_or_else(|| layout::deletions_past(upto));
        if *from < end {
            *from = end;
        }
        Ok(collected)
    }
}

/// One walk over the index of deletions.
struct Walk {
    /// What it removes.
    writes: Vec<Write>,
    /// How many of those are versions.
    versions: usize,
    /// The first entry that it did not finish.
    cut_off_at: Option<Vec<u8>>,
}

impl Walk {
    fn run(view: &dyn View, from: &[u8], upto: Timestamp, limit: usize) -> Result<Walk, StoreError> {
        let mut walk = Walk { writes: Vec::new(), versions: 0, cut_off_at: None };
        let past = layout::deletions_past(upto);
        if *from >= *past {
            return Ok(walk);
        }
        let mut done = BTreeSet::new();
        for entry in view.range(from, &past, false) {
            let (entry, _) = entry?;
            let (_, prefix) = layout::split_deletion(&entry)?;
            if !done.contains(&prefix) {
                walk.key(view, &prefix, upto, limit)?;
                done.insert(prefix);
            }
            if walk.writes.len() == limit {
                walk.cut_off_at = Some(entry.to_vec());
                break;
            }
            walk.writes.push(Write::Remove { key: entry });
        }
        Ok(walk)
    }

    /// Removes the versions of one key at or below `upto`, up to the limit. The newest of them stays unless it is a deletion. Oldest first: a
    /// deletion must not go before all that it covers has gone.
    fn key(&mut self, view: &dyn View, prefix: &[u8], upto: Timestamp, limit: usize) -> Result<(), StoreError> {
        let mut newest: Option<(Bytes, Bytes)> = None;
        for entry in view.range(&layout::version_key(prefix, upto), &layout::past_key(prefix), true) {
            let Some((superseded, _)) = newest.replace(entry?) else { continue };
            if self.writes.len() == limit {
                return Ok(());
            }
            self.remove_version(superseded);
        }
        if let Some((stored, value)) = newest
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
