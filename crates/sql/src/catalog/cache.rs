//! A gateway's memory of the descriptors it read.

use crate::catalog::CatalogView;
use crate::catalog::layout::Entry;
use rhumb_core::{Key, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The most descriptors remembered; one more, and all are forgotten.
const CACHED_ENTRIES_MAX: usize = 10_000;

/// The cache: one per gateway, shared by its sessions. It holds committed descriptors only, with their versions, and
/// never what is absent.
#[derive(Debug, Default)]
pub struct Catalog {
    entries: Mutex<BTreeMap<Key, (Timestamp, Entry)>>,
}

impl Catalog {
    /// An empty cache.
    pub fn new() -> Arc<Catalog> {
        Arc::new(Catalog::default())
    }

    /// The catalog as one transaction uses it: begin one view with each transaction.
    pub fn view(self: &Arc<Catalog>) -> CatalogView {
        CatalogView::new(self.clone())
    }

    pub(super) fn get(&self, key: &Key) -> Option<(Timestamp, Entry)> {
        self.lock().get(key).cloned()
    }

    /// Remembers an entry unless a newer version is known.
    pub(super) fn insert(&self, key: Key, version: Timestamp, entry: Entry) {
        let mut entries = self.lock();
        if entries.get(&key).is_some_and(|(known, _)| *known >= version) {
            return;
        }
        if entries.len() >= CACHED_ENTRIES_MAX {
            entries.clear();
        }
        entries.insert(key, (version, entry));
    }

    pub(super) fn forget<'a>(&self, keys: impl Iterator<Item = &'a Key>) {
        let mut entries = self.lock();
        for key in keys {
            entries.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, (Timestamp, Entry)>> {
        self.entries.lock().expect("nothing panics while it holds the lock")
    }
}
