//! The disk of a site: what is durable, and what waits to be.

use crate::host::Sent;
use rhumb_core::actor::{Op, Space, Token};
use rhumb_core::{Batch, Key, Load, Loaded, Row, Timestamp};
use rhumb_replicated_commit::Promise;
use std::collections::{BTreeMap, VecDeque};

/// A write, and what waits for it.
#[derive(Clone, Debug)]
pub struct Write {
    pub batch: Batch,
    pub token: Option<Token>,
    /// What others are told then.
    pub sends: Vec<Sent>,
    /// What the site sends to itself then.
    pub to_itself: Vec<Promise>,
}

impl Write {
    /// True if it only waits for those before it.
    pub fn is_empty(&self) -> bool {
        self.batch.ops.is_empty() && self.token.is_none()
    }
}

/// The newest version of each row, and records.
#[derive(Clone, Debug, Default)]
struct Store {
    rows: BTreeMap<Key, Timestamp>,
    records: BTreeMap<(Space, Vec<u8>), Vec<u8>>,
}

#[derive(Clone, Debug, Default)]
pub struct Disk {
    durable: Store,
    queue: VecDeque<Write>,
}

impl Disk {
    /// Writes. What only waits for the writes before it waits together with the last of them.
    pub fn write(&mut self, write: Write) {
        match self.queue.back_mut().filter(|_| write.is_empty()) {
            Some(last) => {
                let fresh: Vec<Sent> = write.sends.into_iter().filter(|sent| !last.sends.contains(sent)).collect();
                last.sends.extend(fresh);
                let fresh: Vec<Promise> = write.to_itself.into_iter().filter(|promise| !last.to_itself.contains(promise)).collect();
                last.to_itself.extend(fresh);
            }
            None => self.queue.push_back(write),
        }
    }

    /// How many writes wait.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Makes the first write that waits durable.
    pub fn sync(&mut self) -> Option<Write> {
        let write = self.queue.pop_front()?;
        self.durable.apply(&write.batch);
        Some(write)
    }

    /// What is left after a crash.
    pub fn after_crash(&self) -> Disk {
        Disk { durable: self.durable.clone(), queue: VecDeque::new() }
    }

    /// The answer to a load, which sees all that is written. If it is `stale` to commit what was read, some other transaction has written since.
    pub fn load(&self, load: &Load, stale: bool) -> Loaded {
        let mut store = self.durable.clone();
        self.queue.iter().for_each(|write| store.apply(&write.batch));
        let row = |key: &Key, at: Timestamp| {
            // No row is written twice before somebody asks for what it was earlier.
            let version = store.rows.get(key).copied().filter(|version| *version <= at).unwrap_or_default();
            let newest = if stale { version.max(Timestamp::from_bits(1)) } else { version };
            Row { key: key.clone(), version: newest, value: None }
        };
        match load {
            Load::Stamps { keys } => Loaded::Rows { rows: keys.iter().map(|key| row(key, Timestamp::MAX)).collect(), more: false },
            Load::Get { keys, at, .. } => Loaded::Rows { rows: keys.iter().map(|key| row(key, *at)).collect(), more: false },
            Load::Records { space, .. } => {
                let of_space = store.records.iter().filter(|((of, _), _)| of == space);
                let records = of_space.map(|((_, key), bytes)| (key.clone().into(), bytes.clone().into()));
                Loaded::Records { records: records.collect(), more: false }
            }
            Load::Scan { .. } | Load::ScanStamps { .. } | Load::Versions { .. } => unreachable!("nobody reads ranges or old versions"),
        }
    }
}

impl Store {
    fn apply(&mut self, batch: &Batch) {
        for op in &batch.ops {
            match op {
                Op::PutVersion { key, at, .. } => {
                    let newest = self.rows.entry(key.clone()).or_default();
                    *newest = (*newest).max(*at);
                }
                Op::PutRecord { space, key, bytes } => drop(self.records.insert((*space, key.to_vec()), bytes.to_vec())),
                Op::DeleteRecord { space, key } => drop(self.records.remove(&(*space, key.to_vec()))),
            }
        }
    }
}
