//! The disk of a site: what is durable, and what waits to be.

use rhumb_catenae::epoch::Epoch;
use rhumb_catenae::message::{Entry, Progress, Promise, Standing};
use rhumb_catenae::records::{self, ENTRIES, PROGRESS, PROMISES};
use rhumb_core::actor::{Op, Space};
use rhumb_core::{Ballot, Batch, Loaded, SiteId};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use super::STREAM;

/// A write, and what waits for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    pub batch: Batch,
    pub then: Vec<(SiteId, Promise)>,
    pub durable: Option<(Ballot, u64)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Disk {
    durable: BTreeMap<(Space, Vec<u8>), Vec<u8>>,
    queue: VecDeque<Write>,
}

impl Disk {
    pub fn write(&mut self, write: Write) {
        self.queue.push_back(write);
    }

    /// True if something waits.
    pub fn waits(&self) -> bool {
        !self.queue.is_empty()
    }

    /// How many writes wait.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The first write that waits, if it only waits for those before it.
    pub fn pop_empty(&mut self) -> Option<Write> {
        self.queue.pop_front_if(|write| write.batch.ops.is_empty())
    }

    /// Makes the first write that waits durable.
    pub fn sync(&mut self) -> Option<Write> {
        let write = self.queue.pop_front()?;
        apply(&mut self.durable, &write.batch);
        Some(write)
    }

    /// What is left after a crash.
    pub fn after_crash(&self) -> Disk {
        Disk { durable: self.durable.clone(), queue: VecDeque::new() }
    }

    /// All that is written, durable or not.
    fn written(&self) -> BTreeMap<(Space, Vec<u8>), Vec<u8>> {
        let mut all = self.durable.clone();
        self.queue.iter().for_each(|write| apply(&mut all, &write.batch));
        all
    }

    /// The entries from place `first` on, as the store loads them.
    pub fn load(&self, first: u64) -> Loaded {
        let from = (ENTRIES, records::entry_key(STREAM, first));
        let written = self.written();
        let records = written.range(from..).filter(|((space, _), _)| *space == ENTRIES);
        Loaded::Records { records: records.map(|((_, key), bytes)| (key.clone().into(), bytes.clone().into())).collect(), more: false }
    }

    /// The promise that is durable.
    pub fn promise(&self) -> Option<Ballot> {
        let mut promises = self.durable.iter().filter(|((space, _), _)| *space == PROMISES);
        promises.next().map(|((_, key), bytes)| records::decode_promise(key, bytes).expect("promises on disk are whole").1)
    }

    /// How far the site had come, as far as that is durable.
    pub fn progress(&self) -> Option<(u64, Epoch)> {
        let bytes = self.durable.get(&(PROGRESS, Vec::new()))?;
        let progress: Progress = records::decode_progress(bytes).expect("progress on disk is whole");
        Some(progress.entries[0])
    }

    /// The place up to which that is.
    pub fn settled(&self) -> u64 {
        self.progress().map_or(0, |(place, _)| place)
    }

    /// The entries that are durable.
    pub fn entries(&self) -> Vec<(u64, Standing, Entry)> {
        let entries = self.durable.iter().filter(|((space, _), _)| *space == ENTRIES);
        let decode = |((_, key), bytes): (&(Space, Vec<u8>), &Vec<u8>)| {
            let (_, index) = records::decode_entry_key(key).expect("keys on disk are whole");
            let (ballot, entry) = records::decode_entry(bytes).expect("entries on disk are whole");
            (index, ballot, entry)
        };
        entries.map(decode).collect()
    }

    /// True if that entry is durable here, or what it led to.
    pub fn holds(&self, index: u64, entry: &Entry) -> bool {
        let record = self.durable.get(&(ENTRIES, records::entry_key(STREAM, index)));
        let is_there = |bytes: &Vec<u8>| records::decode_entry(bytes).is_some_and(|(_, other)| other == *entry);
        record.map_or(self.settled() >= index, is_there)
    }

    /// True if entries are written at all those places.
    pub fn has_all(&self, mut places: RangeInclusive<u64>) -> bool {
        let written = self.written();
        places.all(|index| written.contains_key(&(ENTRIES, records::entry_key(STREAM, index))))
    }

    /// True if an entry is durable at that place and ballot, or learnt.
    pub fn has_durably(&self, index: u64, ballot: Ballot) -> bool {
        let record = self.durable.get(&(ENTRIES, records::entry_key(STREAM, index)));
        record
            .and_then(|bytes| records::decode_entry(bytes))
            .is_some_and(|(at, _)| at == Standing::Accepted(ballot) || at == Standing::Chosen)
    }
}

fn apply(records: &mut BTreeMap<(Space, Vec<u8>), Vec<u8>>, batch: &Batch) {
    for op in &batch.ops {
        match op {
            Op::PutRecord { space, key, bytes } => drop(records.insert((*space, key.to_vec()), bytes.to_vec())),
            Op::DeleteRecord { space, key } => drop(records.remove(&(*space, key.to_vec()))),
            Op::PutVersion { .. } => unreachable!("an agreement writes records"),
        }
    }
}
