//! Invariant: every acknowledged addition is in the counter once, and no other is, save such as have an unknown outcome. Each adds one
//! and is told the sum, so no two are told the same.

use rhumb_core::Key;
use std::collections::{BTreeMap, BTreeSet};

/// What clients know of the counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// By counter: the sums told.
    told: BTreeMap<Key, BTreeSet<i64>>,
    /// By counter: additions that may have happened.
    unknown: BTreeMap<Key, i64>,
    /// What the final read found.
    found: BTreeMap<Key, i64>,
    wrong: Option<String>,
}

impl Counters {
    /// An addition was told its sum.
    pub(crate) fn told(&mut self, key: &Key, sum: i64) {
        if !self.told.entry(key.clone()).or_default().insert(sum) {
            self.wrong.get_or_insert(format!("two additions to {key} were told {sum}"));
        }
    }

    /// An addition may have happened.
    pub(crate) fn unknown(&mut self, key: &Key) {
        *self.unknown.entry(key.clone()).or_default() += 1;
    }

    /// The counter at the end.
    pub(crate) fn found(&mut self, key: Key, sum: i64) {
        self.found.insert(key, sum);
    }

    /// Judges, once all additions have ended.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.wrong.clone().map_or(Ok(()), Err)?;
        for (key, told) in &self.told {
            let (count, unknown) = (told.len() as i64, self.unknown.get(key).copied().unwrap_or(0));
            let found = self.found.get(key).copied().unwrap_or(0);
            let highest = told.last().copied().unwrap_or(0);
            if !(count..=count + unknown).contains(&found) || highest > found {
                return Err(format!(
                    "{count} additions to {key} were acknowledged, up to {highest}, {unknown} more are unknown; but it holds {found} at the end"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_add_up_or_something_is_wrong() {
        let key = Key::from("n0");
        let counters = |told: &[i64], unknown: usize, found: i64| {
            let mut counters = Counters::default();
            told.iter().for_each(|sum| counters.told(&key, *sum));
            (0..unknown).for_each(|_| counters.unknown(&key));
            counters.found(key.clone(), found);
            counters.check()
        };
        assert_eq!(counters(&[1, 2], 1, 3), Ok(()));
        assert!(counters(&[1, 2], 0, 1).is_err(), "one is lost");
        assert!(counters(&[1, 2], 0, 3).is_err(), "one happened twice");
        assert!(counters(&[1, 1], 0, 2).is_err(), "two saw the same");
        assert!(counters(&[1, 4], 1, 3).is_err(), "what was told is not there");
    }
}
