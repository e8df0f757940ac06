//! The stamp of a store: which incarnation of its site writes it, and how often it has synced in that.
//!
//! It is in the mark of the journal, the record that begins the first write after each sync ([`crate::journal`]). So it costs nothing,
//! rises with every group that is made durable, and is on disk with the group itself: a store that was restored from a copy shows an
//! older stamp than the one that the site had when it last said anything that rests on its disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Which incarnation of its site writes a store, and how often it has synced in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The incarnation.
    pub incarnation: u64,
    /// The groups of writes that were begun in it; all but the last are on disk, and that one once it is synced.
    pub syncs: u64,
}

/// How often a store has synced in the incarnation of now, as far as its disk knows: for whoever tells others. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Syncs(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    durable: AtomicU64,
    closed: AtomicBool,
}

impl Syncs {
    /// The count: a store that shows less after a crash is not this one.
    pub fn durable(&self) -> u64 {
        self.0.durable.load(Ordering::Acquire)
    }

    /// True once the store is closed and all of it on disk: the count is the last one.
    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    pub(crate) fn synced(&self, syncs: u64) {
        self.0.durable.store(syncs, Ordering::Release);
    }

    pub(crate) fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
    }
}
