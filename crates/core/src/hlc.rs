//! Timestamps and the hybrid logical clock that issues them.
//!
//! A [`Timestamp`] packs a clock reading in microseconds and a logical counter into 64 bits, so that timestamps of one
//! clock are unique, follow its wall clock, and are ordered after everything that the clock has seen. Source: Kulkarni
//! et al., "Logical Physical Clocks", OPODIS 2014; the packing is ours.
//!
//! Invariants: `now` never returns the same timestamp twice, nor one at or below a timestamp observed before; after a
//! restart it stays above the *clock bound* on disk, so that no timestamp is issued twice over all incarnations of a site.

use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

const LOGICAL_BITS: u32 = 12;

/// A point in the order of commits. The upper 52 bits are microseconds since the Unix epoch (good until the year 2112),
/// the lower 12 a logical counter. `Timestamp::ZERO` is below every version: "never written".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Below every version.
    pub const ZERO: Timestamp = Timestamp(0);
    /// Above every version: "the newest there is".
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// The first timestamp of the microsecond `time`.
    pub const fn from_time(time: Time) -> Timestamp {
        Timestamp(time.as_micros() << LOGICAL_BITS)
    }

    /// The timestamp with these 64 bits.
    pub const fn from_bits(bits: u64) -> Timestamp {
        Timestamp(bits)
    }

    /// The 64 bits, ordered as the timestamp is.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The clock reading in it.
    pub const fn time(self) -> Time {
        Time::from_micros(self.0 >> LOGICAL_BITS)
    }

    /// The next timestamp.
    pub const fn next(self) -> Timestamp {
        Timestamp(self.0.saturating_add(1))
    }

    /// The timestamp before this one; of zero, zero.
    pub const fn previous(self) -> Timestamp {
        Timestamp(self.0.saturating_sub(1))
    }

    /// This timestamp moved `span` into the future.
    pub const fn plus(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_add(span.as_micros() << LOGICAL_BITS))
    }

    /// This timestamp moved `span` into the past, not below zero.
    pub const fn minus(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_sub(span.as_micros() << LOGICAL_BITS))
    }
}

impl fmt::Display for Timestamp {
    /// `12.000345+2`: seconds, then the logical counter where it is not zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let logical = self.0 & ((1 << LOGICAL_BITS) - 1);
        write!(f, "{}", self.time())?;
        if logical > 0 {
            write!(f, "+{logical}")?;
        }
        Ok(())
    }
}

/// One site's source of timestamps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HybridClock {
    last: Timestamp,
}

impl HybridClock {
    /// A clock that issues only timestamps above `bound`, the highest that an earlier incarnation may have issued.
    pub fn above(bound: Timestamp) -> HybridClock {
        HybridClock { last: bound }
    }

    /// A new timestamp: not below the clock reading `now`, above all that this clock issued or observed.
    pub fn now(&mut self, now: Time) -> Timestamp {
        self.last = self.last.next().max(Timestamp::from_time(now));
        self.last
    }

    /// A new timestamp like [`HybridClock::now`], but not above `bound`: one behind the clock reading where the bound is behind it.
    /// `None` if all timestamps up to the bound are used up.
    pub fn now_within(&mut self, now: Time, bound: Timestamp) -> Option<Timestamp> {
        let next = self.last.next().max(Timestamp::from_time(now).min(bound));
        if next > bound {
            return None;
        }
        self.last = next;
        Some(next)
    }

    /// Takes note of a timestamp issued elsewhere; later ones issued here lie above it.
    pub fn observe(&mut self, seen: Timestamp) {
        self.last = self.last.max(seen);
    }

    /// The highest timestamp issued or observed so far.
    pub fn last(&self) -> Timestamp {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_follows_the_wall_clock_and_never_repeats() {
        let mut clock = HybridClock::default();
        let first = clock.now(Time::from_micros(10));
        assert_eq!(first, Timestamp::from_time(Time::from_micros(10)));
        assert_eq!(clock.now(Time::from_micros(10)), first.next());
        assert_eq!(clock.now(Time::from_micros(4)), first.next().next(), "a clock that jumps back issues no old timestamp");
        assert_eq!(clock.now(Time::from_micros(11)), Timestamp::from_time(Time::from_micros(11)));
    }

    #[test]
    fn a_bound_behind_the_clock_slows_timestamps_down_and_stops_them_only_once_used_up() {
        let mut clock = HybridClock::default();
        let bound = Timestamp::from_time(Time::from_micros(10));
        assert_eq!(clock.now_within(Time::from_micros(4), bound), Some(Timestamp::from_time(Time::from_micros(4))));
        assert_eq!(clock.now_within(Time::from_micros(90), bound), Some(bound));
        assert_eq!(clock.now_within(Time::from_micros(91), bound), None);
        assert_eq!(clock.now_within(Time::from_micros(91), bound.next()), Some(bound.next()));
    }

    #[test]
    fn now_lies_above_what_was_observed_and_above_the_bound() {
        let bound = Timestamp::from_time(Time::from_micros(500));
        let mut clock = HybridClock::above(bound);
        assert_eq!(clock.now(Time::from_micros(3)), bound.next());
        let seen = Timestamp::from_time(Time::from_micros(900));
        clock.observe(seen);
        assert!(clock.now(Time::from_micros(3)) > seen);
    }

    #[test]
    fn the_counter_overflows_into_the_next_microsecond() {
        let mut clock = HybridClock::default();
        let mut last = clock.now(Time::from_micros(7));
        for _ in 0..5_000 {
            let next = clock.now(Time::from_micros(7));
            assert!(next > last);
            last = next;
        }
        assert_eq!(last.time(), Time::from_micros(8));
    }
}
