//! The disk of a site, on which every write is durable at once.

use rhumb_core::actor::{Op, Space};
use rhumb_core::{Batch, Key, Load, Loaded, Row, Timestamp, Value};
use std::collections::BTreeMap;

/// The newest version of each row, and records.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    rows: BTreeMap<Key, Version>,
    records: BTreeMap<(Space, Vec<u8>), Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Version {
    at: Timestamp,
    value: Option<Value>,
}

impl Disk {
    pub(super) fn has_row(&self, key: &Key) -> bool {
        self.rows.contains_key(key)
    }

    /// The answer to a load. Few rows fit on one page here.
    pub(super) fn load(&self, load: &Load) -> Loaded {
        let Disk { rows, records } = self;
        match load {
            Load::Get { keys, .. } => self.found(keys.iter(), true),
            Load::Stamps { keys } => self.found(keys.iter(), false),
            Load::ScanStamps { range, .. } => self.found(rows.keys().filter(|key| range.contains(key)), false),
            Load::Records { space, from, .. } => {
                let asked = records.iter().filter(|((of, key), _)| of == space && key[..] >= from[..]);
                let records = asked.map(|((_, key), bytes)| (key.clone().into(), bytes.clone().into()));
                Loaded::Records { records: records.collect(), more: false }
            }
            Load::Scan { .. } | Load::Versions { .. } => unreachable!("nobody scans values"),
        }
    }

    fn found<'a>(&self, keys: impl Iterator<Item = &'a Key>, with_values: bool) -> Loaded {
        let row = |key: &Key| {
            let found = self.rows.get(key);
            let value = found.and_then(|version| version.value.clone()).filter(|_| with_values);
            Row { key: key.clone(), version: found.map_or(Timestamp::ZERO, |version| version.at), value }
        };
        Loaded::Rows { rows: keys.map(row).collect(), more: false }
    }

    /// Writes, durably.
    pub(super) fn write(&mut self, batch: &Batch) {
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
