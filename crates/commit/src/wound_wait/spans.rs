//! Ranges of keys, each owned by a transaction and carrying something; asked for by owner and by what they overlap.
//!
//! Most locks are of one key. Those are found by the key's order, or by their owner and the key; only the wider ones are looked through one by
//! one. A transaction may own a hundred thousand: nothing that is asked once for each of them looks at all of them.

use rhumb_core::{Key, KeyRange, TxnId, work};
use std::collections::{BTreeMap, BTreeSet};

/// See the file's first lines. A transaction may own the same range several times, with different things on it.
#[derive(Clone, Debug)]
pub(super) struct Spans<T> {
    /// By the start of their range: those that cover one key.
    keys: BTreeMap<Key, Owners<T>>,
    wide: BTreeMap<TxnId, Vec<(KeyRange, T)>>,
    /// Of which single keys a transaction owns something.
    owned: BTreeMap<TxnId, BTreeSet<Key>>,
    len: usize,
}

/// What there is on one key.
#[derive(Clone, Debug)]
struct Owners<T> {
    range: KeyRange,
    carried: BTreeMap<TxnId, Vec<T>>,
}

impl<T> Default for Spans<T> {
    fn default() -> Spans<T> {
        Spans { keys: BTreeMap::new(), wide: BTreeMap::new(), owned: BTreeMap::new(), len: 0 }
    }
}

impl<T: PartialEq> Spans<T> {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds one, unless it is there.
    pub(super) fn insert(&mut self, txn: TxnId, range: KeyRange, what: T) {
        work::add(1);
        if !is_single(&range) {
            let there = self.wide.entry(txn).or_default();
            work::add(there.len());
            if !there.iter().any(|(old, carried)| *old == range && *carried == what) {
                there.push((range, what));
                self.len += 1;
            }
            return;
        }
        self.owned.entry(txn).or_default().insert(range.start.clone());
        let owners = self.keys.entry(range.start.clone()).or_insert_with(|| Owners { range, carried: BTreeMap::new() });
        let there = owners.carried.entry(txn).or_default();
        if !there.contains(&what) {
            there.push(what);
            self.len += 1;
        }
    }

    /// Removes `what` on `range` that `txn` owns, if it does.
    pub(super) fn remove(&mut self, txn: TxnId, range: &KeyRange, what: &T) {
        if !is_single(range) {
            let Some(wide) = self.wide.get_mut(&txn) else { return };
            let before = wide.len();
            work::add(before);
            wide.retain(|(there, carried)| there != range || carried != what);
            self.len -= before - wide.len();
            if wide.is_empty() {
                self.wide.remove(&txn);
            }
            return;
        }
        let Some(owners) = self.keys.get_mut(&range.start) else { return };
        let Some(carried) = owners.carried.get_mut(&txn) else { return };
        let before = carried.len();
        carried.retain(|carried| carried != what);
        self.len -= before - carried.len();
        if carried.is_empty() {
            owners.carried.remove(&txn);
            if owners.carried.is_empty() {
                self.keys.remove(&range.start);
            }
            let owned = self.owned.get_mut(&txn).expect("who is among the owners of a key owns it");
            owned.remove(&range.start);
            if owned.is_empty() {
                self.owned.remove(&txn);
            }
        }
    }

    /// Removes all that `txn` owns. Returns the ranges of what was removed.
    pub(super) fn remove_all(&mut self, txn: TxnId) -> Vec<KeyRange> {
        let wide = self.wide.remove(&txn).into_iter().flatten();
        let mut removed: Vec<KeyRange> = wide.map(|(range, _)| range).collect();
        for key in self.owned.remove(&txn).unwrap_or_default() {
            let owners = self.keys.get_mut(&key).expect("a key that is owned has owners");
            let carried = owners.carried.remove(&txn).expect("who owns a key is among its owners");
            removed.extend(carried.iter().map(|_| owners.range.clone()));
            if owners.carried.is_empty() {
                self.keys.remove(&key);
            }
        }
        self.len -= removed.len();
        work::add(removed.len());
        removed
    }

    /// What `txn` owns.
    pub(super) fn of(&self, txn: TxnId) -> impl Iterator<Item = (&KeyRange, &T)> {
        let single = self.owned.get(&txn).into_iter().flatten().filter_map(|key| self.keys.get(key));
        let single = single.flat_map(move |owners| owners.carried.get(&txn).into_iter().flatten().map(|what| (&owners.range, what)));
        single.chain(self.wide.get(&txn).into_iter().flatten().map(|(range, what)| (range, what))).inspect(|_| work::add(1))
    }

    /// What `txn` owns of which `range` is a part, or all.
    pub(super) fn covering<'a>(&'a self, txn: TxnId, range: &'a KeyRange) -> impl Iterator<Item = (&'a KeyRange, &'a T)> {
        let owners = self.keys.get(&range.start).filter(|owners| range.end <= owners.range.end);
        let single = owners.into_iter().flat_map(move |owners| {
            let carried = owners.carried.get(&txn).into_iter().flatten();
            carried.map(move |what| (&owners.range, what))
        });
        let wide = self.wide.get(&txn).into_iter().flatten().map(|(there, what)| (there, what)).inspect(|_| work::add(1));
        single.chain(wide.filter(|(there, _)| there.start <= range.start && range.end <= there.end))
    }

    /// Those that share a key with `range`, which is not empty, and their owners.
    pub(super) fn overlapping<'a>(&'a self, range: &'a KeyRange) -> impl Iterator<Item = (TxnId, &'a KeyRange, &'a T)> {
        let single = self.keys.range(&range.start..&range.end).flat_map(|(_, owners)| {
            let all = owners.carried.iter().flat_map(|(txn, carried)| carried.iter().map(move |what| (*txn, what)));
            all.map(move |(txn, what)| (txn, &owners.range, what))
        });
        let wide = self.wide.iter().flat_map(|(txn, spans)| spans.iter().map(move |(there, what)| (*txn, there, what)));
        single.chain(wide).inspect(|_| work::add(1)).filter(|(_, there, _)| there.overlaps(range))
    }

    /// All of them, and their owners.
    pub(super) fn all(&self) -> impl Iterator<Item = (TxnId, &KeyRange, &T)> {
        self.owners().into_iter().flat_map(move |txn| self.of(txn).map(move |(range, what)| (txn, range, what)))
    }

    /// Who owns anything.
    pub(super) fn owners(&self) -> BTreeSet<TxnId> {
        self.owned.keys().chain(self.wide.keys()).copied().collect()
    }
}

/// True if it holds one key.
fn is_single(range: &KeyRange) -> bool {
    range.end.0.len() == range.start.0.len() + 1 && range.end.0.starts_with(&range.start.0) && range.end.0.ends_with(&[0])
}
