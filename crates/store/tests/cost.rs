//! What a load costs, counted in seeks and steps of the engine.

use bytes::Bytes;
use rhumb_core::actor::Collect;
use rhumb_core::{Batch, Key, KeyRange, Load, Loaded, Timestamp, Value};
use rhumb_store::{Collected, Engine, Entries, MemoryEngine, Pass, Passed, Store, StoreError, View, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
struct Counts {
    seeks: AtomicU64,
    steps: AtomicU64,
}

impl Counts {
    fn take(&self) -> (u64, u64) {
        (self.seeks.swap(0, Ordering::Relaxed), self.steps.swap(0, Ordering::Relaxed))
    }
}

/// A memory engine that counts.
struct Counting {
    inner: MemoryEngine,
    counts: Arc<Counts>,
}

struct CountingView<'a> {
    inner: Box<dyn View + 'a>,
    counts: &'a Counts,
}

impl Engine for Counting {
    fn view(&self) -> Box<dyn View + '_> {
        Box::new(CountingView { inner: self.inner.view(), counts: &self.counts })
    }
    fn write(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.inner.write(writes)
    }
    fn sync(&self) -> Result<(), StoreError> {
        self.inner.sync()
    }
    fn collect(&self, horizon: Timestamp) {
        self.inner.collect(horizon);
    }
}

impl View for CountingView<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.counts.seeks.fetch_add(1, Ordering::Relaxed);
        self.inner.get(key)
    }
    fn range(&self, start: &[u8], end: &[u8], reverse: bool) -> Entries<'_> {
        self.counts.seeks.fetch_add(1, Ordering::Relaxed);
        Box::new(self.inner.range(start, end, reverse).inspect(|_| {
            self.counts.steps.fetch_add(1, Ordering::Relaxed);
        }))
    }
}

const KEYS: u64 = 20;
const VERSIONS: u64 = 500;

fn key(index: u64) -> Key {
    Key::from(format!("key{index:03}").as_str())
}

/// `KEYS` keys with `VERSIONS` versions each.
fn store() -> (Store<Counting>, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let store = Store::open(Counting { inner: MemoryEngine::new(), counts: counts.clone() }).expect("empty");
    counts.take();
    for index in 0..KEYS {
        let mut batch = Batch::new();
        for version in 1..=VERSIONS {
            batch.put_version(key(index), Timestamp::from_bits(version), Some(Value::from("v")));
        }
        store.apply(&batch).expect("in memory");
    }
    assert_eq!(counts.take(), (0, 0), "writing does not read");
    (store, counts)
}

#[test]
fn a_get_costs_one_seek_and_one_step_however_many_versions_there_are() {
    let (store, counts) = store();
    for at in [1, VERSIONS / 2, VERSIONS] {
        store.load(&Load::Get { keys: vec![key(7)], at: Timestamp::from_bits(at), bytes: usize::MAX }).expect("in memory");
        assert_eq!(counts.take(), (1, 1), "at {at}");
    }
}

#[test]
fn a_scan_costs_two_seeks_and_a_few_steps_per_key_however_many_versions_there_are() {
    let (store, counts) = store();
    for at in [1, VERSIONS / 2, VERSIONS] {
        for reverse in [false, true] {
            let range = KeyRange::prefix(b"key");
            let loaded =
                store.load(&Load::Scan { range, at: Timestamp::from_bits(at), limit: 100, bytes: usize::MAX, reverse }).expect("in memory");
            let Loaded::Rows { rows, more: false } = loaded else { panic!("{loaded:?}") };
            assert_eq!(rows.len() as u64, KEYS);
            let (seeks, steps) = counts.take();
            assert!(seeks <= 2 * KEYS + 1, "{seeks} seeks at {at}, reverse: {reverse}");
            assert!(steps <= 20 * KEYS, "{steps} steps at {at}, reverse: {reverse}");
        }
    }
}

#[test]
fn each_call_of_collect_is_bounded_and_each_version_is_visited_once() {
    let (store, counts) = store();
    let mut batch = Batch::new();
    let horizon = Timestamp::from_bits(VERSIONS + 1);
    (0..KEYS).for_each(|index| batch.put_version(key(index), horizon, None));
    store.apply(&batch).expect("in memory");
    let collect = Collect { horizon, deletions: horizon };
    let (mut versions, mut calls, mut steps) = (0, 0, 0);
    loop {
        let Collected { versions: removed, more } = store.collect(collect, 100).expect("in memory");
        versions += removed as u64;
        calls += 1;
        let taken = counts.take().1;
        // A call looks at no more than the entries and versions it removes, one more of each, and each key once.
        assert!(taken <= 2 * 100 + 2 + 2 * KEYS, "{taken} steps in one call");
        steps += taken;
        if !more {
            break;
        }
    }
    assert_eq!(versions, KEYS * (VERSIONS + 1));
    assert!(calls <= KEYS * (VERSIONS + 2) / 100 + 1, "{calls} calls");
    assert!(steps <= 2 * KEYS * VERSIONS, "{steps} steps for {} versions", KEYS * VERSIONS);
    store.collect(collect, 100).expect("in memory");
    assert_eq!(counts.take().1, 0, "what was collected is not looked at again");
}

fn pass(store: &Store<Counting>, counts: &Counts, limit: u64) -> u64 {
    let mut pass = Pass::new(Timestamp::from_bits(VERSIONS));
    let mut versions = 0;
    loop {
        let passed: Passed = store.pass(&mut pass, limit as usize).expect("in memory");
        versions += passed.versions as u64;
        let (seeks, steps) = counts.take();
        assert!(seeks == 1 && steps <= limit + 1, "{seeks} seeks and {steps} steps in one call");
        if !passed.more {
            assert_eq!(pass.ripens(), Timestamp::MAX);
            return versions;
        }
    }
}

#[test]
fn a_pass_removes_what_is_superseded_in_bounded_steps() {
    let (store, counts) = store();
    for limit in [1, 7, 100_000] {
        let mut batch = Batch::new();
        batch.put_version(key(3), Timestamp::from_bits(7), None);
        batch.put_version(key(4), Timestamp::from_bits(9), Some(Value::from("late")));
        store.apply(&batch).expect("in memory");
        let expected = if limit == 1 { KEYS * (VERSIONS - 1) } else { 2 };
        assert_eq!(pass(&store, &counts, limit), expected, "{limit} at a time");
        assert_eq!(pass(&store, &counts, limit), 0);
    }
}
