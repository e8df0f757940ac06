//! Ranges of keys, each owned by a transaction and carrying something; asked for by owner and by what they overlap.
//!
//! Most locks are of one key. Those are found by the key's order; only the wider ones are looked through one by one.

use rhumb_core::{Key, KeyRange, TxnId};
use std::collections::{BTreeMap, BTreeSet};

/// See the file's first lines. A transaction may own the same range several times, with different things on it.
#[derive(Debug)]
pub(super) struct Spans<T> {
    /// By the start of their range: those that cover one key.
    keys: BTreeMap<Key, Owners<T>>,
    wide: BTreeMap<TxnId, Vec<(KeyRange, T)>>,
    /// Of which single keys a transaction owns something.
    owned: BTreeMap<TxnId, BTreeSet<Key>>,
    len: usize,
}

/// What there is on one key.
#[derive(Debug)]
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
        if range.start.successor() != range.end {
            let there = self.wide.entry(txn).or_default();
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

    /// Removes all that `txn` owns and `keep` does not pick. Returns the ranges of what was removed.
    pub(super) fn retain(&mut self, txn: TxnId, keep: impl Fn(&KeyRange, &T) -> bool) -> Vec<KeyRange> {
        let mut removed = Vec::new();
        if let Some(wide) = self.wide.get_mut(&txn) {
            removed.extend(wide.extract_if(.., |(range, what)| !keep(range, what)).map(|(range, _)| range));
            if wide.is_empty() {
                self.wide.remove(&txn);
            }
        }
        let mut owned = self.owned.remove(&txn).unwrap_or_default();
        owned.retain(|key| {
            let owners = self.keys.get_mut(key).expect("a key that is owned has owners");
            let carried = owners.carried.get_mut(&txn).expect("who owns a key is among its owners");
            removed.extend(carried.extract_if(.., |what| !keep(&owners.range, what)).map(|_| owners.range.clone()));
            let keeps = !carried.is_empty();
            if !keeps {
                owners.carried.remove(&txn);
                if owners.carried.is_empty() {
                    self.keys.remove(key);
                }
            }
            keeps
        });
        if !owned.is_empty() {
            self.owned.insert(txn, owned);
        }
        self.len -= removed.len();
        removed
    }

    /// What `txn` owns.
    pub(super) fn of(&self, txn: TxnId) -> impl Iterator<Item = (&KeyRange, &T)> {
        let single = self.owned.get(&txn).into_iter().flatten().filter_map(|key| self.keys.get(key));
        let single = single.flat_map(move |owners| owners.carried.get(&txn).into_iter().flatten().map(|what| (&owners.range, what)));
        single.chain(self.wide.get(&txn).into_iter().flatten().map(|(range, what)| (range, what)))
    }

    /// Those that share a key with `range`, which is not empty, and their owners.
    pub(super) fn overlapping<'a>(&'a self, range: &'a KeyRange) -> impl Iterator<Item = (TxnId, &'a KeyRange, &'a T)> {
        let single = self.keys.range(&range.start..&range.end).flat_map(|(_, owners)| {
            let all = owners.carried.iter().flat_map(|(txn, carried)| carried.iter().map(move |what| (*txn, what)));
            all.map(move |(txn, what)| (txn, &owners.range, what))
        });
        let wide = self.wide.iter().flat_map(|(txn, spans)| spans.iter().map(move |(there, what)| (*txn, there, what)));
        single.chain(wide.filter(|(_, there, _)| there.overlaps(range)))
    }

    /// Who owns anything.
    pub(super) fn owners(&self) -> BTreeSet<TxnId> {
        self.owned.keys().chain(self.wide.keys()).copied().collect()
    }
}
