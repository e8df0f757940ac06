//! The disk of a site: what is durable, what a load sees, and what waits to be durable.

use super::message::Message;
use rhumb_core::actor::{Op, Space, Token};
use rhumb_core::{Batch, Key, Load, Loaded, Row, Timestamp, Value};
use std::collections::{BTreeMap, VecDeque};

/// A write, and what waits for it.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) batch: Batch,
    pub(super) token: Option<Token>,
    /// What leaves then.
    pub(super) promises: Vec<Message>,
}

/// The newest version of each row, and records.
#[derive(Clone, Debug, Default)]
struct Store {
    rows: BTreeMap<Key, Version>,
    records: BTreeMap<(Space, Vec<u8>), Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Version {
    at: Timestamp,
    value: Option<Value>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    durable: Store,
    /// The same with what waits.
    written: Store,
    waiting: VecDeque<Write>,
}

impl Disk {
    /// Writes. What only waits for the writes before it waits together with the last of them.
    pub(super) fn write(&mut self, write: Write) {
        self.written.apply(&write.batch);
        match self.waiting.back_mut() {
            Some(last) if write.batch.ops.is_empty() && write.token.is_none() => {
                let fresh: Vec<Message> = write.promises.into_iter().filter(|promise| !last.promises.contains(promise)).collect();
                last.promises.extend(fresh);
            }
            _ => self.waiting.push_back(write),
        }
    }

    /// Makes the first write that waits durable.
    pub(super) fn sync(&mut self) -> Option<Write> {
        let write = self.waiting.pop_front()?;
        self.durable.apply(&write.batch);
        Some(write)
    }

    /// True if nothing waits.
    pub(super) fn is_synced(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What is left after a crash.
    pub(super) fn after_crash(&self) -> Disk {
        Disk { durable: self.durable.clone(), written: self.durable.clone(), waiting: VecDeque::new() }
    }

    pub(super) fn has_row(&self, key: &Key) -> bool {
        self.written.rows.contains_key(key)
    }

    /// The answer to a load. Few rows fit on one page here.
    pub(super) fn load(&self, load: &Load) -> Loaded {
        let Store { rows, records } = &self.written;
        match load {
            Load::Get { keys, .. } => self.rows(keys.iter(), true),
            Load::Stamps { keys } => self.rows(keys.iter(), false),
            Load::ScanStamps { range, .. } => self.rows(rows.keys().filter(|key| range.contains(key)), false),
            Load::Records { space, from, .. } => {
                let asked = records.iter().filter(|((of, key), _)| of == space && key[..] >= from[..]);
                let records = asked.map(|((_, key), bytes)| (key.clone().into(), bytes.clone().into()));
                Loaded::Records { records: records.collect(), more: false }
            }
            Load::Scan { .. } | Load::Versions { .. } => unreachable!("nobody scans values"),
        }
    }

    fn rows<'a>(&self, keys: impl Iterator<Item = &'a Key>, with_values: bool) -> Loaded {
        let row = |key: &Key| {
            let found = self.written.rows.get(key);
            let value = found.and_then(|version| version.value.clone()).filter(|_| with_values);
            Row { key: key.clone(), version: found.map_or(Timestamp::ZERO, |version| version.at), value }
        };
        Loaded::Rows { rows: keys.map(row).collect(), more: false }
    }
}

impl Store {
    fn apply(&mut self, batch: &Batch) {
        for op in &batch.ops {
            match op {
                Op::PutVersion { key, at, value } => {
                    if self.rows.get(key).is_none_or(|newest| newest.at < *at) {
                        self.rows.insert(key.clone(), Version { at: *at, value: value.clone() });
                    }
                }
                Op::PutRecord { space, key, bytes } => drop(self.records.insert((*space, key.to_vec()), bytes.to_vec())),
                Op::DeleteRecord { space, key } => drop(self.records.remove(&(*space, key.to_vec()))),
            }
        }
    }
}
