//! A gateway's memory of the descriptors it read.

use crate::catalog::layout::Entry;
use rhumb_core::{Key, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The most keys of descriptors remembered; one more, and all are forgotten.
const CACHED_ENTRIES_MAX: usize = 10_000;

/// The cache: one per gateway, shared by its sessions. It holds committed descriptors only, with their versions, and
/// never what is absent.
#[derive(Debug, Default)]
pub struct Catalog {
    entries: Mutex<BTreeMap<Key, Known>>,
}

/// What is remembered of a key.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// Its descriptor as of this version.
    Entry(Timestamp, Entry),
    /// What was known, or what this region's replica shows, turned out to be old or absent: a majority is to be asked.
    Suspect,
}

impl Catalog {
    /// An empty cache.
    pub fn new() -> Arc<Catalog> {
        Arc::new(Catalog::default())
    }

    pub(super) fn get(&self, key: &Key) -> Option<Known> {
        self.lock().get(key).cloned()
    }

    /// Remembers an entry unless a newer version is known.
    pub(super) fn insert(&self, key: Key, version: Timestamp, entry: Entry) {
        let mut entries = self.lock();
        if matches!(entries.get(&key), Some(Known::Entry(known, _)) if *known >= version) {
            return;
        }
        remember(&mut entries, key, Known::Entry(version, entry));
    }

    /// Forgets these descriptors, and has a majority asked for them next.
    pub(super) fn suspect<'a>(&self, keys: impl Iterator<Item = &'a Key>) {
        let mut entries = self.lock();
        for key in keys {
            remember(&mut entries, key.clone(), Known::Suspect);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Known>> {
        self.entries.lock().expect("nothing panics while it holds the lock")
    }
}

fn remember(entries: &mut BTreeMap<Key, Known>, key: Key, known: Known) {
    if entries.len() >= CACHED_ENTRIES_MAX && !entries.contains_key(&key) {
        entries.clear();
    }
    entries.insert(key, known);
}
