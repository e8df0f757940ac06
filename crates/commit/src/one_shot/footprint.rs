//! What a transaction touches, and whether two of them are in each other's way.

use rhumb_core::{Key, KeyRange};
use std::collections::BTreeMap;

/// The keys and ranges of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Each key, and whether it is written.
    pub keys: BTreeMap<Key, bool>,
    /// The ranges that are read.
    pub ranges: Vec<KeyRange>,
}

impl Footprint {
    /// True if it changes nothing whatever it finds.
    pub fn is_read_only(&self) -> bool {
        !self.keys.values().any(|writes| *writes)
    }

    /// True if one of the two writes what the other reads or writes: their order matters.
    pub fn conflicts(&self, other: &Footprint) -> bool {
        self.meets(other, |_| true)
    }

    /// The same, on the keys that `place` accepts. A range is everywhere.
    pub fn meets(&self, other: &Footprint, place: impl Fn(&Key) -> bool) -> bool {
        let (few, many) = if self.keys.len() <= other.keys.len() { (self, other) } else { (other, self) };
        let shared = few.keys.iter().filter_map(|(key, writes)| Some((key, *writes | many.keys.get(key)?)));
        let mut shared = shared.filter(|(key, writes)| *writes && place(key));
        shared.next().is_some() || self.writes_into(other, &place) || other.writes_into(self, &place)
    }

    fn writes_into(&self, other: &Footprint, place: &impl Fn(&Key) -> bool) -> bool {
        let mut written = self.keys.iter().filter(|(key, writes)| **writes && place(key));
        !other.ranges.is_empty() && written.any(|(key, _)| other.ranges.iter().any(|range| range.contains(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footprint(keys: &[(&str, bool)], ranges: &[&str]) -> Footprint {
        Footprint {
            keys: keys.iter().map(|(key, writes)| (Key::from(*key), *writes)).collect(),
            ranges: ranges.iter().map(|prefix| KeyRange::prefix(prefix.as_bytes())).collect(),
        }
    }

    #[test]
    fn order_matters_only_where_somebody_writes() {
        let reader = footprint(&[("a", false), ("b", false)], &[]);
        let writer = footprint(&[("b", true), ("c", true)], &[]);
        assert!(!reader.conflicts(&reader));
        assert!(reader.conflicts(&writer) && writer.conflicts(&reader) && writer.conflicts(&writer));
        assert!(!writer.conflicts(&footprint(&[("a", true)], &[])));
    }

    #[test]
    fn a_write_into_a_range_that_is_read_conflicts() {
        let scan = footprint(&[], &["k"]);
        assert!(scan.conflicts(&footprint(&[("k1", true)], &[])) && footprint(&[("k1", true)], &[]).conflicts(&scan));
        assert!(!scan.conflicts(&footprint(&[("k1", false)], &[])) && !scan.conflicts(&scan));
    }

    #[test]
    fn two_transactions_meet_only_where_they_share_a_key() {
        let (one, other) = (footprint(&[("a", true), ("b", true)], &[]), footprint(&[("b", true), ("c", true)], &[]));
        assert!(one.meets(&other, |key| *key == Key::from("b")));
        assert!(!one.meets(&other, |key| *key != Key::from("b")));
    }
}
