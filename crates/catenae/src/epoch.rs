//! Epochs: slices of time by which regions exchange what they received, and the order of commits that follows from them.
//!
//! An epoch is a number; clocks only pace it. All that is decided compares numbers, never clocks. The timestamps of an epoch
//! are those of its slice of the clock: `first`, `first + 1`, … for the transactions in it that must stand one after the
//! other, and [`Epoch::snapshot`], above all of them and below the next epoch, for whoever reads it settled.
//!
//! Source: section V; VI.E for timestamps.

use rhumb_core::{Span, Time, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// An epoch. Zero is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Before the first epoch.
    pub const NONE: Epoch = Epoch(0);

    /// The last epoch that has ended when a clock shows `now`.
    pub fn ended_by(now: Time, length: Span) -> Epoch {
        Epoch((now.as_micros() / length.as_micros()).saturating_sub(1))
    }

    /// No epoch of that length comes after this one: it leaves as much of the range of timestamps as lies before it.
    pub fn last(length: Span) -> Epoch {
        Epoch(Timestamp::MAX.time().as_micros() / 2 / length.as_micros())
    }

    /// The epoch `count` later.
    pub fn plus(self, count: u64) -> Epoch {
        Epoch(self.0.saturating_add(count))
    }

    /// The epoch before this one.
    pub fn previous(self) -> Epoch {
        Epoch(self.0.saturating_sub(1))
    }

    /// The timestamp of a transaction of this epoch that `depth` others must precede one by one.
    pub fn timestamp(self, length: Span, depth: u64) -> Timestamp {
        let first = Timestamp::from_time(Time::from_micros(self.0 * length.as_micros())).bits();
        Timestamp::from_bits(first + depth)
    }

    /// The timestamp at which all of this epoch is seen, and nothing of the next.
    pub fn snapshot(self, length: Span) -> Timestamp {
        self.plus(1).timestamp(length, 0).previous()
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Span = Span::from_millis(10);

    #[test]
    fn an_epoch_has_ended_when_the_next_has_begun() {
        assert_eq!(Epoch::ended_by(Time::from_micros(9_999), LENGTH), Epoch::NONE);
        assert_eq!(Epoch::ended_by(Time::from_micros(20_000), LENGTH), Epoch(1));
        assert_eq!(Epoch::ended_by(Time::from_micros(29_999), LENGTH), Epoch(1));
    }

    #[test]
    fn a_snapshot_lies_above_its_epoch_and_below_the_next() {
        let (epoch, next) = (Epoch(7), Epoch(8));
        assert!(epoch.timestamp(LENGTH, 0) < epoch.timestamp(LENGTH, 1));
        assert!(epoch.timestamp(LENGTH, 1_000_000) < epoch.snapshot(LENGTH));
        assert!(epoch.snapshot(LENGTH) < next.timestamp(LENGTH, 0));
    }
}
