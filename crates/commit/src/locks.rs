//! The lock table of one shard replica: shared, exclusive and range locks that are granted or denied, never queued.
//!
//! A shared lock has two lives. While its transaction is still *reading*, the lock is a token: whoever wants the key
//! exclusively takes it over, and the reader finds out when its vote is asked. Once its transaction is *prepared*, the
//! lock is firm until the outcome and an exclusive request is denied. (The rule that a reader may release at the
//! prepare holds for one lock table, not for one per region: two transactions that read each other's writes could
//! then prepare in opposite orders in two regions.) A reader whose lock was taken over is remembered as having *lost* it
//! until it is released: its region votes no.
//!
//! Source: Replicated Commit, sections 3.1 and 3.2.1, and 3.2.2 for the release at the prepare; range locks are ours.
//!
//! | held by another ↓ / wanted → | shared, range | exclusive |
//! |---|---|---|
//! | shared or range, reading | granted | granted, taken over |
//! | shared or range, prepared | granted | denied |
//! | exclusive | denied | denied |
//!
//! A lock is *carried* for a transaction that other regions may have committed: it denies what an exclusive one denies, and stands beside
//! whatever is held already.
//!
//! Invariants: a key has at most one exclusive holder that is not carried; a key held exclusively by one transaction is held shared by
//! nobody else, except that a lock taken over is gone at once.

use rhumb_core::{Key, KeyRange, TxnId, work};
use std::collections::{BTreeMap, BTreeSet};

/// How firm a shared or range lock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// Held while reading; an exclusive request takes it over.
    Reading,
    /// Held from the vote to the outcome; an exclusive request is denied.
    Prepared,
}

/// The locks of one shard replica.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    exclusive: BTreeMap<Key, TxnId>,
    shared: BTreeMap<Key, BTreeMap<TxnId, Strength>>,
    ranges: BTreeMap<TxnId, Vec<(KeyRange, Strength)>>,
    /// Keys that transactions which others are prepared for may write: exclusive, but several may be in doubt about the same key.
    carried: BTreeMap<Key, BTreeSet<TxnId>>,
    /// What each transaction holds, for its release. Ranges are found in `ranges`.
    held: BTreeMap<TxnId, BTreeSet<Key>>,
    /// The transactions of which a lock was taken over.
    lost: BTreeSet<TxnId>,
}

impl Locks {
    /// A transaction other than `txn` that holds `key` exclusively.
    pub fn exclusive_holder(&self, key: &Key, txn: Option<TxnId>) -> Option<TxnId> {
        self.exclusive_holders(key).find(|holder| Some(*holder) != txn)
    }

    /// The transactions that hold `key` exclusively: one, and those carried.
    pub fn exclusive_holders(&self, key: &Key) -> impl Iterator<Item = TxnId> {
        self.exclusive.get(key).into_iter().chain(self.carried.get(key).into_iter().flatten()).copied()
    }

    /// A transaction other than `txn` that holds a key of `range` exclusively.
    pub fn exclusive_holder_within(&self, range: &KeyRange, txn: Option<TxnId>) -> Option<TxnId> {
        self.holders_within(range).find(|holder| Some(*holder) != txn)
    }

    /// The transactions that hold a key of `range` exclusively.
    pub fn exclusive_holders_within(&self, range: &KeyRange) -> BTreeSet<TxnId> {
        self.holders_within(range).collect()
    }

    fn holders_within(&self, range: &KeyRange) -> impl Iterator<Item = TxnId> {
        let range = (!range.is_empty()).then(|| range.start.clone()..range.end.clone());
        let exclusive = range.clone().into_iter().flat_map(|range| self.exclusive.range(range)).map(|(_, holder)| holder);
        let carried = range.into_iter().flat_map(|range| self.carried.range(range)).flat_map(|(_, holders)| holders);
        exclusive.chain(carried).copied().inspect(|_| work::add(1))
    }

    /// The transaction that denies `txn` an exclusive lock on `key`, if any.
    pub fn denies_exclusive(&self, key: &Key, txn: TxnId) -> Option<TxnId> {
        work::add(1);
        let prepared = |(holder, strength): (&TxnId, &Strength)| (*holder != txn && *strength == Strength::Prepared).then_some(*holder);
        self.exclusive_holder(key, Some(txn))
            .or_else(|| self.shared.get(key).and_then(|holders| holders.iter().find_map(prepared)))
            .or_else(|| {
                self.ranges.iter().find_map(|(holder, ranges)| {
                    work::add(ranges.len());
                    let firm = |(range, strength): &(KeyRange, Strength)| *strength == Strength::Prepared && range.contains(key);
                    (*holder != txn && ranges.iter().any(firm)).then_some(*holder)
                })
            })
    }

    /// Gives `txn` a shared lock on `key`. The caller has checked that nobody else holds it exclusively.
    pub fn share(&mut self, key: &Key, txn: TxnId, strength: Strength) {
        assert!(self.exclusive_holder(key, Some(txn)).is_none(), "a key held exclusively is not shared");
        work::add(1);
        let held = self.shared.entry(key.clone()).or_default().entry(txn).or_insert(strength);
        *held = strength.max(*held);
        self.held.entry(txn).or_default().insert(key.clone());
    }

    /// Gives `txn` a shared lock on `range`. The caller has checked that nobody else holds a key of it exclusively.
    pub fn share_range(&mut self, range: &KeyRange, txn: TxnId, strength: Strength) {
        assert!(self.exclusive_holder_within(range, Some(txn)).is_none(), "a range with a key held exclusively is not shared");
        let ranges = self.ranges.entry(txn).or_default();
        work::add(ranges.len());
        match ranges.iter_mut().find(|(held, _)| held == range) {
            Some((_, held)) => *held = strength.max(*held),
            None => ranges.push((range.clone(), strength)),
        }
        self.held.entry(txn).or_default();
    }

    /// Cuts the lock that `txn`, still reading, holds on `range` down to `read`, the part of it that was read.
    pub fn shrink_range(&mut self, range: &KeyRange, read: &KeyRange, txn: TxnId) {
        let mut ranges = self.ranges.get_mut(&txn).into_iter().flatten();
        if let Some((held, _)) = ranges.find(|(held, strength)| held == range && *strength == Strength::Reading) {
            *held = read.clone();
        }
    }

    /// Gives `txn` the exclusive lock on `key`, taking over what readers hold. The caller has checked that nobody
    /// denies it.
    pub fn exclude(&mut self, key: &Key, txn: TxnId) {
        assert!(self.denies_exclusive(key, txn).is_none(), "an exclusive lock is granted to one transaction only");
        self.take_over(key, Some(txn));
        self.exclusive.insert(key.clone(), txn);
        self.held.entry(txn).or_default().insert(key.clone());
    }

    /// Keeps `key` for `txn`, which others are prepared for: whoever holds it here already keeps it too.
    pub fn carry(&mut self, key: &Key, txn: TxnId) {
        self.carried.entry(key.clone()).or_default().insert(txn);
        self.held.entry(txn).or_default().insert(key.clone());
    }

    /// Takes over every lock on `key` that a reader other than `txn` holds: its value has changed, or is about to.
    pub fn take_over(&mut self, key: &Key, txn: Option<TxnId>) {
        work::add(1);
        let lost = &mut self.lost;
        let mut keeps = |holder: TxnId, strength: Strength, covers: bool| {
            let keeps = Some(holder) == txn || strength == Strength::Prepared || !covers;
            if !keeps {
                lost.insert(holder);
            }
            keeps
        };
        if let Some(holders) = self.shared.get_mut(key) {
            holders.retain(|holder, strength| keeps(*holder, *strength, true));
            if holders.is_empty() {
                self.shared.remove(key);
            }
        }
        for (holder, ranges) in &mut self.ranges {
            work::add(ranges.len());
            ranges.retain(|(range, strength)| keeps(*holder, *strength, range.contains(key)));
        }
        self.ranges.retain(|_, ranges| !ranges.is_empty());
    }

    /// True if a lock of `txn` was taken over since it was last released.
    pub fn has_lost(&self, txn: TxnId) -> bool {
        self.lost.contains(&txn)
    }

    /// True if `txn` holds a shared or the exclusive lock on `key`, or a range lock that covers it.
    pub fn holds(&self, key: &Key, txn: TxnId) -> bool {
        self.exclusive.get(key) == Some(&txn)
            || self.shared.get(key).is_some_and(|holders| holders.contains_key(&txn))
            || self.ranges.get(&txn).is_some_and(|ranges| ranges.iter().any(|(range, _)| range.contains(key)))
    }

    /// Releases all that `txn` holds.
    pub fn release(&mut self, txn: TxnId) {
        let keys = self.held.remove(&txn).unwrap_or_default();
        work::add(keys.len());
        for key in keys {
            if self.exclusive.get(&key) == Some(&txn) {
                self.exclusive.remove(&key);
            }
            if let Some(holders) = self.carried.get_mut(&key) {
                holders.remove(&txn);
                if holders.is_empty() {
                    self.carried.remove(&key);
                }
            }
            if let Some(holders) = self.shared.get_mut(&key) {
                holders.remove(&txn);
                if holders.is_empty() {
                    self.shared.remove(&key);
                }
            }
        }
        self.ranges.remove(&txn);
        self.lost.remove(&txn);
    }

    /// How many keys and ranges are locked, and how many transactions hold or have lost a lock.
    pub fn sizes(&self) -> (usize, usize) {
        let ranges = self.ranges.len();
        (self.exclusive.len() + self.shared.len() + self.carried.len() + ranges, self.held.len() + self.lost.len())
    }

    /// The transactions that hold or have lost any lock.
    pub fn holders(&self) -> impl Iterator<Item = TxnId> + '_ {
        self.held.keys().chain(&self.lost).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::{SiteId, Timestamp};

    fn txn(n: u64) -> TxnId {
        TxnId { began: Timestamp::from_bits(n), gateway: SiteId::new(0, 0) }
    }

    fn range() -> KeyRange {
        KeyRange::new("a".into(), "m".into())
    }

    #[test]
    fn an_exclusive_lock_takes_over_a_readers_lock() {
        let mut locks = Locks::default();
        locks.share(&"k".into(), txn(1), Strength::Reading);
        locks.share_range(&range(), txn(2), Strength::Reading);
        assert_eq!(locks.denies_exclusive(&"k".into(), txn(3)), None);
        locks.exclude(&"k".into(), txn(3));
        assert!(!locks.holds(&"k".into(), txn(1)));
        assert!(!locks.holds(&"b".into(), txn(2)));
        assert!(locks.has_lost(txn(1)) && locks.has_lost(txn(2)) && !locks.has_lost(txn(3)));
        assert!(locks.holds(&"k".into(), txn(3)));
    }

    #[test]
    fn a_prepared_readers_lock_denies_an_exclusive_one() {
        let mut locks = Locks::default();
        locks.share(&"x".into(), txn(1), Strength::Prepared);
        locks.share_range(&range(), txn(2), Strength::Prepared);
        assert_eq!(locks.denies_exclusive(&"x".into(), txn(3)), Some(txn(1)));
        assert_eq!(locks.denies_exclusive(&"b".into(), txn(3)), Some(txn(2)));
        assert_eq!(locks.denies_exclusive(&"m".into(), txn(3)), None, "the end of a range lies outside it");
        assert_eq!(locks.denies_exclusive(&"x".into(), txn(1)), None, "one's own lock denies nothing");
    }

    #[test]
    fn a_reader_keeps_its_lock_when_it_writes_the_key_itself() {
        let mut locks = Locks::default();
        locks.share(&"k".into(), txn(1), Strength::Reading);
        locks.share(&"k".into(), txn(2), Strength::Reading);
        locks.exclude(&"k".into(), txn(1));
        assert!(locks.holds(&"k".into(), txn(1)) && !locks.holds(&"k".into(), txn(2)));
    }

    #[test]
    fn a_stronger_lock_is_not_weakened_by_reading_again() {
        let mut locks = Locks::default();
        locks.share(&"k".into(), txn(1), Strength::Prepared);
        locks.share(&"k".into(), txn(1), Strength::Reading);
        assert_eq!(locks.denies_exclusive(&"k".into(), txn(2)), Some(txn(1)));
    }

    #[test]
    fn release_frees_everything_and_nothing_else() {
        let mut locks = Locks::default();
        locks.exclude(&"a".into(), txn(1));
        locks.share(&"b".into(), txn(1), Strength::Prepared);
        locks.share(&"b".into(), txn(2), Strength::Prepared);
        locks.share_range(&KeyRange::new("x".into(), "z".into()), txn(1), Strength::Prepared);
        locks.release(txn(1));
        assert_eq!(locks.holders().collect::<Vec<_>>(), [txn(2)]);
        assert_eq!(locks.denies_exclusive(&"a".into(), txn(3)), None);
        assert_eq!(locks.denies_exclusive(&"y".into(), txn(3)), None);
        assert_eq!(locks.denies_exclusive(&"b".into(), txn(3)), Some(txn(2)));
    }

    #[test]
    fn exclusive_holders_of_a_range_are_found() {
        let mut locks = Locks::default();
        locks.exclude(&"b".into(), txn(1));
        locks.exclude(&"z".into(), txn(2));
        assert_eq!(locks.exclusive_holder_within(&range(), None), Some(txn(1)));
        assert_eq!(locks.exclusive_holder_within(&range(), Some(txn(1))), None);
        assert_eq!(locks.exclusive_holders_within(&range()), BTreeSet::from([txn(1)]));
    }
}
