//! A naive model of the store, and random histories to hold the store against it.

use bytes::Bytes;
use proptest::prelude::*;
use rhumb_core::actor::{Collect, Op, Space};
use rhumb_core::{Batch, Key, KeyRange, Load, Loaded, Row, Timestamp, Value};
use rhumb_store::{Engine, Newest, Pass, Store};
use std::collections::BTreeMap;

/// Timestamps of the histories lie below this.
pub const TIMESTAMP_END: u64 = 24;

/// What the store should hold: every version of every key, and the records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    rows: BTreeMap<Key, BTreeMap<Timestamp, Option<Value>>>,
    records: BTreeMap<(Space, Bytes), Bytes>,
    /// Nobody may ask below.
    horizon: Timestamp,
}

impl Model {
    pub fn apply(&mut self, batch: &Batch) {
        for op in batch.ops.clone() {
            match op {
                Op::PutVersion { key, at, value } => drop(self.rows.entry(key).or_default().insert(at, value)),
                Op::PutRecord { space, key, bytes } => drop(self.records.insert((space, key), bytes)),
                Op::DeleteRecord { space, key } => drop(self.records.remove(&(space, key))),
            }
        }
    }

    pub fn collect(&mut self, collect: Collect) {
        self.horizon = self.horizon.max(collect.horizon);
        for versions in self.rows.values_mut() {
            let newest = |versions: &BTreeMap<Timestamp, Option<Value>>, at| {
                versions.range(..=at).next_back().map(|(at, value)| (*at, value.is_none()))
            };
            if let Some((at, _)) = newest(versions, collect.horizon) {
                versions.retain(|version, _| *version >= at);
            }
            if let Some((at, true)) = newest(versions, collect.deletions) {
                versions.retain(|version, _| *version > at);
            }
        }
    }

    /// A horizon never falls.
    pub fn risen(&self, collect: Collect) -> Collect {
        Collect { horizon: collect.horizon.max(self.horizon), ..collect }
    }

    /// How many versions there are.
    pub fn versions(&self) -> usize {
        self.rows.values().map(BTreeMap::len).sum()
    }

    fn row(&self, key: &Key, at: Timestamp) -> Option<Row> {
        let (version, value) = self.rows.get(key)?.range(..=at).next_back()?;
        Some(Row { key: key.clone(), version: *version, value: value.clone() })
    }

    fn load(&self, load: &Load) -> Loaded {
        match load {
            Load::Get { keys, at, bytes } => {
                let none = |key: &Key| Row { key: key.clone(), version: Timestamp::ZERO, value: None };
                those_that_fit(keys.iter().map(|key| self.row(key, *at).unwrap_or_else(|| none(key))).collect(), *bytes)
            }
            Load::Stamps { keys } => {
                let Loaded::Rows { rows, more } = self.load(&Load::Get { keys: keys.clone(), at: Timestamp::MAX, bytes: usize::MAX })
                else {
                    unreachable!()
                };
                Loaded::Rows { rows: stamps(rows), more }
            }
            Load::ScanStamps { range, limit, bytes } => {
                let rows = self.rows.keys().filter(|key| range.contains(key)).filter_map(|key| self.row(key, Timestamp::MAX)).collect();
                let mut rows = stamps(rows);
                let sums = rows.iter().scan(0, |sum, row| {
                    *sum += row.key.0.len();
                    Some(*sum)
                });
                let fit = sums.take_while(|sum| sum <= bytes).count().max(1).min(*limit).min(rows.len());
                let more = fit < rows.len();
                rows.truncate(fit);
                Loaded::Rows { rows, more }
            }
            Load::Scan { range, at, limit, bytes, reverse } => {
                let mut rows: Vec<Row> = self.rows.keys().filter(|key| range.contains(key)).filter_map(|key| self.row(key, *at)).collect();
                if *reverse {
                    rows.reverse();
                }
                let all = rows.len();
                rows.truncate(within(
                    rows.iter().map(|row| row.key.0.len() + row.value.as_ref().map_or(0, |value| value.0.len())),
                    *limit,
                    *bytes,
                ));
                Loaded::Rows { more: rows.len() < all, rows }
            }
            Load::Versions { versions, bytes } => {
                let kept = versions.iter().filter_map(|(key, at)| {
                    let value = self.rows.get(key)?.get(at)?.clone();
                    Some(Row { key: key.clone(), version: *at, value })
                });
                those_that_fit(kept.collect(), *bytes)
            }
            Load::Records { space, from, limit, bytes } => {
                let all = self.records.range((*space, from.clone())..).take_while(|((in_space, _), _)| in_space == space);
                let mut records: Vec<(Bytes, Bytes)> = all.map(|((_, key), bytes)| (key.clone(), bytes.clone())).collect();
                let all = records.len();
                records.truncate(within(records.iter().map(|(key, bytes)| key.len() + bytes.len()), *limit, *bytes));
                Loaded::Records { more: records.len() < all, records }
            }
        }
    }

    /// Asks the store everything that it may be asked, and compares each answer.
    pub fn check<E: Engine>(&self, store: &Store<E>) {
        self.check_through(store, &mut Newest::new(0));
    }

    /// The same through what is held of the newest versions.
    pub fn check_through<E: Engine>(&self, store: &Store<E>, newest: &mut Newest) {
        if let Some((load, found, expected)) = self.difference_through(store, newest) {
            panic!("{load:?} answers\n  {found:?}, should be\n  {expected:?}");
        }
    }

    /// The first load that the store does not answer as the model, with both answers.
    pub fn difference<E: Engine>(&self, store: &Store<E>) -> Option<(Load, Loaded, Loaded)> {
        self.difference_through(store, &mut Newest::new(0))
    }

    fn difference_through<E: Engine>(&self, store: &Store<E>, newest: &mut Newest) -> Option<(Load, Loaded, Loaded)> {
        self.loads().into_iter().find_map(|load| {
            let (found, expected) = (store.load_through(newest, &load).expect("the store can be read"), self.load(&load));
            (found != expected).then_some((load, found, expected))
        })
    }

    /// Every load worth asking.
    fn loads(&self) -> Vec<Load> {
        let keys = keys();
        let mut loads = Vec::new();
        for at in (self.horizon.bits()..=TIMESTAMP_END).map(Timestamp::from_bits).chain([Timestamp::MAX]) {
            loads.extend([0, 1, 40, 100, usize::MAX].map(|bytes| Load::Get { keys: keys.clone(), at, bytes }));
            let whole = KeyRange::new(Key::default(), Key::new(vec![0xff; 4]));
            for limit in [0, 1, 3, keys.len() - 1, keys.len(), 100] {
                for (reverse, bytes) in [false, true].into_iter().flat_map(|reverse| [0, 1, 7, usize::MAX].map(|bytes| (reverse, bytes))) {
                    loads.push(Load::Scan { range: whole.clone(), at, limit, bytes, reverse });
                }
            }
            for (from, start) in keys.iter().enumerate() {
                for end in &keys[from..] {
                    for (limit, reverse) in [(2, false), (2, true), (100, false), (100, true)] {
                        loads.push(Load::Scan { range: KeyRange::new(start.clone(), end.clone()), at, limit, bytes: usize::MAX, reverse });
                    }
                }
            }
            let above: Vec<(Key, Timestamp)> = keys.iter().filter(|_| at > self.horizon).map(|key| (key.clone(), at)).collect();
            loads.extend([0, 1, 40, 100, usize::MAX].map(|bytes| Load::Versions { versions: above.clone(), bytes }));
        }
        let whole = KeyRange::new(Key::default(), Key::new(vec![0xff; 4]));
        for bytes in [0, 1, 2, 40, 100, 1_000, usize::MAX] {
            loads.push(Load::Get { keys: keys.clone(), at: Timestamp::MAX, bytes });
            loads.extend([0, 1, 3, 100].map(|limit| Load::ScanStamps { range: whole.clone(), limit, bytes }));
        }
        loads.extend(keys.iter().map(|start| Load::ScanStamps {
            range: KeyRange::new(start.clone(), whole.end.clone()),
            limit: 2,
            bytes: 100,
        }));
        loads.push(Load::Stamps { keys: keys.clone() });
        for (space, from, limit) in [(0, "", 100), (7, "", 1), (7, "b", 100), (255, "", 100), (8, "", 5)] {
            for bytes in [0, 3, usize::MAX] {
                loads.push(Load::Records { space: Space(space), from: Bytes::from_static(from.as_bytes()), limit, bytes });
            }
        }
        loads
    }
}

/// The first of `rows` whose bytes are not more than `bytes`, and one at least.
fn those_that_fit(mut rows: Vec<Row>, bytes: usize) -> Loaded {
    let sums = rows.iter().scan(0, |sum, row| {
        *sum += row.bytes();
        Some(*sum)
    });
    let fit = sums.take_while(|sum| *sum <= bytes).count().max(1).min(rows.len());
    let more = fit < rows.len();
    rows.truncate(fit);
    Loaded::Rows { rows, more }
}

/// How many of these sizes are within the bounds: the first whatever its size, and no more once there are so many bytes.
fn within(sizes: impl Iterator<Item = usize>, limit: usize, bytes: usize) -> usize {
    let mut before = 0;
    let within = sizes.take(limit).enumerate().take_while(|(place, size)| {
        let fits = *place == 0 || before < bytes;
        before += size;
        fits
    });
    within.count()
}

fn stamps(rows: Vec<Row>) -> Vec<Row> {
    rows.into_iter().map(|row| Row { value: None, ..row }).collect()
}

/// Keys whose escapes are easily confused.
pub fn keys() -> Vec<Key> {
    let mut keys: Vec<Key> = [&b""[..], b"\x00", b"\x00\x00", b"\x00\x01", b"\x00\xff", b"\x01", b"a", b"a\x00", b"a\xff", b"b", b"\xff"]
        .iter()
        .map(|bytes| Key::new(bytes.to_vec()))
        .collect();
    keys.sort();
    keys
}

/// One step of a history.
#[derive(Clone, Debug)]
pub enum Step {
    Apply(Batch),
    Sync,
    Collect { collect: Collect, limit: usize },
    Reopen { torn: usize },
}

pub fn batch() -> impl Strategy<Value = Batch> {
    let key = prop_oneof![3 => Just(Key::from("a")), 7 => prop::sample::select(keys())];
    let value = prop_oneof![
        1 => Just(None),
        3 => prop::collection::vec(any::<u8>(), 0..6).prop_map(|bytes| Some(Value::new(bytes))),
        1 => (0..200_usize).prop_map(|length| Some(Value::new(vec![7; length]))),
    ];
    let version = (key, 1..TIMESTAMP_END, value).prop_map(|(key, at, value)| Op::PutVersion { key, at: Timestamp::from_bits(at), value });
    let place = (prop::sample::select(vec![0, 7, 255]).prop_map(Space), prop::sample::select(vec!["", "a", "b", "bb"]));
    let record = (place, prop::option::of(any::<u8>())).prop_map(|((space, key), byte)| {
        let key = Bytes::from_static(key.as_bytes());
        match byte {
            Some(byte) => Op::PutRecord { space, key, bytes: vec![byte].into() },
            None => Op::DeleteRecord { space, key },
        }
    });
    prop::collection::vec(prop_oneof![4 => version, 1 => record], 0..8).prop_map(|ops| Batch { ops })
}

pub fn steps(max: usize) -> impl Strategy<Value = Vec<Step>> {
    let collect = (0..TIMESTAMP_END, 0..TIMESTAMP_END, 1..20_usize).prop_map(|(horizon, deletions, limit)| Step::Collect {
        collect: Collect { horizon: Timestamp::from_bits(horizon), deletions: Timestamp::from_bits(deletions.min(horizon)) },
        limit,
    });
    let step = prop_oneof![
        10 => batch().prop_map(Step::Apply),
        2 => Just(Step::Sync),
        2 => collect,
        1 => (0..400_usize).prop_map(|torn| Step::Reopen { torn }),
    ];
    prop::collection::vec(step, 1..max)
}

/// How many versions the engine holds.
pub fn versions<E: Engine>(store: &Store<E>) -> usize {
    store.engine().view().range(&[1], &[2], false).count()
}

/// Passes over all versions, in steps of `limit`.
pub fn pass_over_all<E: Engine>(store: &Store<E>, horizon: Timestamp, limit: usize) {
    let mut pass = Pass::new(horizon);
    while store.pass(&mut pass, limit).expect("the store can be written").more {}
}

/// Collects to the end, in steps of `limit`.
pub fn collect_all<E: Engine>(store: &Store<E>, collect: Collect, limit: usize) -> usize {
    let mut versions = 0;
    loop {
        let collected = store.collect(collect, limit).expect("the store can be written");
        versions += collected.versions;
        if !collected.more {
            return versions;
        }
    }
}
