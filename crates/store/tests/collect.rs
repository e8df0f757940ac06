//! Garbage is collected while others write: nothing that they put is lost, and nothing stays for ever.

use rhumb_core::actor::Collect;
use rhumb_core::{Batch, Key, Timestamp};
use rhumb_store::{Collected, Engine, MemoryEngine, Store, StoreError, View, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// An engine during whose next view somebody writes.
#[derive(Default)]
struct Interrupted {
    inner: MemoryEngine,
    store: Mutex<Weak<Store<Interrupted>>>,
    armed: AtomicBool,
}

impl Engine for Interrupted {
    fn view(&self) -> Box<dyn View + '_> {
        let view = self.inner.durable();
        if self.armed.swap(false, Ordering::Relaxed) {
            let store = self.store.lock().expect("no panic").upgrade().expect("in use");
            store.apply(&deletion()).expect("in memory");
        }
        Box::new(Owned(view))
    }
    fn write(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.inner.write(writes)?;
        self.inner.sync()
    }
    fn sync(&self) -> Result<(), StoreError> {
        self.inner.sync()
    }
    fn collect(&self, horizon: Timestamp) {
        self.inner.collect(horizon);
    }
}

/// A view of a copy: what is written later does not show.
struct Owned(MemoryEngine);

impl View for Owned {
    fn get(&self, key: &[u8]) -> Result<Option<bytes::Bytes>, StoreError> {
        self.0.view().get(key)
    }
    fn range(&self, start: &[u8], end: &[u8], reverse: bool) -> rhumb_store::Entries<'_> {
        Box::new(self.0.view().range(start, end, reverse).collect::<Vec<_>>().into_iter())
    }
}

fn deletion() -> Batch {
    let mut batch = Batch::new();
    batch.put_version(Key::from("k"), Timestamp::from_bits(1), None);
    batch
}

/// A catch-up may bring a deletion again that was collected, just while its entry in the index is.
#[test]
fn a_deletion_that_is_put_again_during_a_walk_is_collected_with_the_next() {
    let store = Arc::new(Store::open(Interrupted::default()).expect("empty"));
    *store.engine().store.lock().expect("no panic") = Arc::downgrade(&store);
    store.apply(&deletion()).expect("in memory");
    let collect = |limit| {
        let horizon = Timestamp::from_bits(5);
        store.collect(Collect { horizon, deletions: horizon }, limit).expect("in memory")
    };
    assert_eq!(collect(1), Collected { versions: 1, more: true }, "its entry in the index is left");
    store.engine().armed.store(true, Ordering::Relaxed);
    let mut versions = 0;
    loop {
        let collected = collect(100);
        versions += collected.versions;
        if !collected.more {
            break;
        }
    }
    versions += collect(100).versions;
    assert_eq!(versions, 1, "it is gone once more");
}
