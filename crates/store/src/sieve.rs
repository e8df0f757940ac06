//! Tells which versions are garbage: those that a newer one supersedes for all who may still read.
//!
//! ```text
//!   a key's versions    90   70  │ 50   30   10
//!                      kept kept │ kept garbage
//!                             horizon
//! ```
//!
//! It is shown keys in order: all of an engine, or those of some of its files. Of those it judges only by what it was shown, so it may take garbage for
//! worth keeping, never the other way round.

use crate::layout;
use rhumb_core::Timestamp;

/// Judges versions that it is shown in order, newest first.
#[derive(Debug)]
pub struct Sieve {
    horizon: Timestamp,
    /// The prefix of the versions of the key that was shown last.
    prefix: Vec<u8>,
    /// It has a version at or below the horizon.
    superseded: bool,
}

impl Sieve {
    /// Of a key's versions at or below `horizon` nobody reads any but the newest.
    pub fn new(horizon: Timestamp) -> Sieve {
        Sieve { horizon, prefix: Vec::new(), superseded: false }
    }

    /// True if what lies at `stored` is garbage.
    pub fn is_garbage(&mut self, stored: &[u8]) -> bool {
        let Some((prefix, at)) = layout::version_at(stored) else { return false };
        if prefix != self.prefix {
            self.prefix.clear();
            self.prefix.extend_from_slice(prefix);
            self.superseded = false;
        }
        at <= self.horizon && std::mem::replace(&mut self.superseded, true)
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
    }

    #[test]
    fn what_is_no_version_is_none_of_its_business() {
        let mut sieve = Sieve::new(Timestamp::MAX);
        let prefix = layout::key_prefix(&Key::from("a"));
        let entry = layout::deletion_key(Timestamp::from_bits(1), &prefix);
        for stored in [layout::FORMAT_KEY, b"", b"\x01", &entry, &entry] {
            assert!(!sieve.is_garbage(stored));
        }
    }
}
