//! The timestamp cache: up to which timestamp each key was read, so that no write slips in below a read already answered.
//!
//! A snapshot read at `t` and a prepared transaction that read at commit timestamp `t` both raise what
//! they read to `t`; a region votes no ("timestamp too low") on a write at or below the timestamp of its key. The table is bounded
//! by two pages: when the newer is full, the older is folded into one *low-water mark* under all keys. That refuses more than
//! it must, which costs a retry, never an anomaly. It also serves as the promise of a closed timestamp, and after a
//! restart as the low-water mark of all that may have been read before.
//!
//! Invariant: `of(key)` never falls, and is at least every timestamp that `raise` was called with for that key.

use rhumb_core::{Key, KeyRange, Table, Timestamp, work};
use std::collections::BTreeMap;

/// Keys in a page.
const PAGE_KEYS_MAX: usize = 32_768;
/// Ends of ranges in a page.
const PAGE_ENDS_MAX: usize = 1_024;

#[derive(Clone, Debug, Default)]
struct Page {
    keys: BTreeMap<Key, Timestamp>,
    /// Where ranges begin and end: from each of these keys up to the next one, all keys were read at that timestamp. A write looks at one
    /// of them, however many ranges were read.
    ends: BTreeMap<Key, Timestamp>,
}

impl Page {
    fn of(&self, key: &Key) -> Timestamp {
        work::add(2);
        self.keys.get(key).copied().unwrap_or(Timestamp::ZERO).max(self.by_range(key))
    }

    fn by_range(&self, key: &Key) -> Timestamp {
        self.ends.range(..=key).next_back().map_or(Timestamp::ZERO, |(_, at)| *at)
    }

    fn raise_range(&mut self, range: &KeyRange, at: Timestamp) {
        for end in [&range.start, &range.end] {
            let there = self.by_range(end);
            self.ends.entry(end.clone()).or_insert(there);
        }
        for (_, known) in self.ends.range_mut(&range.start..&range.end) {
            work::add(1);
            *known = at.max(*known);
        }
    }

    fn highest(&self) -> Timestamp {
        work::add(self.keys.len() + self.ends.len());
        self.keys.values().chain(self.ends.values()).copied().max().unwrap_or(Timestamp::ZERO)
    }

    fn is_full(&self) -> bool {
        self.keys.len() >= PAGE_KEYS_MAX || self.ends.len() >= PAGE_ENDS_MAX
    }
}

/// The timestamp cache of one shard replica.
#[derive(Clone, Debug, Default)]
pub struct TimestampCache {
    low_water: Timestamp,
    newer: Page,
    older: Page,
}

impl TimestampCache {
    /// Lists its pages: they are full or empty whatever is asked.
    pub fn tables(&self, visit: &mut dyn FnMut(Table)) {
        let pages = [&self.newer, &self.older];
        let [keys, ends] = [pages.map(|page| page.keys.len()), pages.map(|page| page.ends.len())].map(|sizes| sizes.iter().sum());
        visit(Table::new("timestamp_cache.keys", keys, 2 * PAGE_KEYS_MAX).stays());
        // The range that makes a page full may bring one end more than fits.
        visit(Table::new("timestamp_cache.ends", ends, 2 * (PAGE_ENDS_MAX + 1)).stays());
    }

    /// The highest timestamp at which `key` may have been read.
    pub fn of(&self, key: &Key) -> Timestamp {
        self.low_water.max(self.newer.of(key)).max(self.older.of(key))
    }

    /// The highest timestamp at which any key may have been read.
    pub fn highest(&self) -> Timestamp {
        self.low_water.max(self.newer.highest()).max(self.older.highest())
    }

    /// Notes that `key` was read at `at`.
    pub fn raise(&mut self, key: &Key, at: Timestamp) {
        if at <= self.low_water {
            return;
        }
        work::add(1);
        let known = self.newer.keys.entry(key.clone()).or_default();
        *known = at.max(*known);
        self.turn_page();
    }

    /// Notes that all of `range` was read at `at`.
    pub fn raise_range(&mut self, range: &KeyRange, at: Timestamp) {
        if at <= self.low_water || range.is_empty() {
            return;
        }
        self.newer.raise_range(range, at);
        self.turn_page();
    }

    /// Notes that any key may have been read at `at`.
    pub fn raise_low_water(&mut self, at: Timestamp) {
        self.low_water = at.max(self.low_water);
    }

    fn turn_page(&mut self) {
        if self.newer.is_full() {
            let full = std::mem::take(&mut self.newer);
            let folded = std::mem::replace(&mut self.older, full);
            self.raise_low_water(folded.highest());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(bits: u64) -> Timestamp {
        Timestamp::from_bits(bits)
    }

    #[test]
    fn a_timestamp_covers_its_key_its_range_and_the_low_water_mark() {
        let mut cache = TimestampCache::default();
        cache.raise(&"k".into(), at(5));
        cache.raise(&"k".into(), at(3));
        cache.raise_range(&KeyRange::new("a".into(), "c".into()), at(9));
        cache.raise_low_water(at(2));
        assert_eq!(cache.of(&"k".into()), at(5));
        assert_eq!(cache.of(&"b".into()), at(9));
        assert_eq!(cache.of(&"c".into()), at(2));
    }

    #[test]
    fn ranges_that_overlap_have_the_highest_timestamp_of_those_that_cover_a_key_and_each_costs_the_same() {
        let mut cache = TimestampCache::default();
        let key = |n: u64| Key::from(format!("k{n:03}").as_str());
        let ranges: Vec<(u64, u64, u64)> = (0..200).map(|n| (n * 37 % 191, n * 37 % 191 + 1 + n % 11, 1 + n * 53 % 199)).collect();
        for (first, end, bits) in &ranges {
            cache.raise_range(&KeyRange::new(key(*first), key(*end)), at(*bits));
        }
        for n in 0..210 {
            let covering = ranges.iter().filter(|(first, end, _)| (*first..*end).contains(&n)).map(|(.., bits)| at(*bits));
            let (found, work) = work::measure(|| cache.of(&key(n)));
            assert_eq!(found, covering.max().unwrap_or(Timestamp::ZERO), "{n}");
            assert!(work < 10, "{work} for one key");
        }
    }

    #[test]
    fn timestamps_are_never_lowered_by_forgetting() {
        let mut cache = TimestampCache::default();
        let reads = 3 * PAGE_KEYS_MAX as u64;
        for n in 0..reads {
            cache.raise(&Key::from(format!("k{n}").as_str()), at(n + 1));
        }
        for n in (0..reads).step_by(97) {
            assert!(cache.of(&Key::from(format!("k{n}").as_str())) >= at(n + 1));
        }
        assert!(cache.low_water > Timestamp::ZERO, "the oldest page was folded");
        assert!(cache.newer.keys.len() <= PAGE_KEYS_MAX && cache.older.keys.len() <= PAGE_KEYS_MAX);
    }
}
