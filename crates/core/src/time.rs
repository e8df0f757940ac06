//! Time as the protocols see it: whole microseconds, handed in by the driver.
//!
//! [`Time`] is a reading of one site's clock (microseconds since the Unix epoch; in the simulator since the start of the
//! run). Two sites' readings are not comparable: clocks are skewed. [`Span`] is a length of time. Neither can be made
//! from the system clock here; only a driver does that.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A reading of one site's clock, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(u64);

/// A length of time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span(u64);

impl Time {
    /// The origin of the scale.
    pub const ZERO: Time = Time(0);

    /// The instant `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Time {
        Time(micros)
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// This instant moved back by `span`, not below the origin.
    pub const fn minus(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Span {
        Span(micros)
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis * 1_000)
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs * 1_000_000)
    }

    /// A span of `millis` milliseconds, rounded to the nearest microsecond. `None` for a negative or non-finite number.
    pub fn from_millis_f64(millis: f64) -> Option<Span> {
        (millis.is_finite() && millis >= 0.0).then(|| Span((millis * 1_000.0).round() as u64))
    }

    /// Whole microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Milliseconds, with their fraction.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1_000.0
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0 + span.0)
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}

impl Sub for Span {
    type Output = Span;
    /// The difference, or zero if `other` is longer.
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, factor: u64) -> Span {
        Span(self.0 * factor)
    }
}

impl fmt::Display for Time {
    /// Seconds with six decimals: `12.000345`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl fmt::Display for Span {
    /// Milliseconds, fraction only where there is one: `86ms`, `0.25ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.as_millis_f64())
    }
}
