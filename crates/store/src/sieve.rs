//! Tells which versions are garbage: those that a newer one supersedes for all who may still read.
//!
//! ```text
//!   a key's versions    90   70  │ 50   30   10
//!                      kept kept │ kept garbage
//!                             horizon
//! ```
//!
//! It is shown keys in order: all of an engine, or those of some of its files, and judges by what it was shown alone. So it may take garbage for worth
//! keeping. It may take what supersedes for being there though a removal of that, which it was not shown, lies elsewhere: only deletions that were
//! collected with all that they cover, and versions that were garbage, are ever removed, so what is below them is garbage, too. Nothing may be put below a
//! deletion that was collected.

use crate::layout;
use rhumb_core::Timestamp;

/// Judges versions that it is shown in order, newest first.
#[derive(Debug)]
pub struct Sieve {
    horizon: Timestamp,
    /// The prefix of the versions of the key that was shown last.
    prefix: Vec<u8>,
    /// The lowest version of that key, unless no version of its key was shown.
    lowest: Option<Timestamp>,
    ripens: Timestamp,
}

impl Sieve {
    /// Of a key's versions at or below `horizon` nobody reads any but the newest.
    pub fn new(horizon: Timestamp) -> Sieve {
        Sieve { horizon, prefix: Vec::new(), lowest: None, ripens: Timestamp::MAX }
    }

    /// True if what lies at `stored` is garbage.
    pub fn is_garbage(&mut self, stored: &[u8]) -> bool {
        let Some((prefix, at)) = layout::version_at(stored) else { return false };
        if prefix != self.prefix {
            self.prefix.clear();
            self.prefix.extend_from_slice(prefix);
            self.lowest = None;
        }
        let Some(newer) = self.lowest.replace(at) else { return false };
        let is_garbage = newer <= self.horizon;
        if !is_garbage {
            self.ripens = self.ripens.min(newer);
        }
        is_garbage
    }

    /// From this horizon on, more of what was shown is garbage.
    pub fn ripens(&self) -> Timestamp {
        self.ripens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::Key;

    #[test]
    fn of_each_keys_versions_at_or_below_the_horizon_the_newest_stays() {
        let mut sieve = Sieve::new(Timestamp::from_bits(5));
        let mut garbage =
            |key: &str, at| sieve.is_garbage(&layout::version_key(&layout::key_prefix(&Key::from(key)), Timestamp::from_bits(at)));
        assert_eq!([9, 6, 5, 4, 1].map(|at| garbage("a", at)), [false, false, false, true, true]);
        assert_eq!([4, 3].map(|at| garbage("a\0", at)), [false, true]);
        assert_eq!([7, 6].map(|at| garbage("b", at)), [false, false]);
        assert_eq!([2, 1].map(|at| garbage("c", at)), [false, true]);
        assert_eq!(sieve.ripens(), Timestamp::from_bits(6), "5 of a is superseded then");
    }

    #[test]
    fn what_is_no_version_is_none_of_its_business() {
        let mut sieve = Sieve::new(Timestamp::MAX);
        let prefix = layout::key_prefix(&Key::from("a"));
        let entry = layout::deletion_key(Timestamp::from_bits(1), &prefix);
        for stored in [layout::FORMAT_KEY, b"", b"\x01", &entry, &entry] {
            assert!(!sieve.is_garbage(stored));
        }
        assert_eq!(sieve.ripens(), Timestamp::MAX);
    }
}
