//! The access index: which unsettled transactions read and write each key and range, and who waits for whom by that.
//!
//! A transaction waits for those of earlier epochs that conflict with it. The index compares no two transactions for that. Each
//! key, and each range that somebody reads, keeps its readers and its writers by epoch. A reader waits there until no
//! writer of an earlier epoch is left; a writer until neither a reader nor, at a key, a writer of an earlier epoch is left. So
//! all that counts is the first epoch that is left, and when that moves on, those up to it wait there no longer. The work is
//! one entry per transaction and key, however many share the key, and one per pair only for conflicts within an epoch, on which
//! regions vote.
//!
//! A range is kept as long as somebody reads it, with the writers into it. Ranges stand under their common prefix, so that a
//! written key meets only those ranges whose prefix it has.

use super::epoch::Epoch;
use super::message::Identifier;
use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_core::{Key, KeyRange, Table, work};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Transactions by epoch.
#[derive(Debug, Default)]
struct ByEpoch(BTreeMap<Epoch, BTreeSet<Identifier>>);

impl ByEpoch {
    /// True if it was not among them.
    fn insert(&mut self, identifier: Identifier) -> bool {
        self.0.entry(identifier.epoch).or_default().insert(identifier)
    }

    fn remove(&mut self, identifier: Identifier) {
        let Some(same_epoch) = self.0.get_mut(&identifier.epoch) else { return };
        same_epoch.remove(&identifier);
        if same_epoch.is_empty() {
            self.0.remove(&identifier.epoch);
        }
    }

    fn first(&self) -> Option<Epoch> {
        self.0.first_key_value().map(|(epoch, _)| *epoch)
    }

    fn of(&self, epoch: Epoch) -> impl Iterator<Item = Identifier> + '_ {
        self.0.get(&epoch).into_iter().flatten().copied()
    }

    /// Those that waited until nothing before their epoch is left, when the first epoch that is left was `before` and is `after`.
    fn freed(&self, before: Option<Epoch>, after: Option<Epoch>) -> impl Iterator<Item = Identifier> + '_ {
        let upto = after.map_or(Bound::Unbounded, Bound::Included);
        let moved = before.filter(|_| before != after).map(|before| self.0.range((Bound::Excluded(before), upto)));
        moved.into_iter().flatten().flat_map(|(_, identifiers)| identifiers).copied()
    }
}

/// The readers and writers of a key or a range.
#[derive(Debug, Default)]
struct Accesses {
    readers: ByEpoch,
    writers: ByEpoch,
    /// Two writers of a range need not be in each other's way; two of a key are.
    is_range: bool,
}

impl Accesses {
    fn is_empty(&self) -> bool {
        self.readers.0.is_empty() && self.writers.0.is_empty()
    }

    fn side(&mut self, writes: bool) -> &mut ByEpoch {
        if writes { &mut self.writers } else { &mut self.readers }
    }

    /// The first epoch of those that a reader, or a writer, has to wait for if it comes later.
    fn first_in_the_way(&self, of_writer: bool) -> Option<Epoch> {
        let readers = self.readers.first().filter(|_| of_writer);
        let writers = self.writers.first().filter(|_| !of_writer || !self.is_range);
        readers.into_iter().chain(writers).min()
    }

    fn enter(&mut self, identifier: Identifier, writes: bool, entered: &mut Entered) {
        // A transaction that writes several keys of a range waits there once.
        if !self.side(writes).insert(identifier) {
            return;
        }
        let first = self.first_in_the_way(writes);
        entered.waits += usize::from(first.is_some_and(|first| first < identifier.epoch));
        let readers = writes.then(|| self.readers.of(identifier.epoch));
        let writers = (!writes || !self.is_range).then(|| self.writers.of(identifier.epoch));
        entered.meets.extend(readers.into_iter().flatten().chain(writers.into_iter().flatten()).filter(|other| *other != identifier));
    }

    fn leave(&mut self, identifier: Identifier, writes: bool, freed: &mut Vec<Identifier>) {
        let [readers, writers] = [false, true].map(|of_writer| self.first_in_the_way(of_writer));
        self.side(writes).remove(identifier);
        freed.extend(self.readers.freed(readers, self.first_in_the_way(false)));
        freed.extend(self.writers.freed(writers, self.first_in_the_way(true)));
    }
}

/// What a transaction finds when it enters.
#[derive(Debug, Default)]
pub(super) struct Entered {
    /// At how many keys and ranges it waits for earlier epochs.
    pub(super) waits: usize,
    /// Those of its own epoch that conflict with it and entered before it.
    pub(super) meets: BTreeSet<Identifier>,
}

/// The unsettled transactions, by what they touch.
#[derive(Debug, Default)]
pub(super) struct AccessIndex {
    keys: BTreeMap<Key, Accesses>,
    /// By the prefix that all keys of a range have.
    ranges: BTreeMap<Vec<u8>, BTreeMap<KeyRange, Accesses>>,
    /// How many of those prefixes have that length.
    prefix_lengths: BTreeMap<usize, usize>,
}

impl AccessIndex {
    /// Lists its tables.
    pub(super) fn tables(&self, operations_max: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("access.keys", self.keys.len(), operations_max));
        visit(Table::new("access.ranges", self.ranges.len(), operations_max));
    }

    /// A transaction of the last epoch so far becomes one of those that are not settled.
    pub(super) fn enter(&mut self, identifier: Identifier, footprint: &Footprint) -> Entered {
        let mut entered = Entered::default();
        for range in distinct(&footprint.ranges) {
            self.range(range).enter(identifier, false, &mut entered);
        }
        for (key, writes) in &footprint.keys {
            self.keys.entry(key.clone()).or_default().enter(identifier, *writes, &mut entered);
            if *writes {
                self.each_range_with(key, |accesses| accesses.enter(identifier, true, &mut entered));
            }
        }
        work::add(footprint.keys.len() + footprint.ranges.len() + entered.meets.len());
        entered
    }

    /// A transaction is settled. Returns the transactions that wait at one key or range fewer, once for each of these.
    pub(super) fn leave(&mut self, identifier: Identifier, footprint: &Footprint) -> Vec<Identifier> {
        let mut freed = Vec::new();
        for (key, writes) in &footprint.keys {
            let accesses = self.keys.get_mut(key).expect("its keys are indexed");
            accesses.leave(identifier, *writes, &mut freed);
            if accesses.is_empty() {
                self.keys.remove(key);
            }
            if *writes {
                self.each_range_with(key, |accesses| accesses.leave(identifier, true, &mut freed));
            }
        }
        for range in distinct(&footprint.ranges) {
            self.range(range).leave(identifier, false, &mut freed);
            self.drop_unread(range);
        }
        work::add(footprint.keys.len() + footprint.ranges.len() + freed.len());
        freed
    }

    /// A range, with all that write into it.
    fn range(&mut self, range: &KeyRange) -> &mut Accesses {
        let prefix = common_prefix(range);
        if !self.ranges.contains_key(prefix) {
            *self.prefix_lengths.entry(prefix.len()).or_default() += 1;
        }
        let ranges = self.ranges.entry(prefix.to_vec()).or_default();
        ranges.entry(range.clone()).or_insert_with(|| {
            let mut accesses = Accesses { is_range: true, ..Accesses::default() };
            for (_, here) in self.keys.range(range.start.clone()..range.end.clone().max(range.start.clone())) {
                work::add(1);
                for writer in here.writers.0.values().flatten() {
                    work::add(1);
                    accesses.writers.insert(*writer);
                }
            }
            accesses
        })
    }

    fn drop_unread(&mut self, range: &KeyRange) {
        let prefix = common_prefix(range);
        let Some(ranges) = self.ranges.get_mut(prefix) else { return };
        if ranges.get(range).is_some_and(|accesses| accesses.readers.0.is_empty()) {
            ranges.remove(range);
        }
        if ranges.is_empty() {
            self.ranges.remove(prefix);
            let of_length = self.prefix_lengths.get_mut(&prefix.len()).expect("prefixes are counted");
            *of_length -= 1;
            if *of_length == 0 {
                self.prefix_lengths.remove(&prefix.len());
            }
        }
    }

    /// Does something at each range that somebody reads and that has this key.
    fn each_range_with(&mut self, key: &Key, mut each: impl FnMut(&mut Accesses)) {
        for &length in self.prefix_lengths.range(..=key.0.len()).map(|(length, _)| length) {
            let ranges = self.ranges.get_mut(&key.0[..length]).into_iter().flatten();
            for (range, accesses) in ranges.take_while(|(range, _)| range.start <= *key) {
                work::add(1);
                if range.contains(key) {
                    each(accesses);
                }
            }
        }
    }

    /// True if nothing here conflicts with a footprint.
    pub(super) fn is_free(&mut self, footprint: &Footprint) -> bool {
        let written = |accesses: &Accesses| !accesses.writers.0.is_empty();
        let in_range = |range: &KeyRange| self.keys.range(range.start.clone()..range.end.clone().max(range.start.clone()));
        let at_key = |(key, writes): (&Key, &bool)| self.keys.get(key).is_some_and(|accesses| *writes || written(accesses));
        let mut is_free = !footprint.keys.iter().any(at_key);
        is_free &= !footprint.ranges.iter().flat_map(in_range).any(|(_, accesses)| written(accesses));
        for (key, _) in footprint.keys.iter().filter(|(_, writes)| **writes) {
            self.each_range_with(key, |_| is_free = false);
        }
        is_free
    }

    /// True if nothing is left in it.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty() && self.prefix_lengths.is_empty()
    }
}

/// Each range once.
fn distinct(ranges: &[KeyRange]) -> BTreeSet<&KeyRange> {
    ranges.iter().collect()
}

/// A prefix of all keys in a range, the longest one of the usual ranges.
fn common_prefix(range: &KeyRange) -> &[u8] {
    let (start, end) = (&range.start.0, &range.end.0);
    if KeyRange::prefix(start).end == range.end {
        return start;
    }
    let shared = start.iter().zip(end.iter()).take_while(|(one, other)| one == other).count();
    &start[..shared]
}
