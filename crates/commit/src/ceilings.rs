//! Read ceilings: up to which timestamp each key was read, so that no write slips in below a read already answered.
//!
//! A snapshot read at `t` and a prepared transaction that read at commit timestamp `t` both raise the ceiling of what
//! they read to `t`; a region votes no ("too old") on a write at or below the ceiling of its key. The table is bounded
//! by two pages: when the newer is full, the older is folded into one *floor* under all keys. A floor refuses more than
//! it must, which costs a retry, never an anomaly. It also serves as the promise of a closed timestamp, and after a
//! restart as the ceiling of all that may have been read before.
//!
//! Invariant: `of(key)` never falls, and is at least every timestamp that `raise` was called with for that key.

use rhumb_core::{Key, KeyRange, Timestamp};
use std::collections::BTreeMap;

/// Keys in a page.
const PAGE_KEYS_MAX: usize = 32_768;
/// Ranges in a page; each is looked at on every write.
const PAGE_RANGES_MAX: usize = 512;

#[derive(Debug, Default)]
struct Page {
    keys: BTreeMap<Key, Timestamp>,
    ranges: Vec<(KeyRange, Timestamp)>,
}

impl Page {
    fn of(&self, key: &Key) -> Timestamp {
        let by_range = self.ranges.iter().filter(|(range, _)| range.contains(key)).map(|(_, at)| *at).max();
        self.keys.get(key).copied().max(by_range).unwrap_or(Timestamp::ZERO)
    }

    fn highest(&self) -> Timestamp {
        self.keys.values().copied().chain(self.ranges.iter().map(|(_, at)| *at)).max().unwrap_or(Timestamp::ZERO)
    }

    fn len(&self) -> usize {
        self.keys.len() + self.ranges.len()
    }

    fn is_full(&self) -> bool {
        self.keys.len() >= PAGE_KEYS_MAX || self.ranges.len() >= PAGE_RANGES_MAX
    }
}

/// The read ceilings of one shard replica.
#[derive(Debug, Default)]
pub struct ReadCeilings {
    floor: Timestamp,
    newer: Page,
    older: Page,
}

impl ReadCeilings {
    /// So many keys and ranges are kept one by one at the most.
    pub const LEN_MAX: usize = 2 * (PAGE_KEYS_MAX + PAGE_RANGES_MAX);

    /// How many keys and ranges are kept one by one.
    pub fn len(&self) -> usize {
        self.newer.len() + self.older.len()
    }

    /// True if none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The highest timestamp at which `key` may have been read.
    pub fn of(&self, key: &Key) -> Timestamp {
        self.floor.max(self.newer.of(key)).max(self.older.of(key))
    }

    /// The highest timestamp at which any key may have been read.
    pub fn highest(&self) -> Timestamp {
        self.floor.max(self.newer.highest()).max(self.older.highest())
    }

    /// Notes that `key` was read at `at`.
    pub fn raise(&mut self, key: &Key, at: Timestamp) {
        if at <= self.floor {
            return;
        }
        let ceiling = self.newer.keys.entry(key.clone()).or_default();
        *ceiling = at.max(*ceiling);
        self.turn_page();
    }

    /// Notes that all of `range` was read at `at`.
    pub fn raise_range(&mut self, range: &KeyRange, at: Timestamp) {
        if at <= self.floor || range.is_empty() {
            return;
        }
        match self.newer.ranges.iter_mut().find(|(known, _)| known == range) {
            Some((_, ceiling)) => *ceiling = at.max(*ceiling),
            None => self.newer.ranges.push((range.clone(), at)),
        }
        self.turn_page();
    }

    /// Notes that any key may have been read at `at`.
    pub fn raise_floor(&mut self, at: Timestamp) {
        self.floor = at.max(self.floor);
    }

    fn turn_page(&mut self) {
        if self.newer.is_full() {
            let full = std::mem::take(&mut self.newer);
            let folded = std::mem::replace(&mut self.older, full);
            self.raise_floor(folded.highest());
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
    fn a_ceiling_covers_its_key_its_range_and_the_floor() {
        let mut ceilings = ReadCeilings::default();
        ceilings.raise(&"k".into(), at(5));
        ceilings.raise(&"k".into(), at(3));
        ceilings.raise_range(&KeyRange::new("a".into(), "c".into()), at(9));
        ceilings.raise_floor(at(2));
        assert_eq!(ceilings.of(&"k".into()), at(5));
        assert_eq!(ceilings.of(&"b".into()), at(9));
        assert_eq!(ceilings.of(&"c".into()), at(2));
    }

    #[test]
    fn ceilings_are_never_lowered_by_forgetting() {
        let mut ceilings = ReadCeilings::default();
        let reads = 3 * PAGE_KEYS_MAX as u64;
        for n in 0..reads {
            ceilings.raise(&Key::from(format!("k{n}").as_str()), at(n + 1));
        }
        for n in (0..reads).step_by(97) {
            assert!(ceilings.of(&Key::from(format!("k{n}").as_str())) >= at(n + 1));
        }
        assert!(ceilings.floor > Timestamp::ZERO, "the oldest page was folded");
        assert!(ceilings.newer.keys.len() <= PAGE_KEYS_MAX && ceilings.older.keys.len() <= PAGE_KEYS_MAX);
    }
}
