//! The latest values of a series, in order, in bounded memory.
//!
//! Invariant: `values` ends with the latest value, and holds at least the last `keep` of all that were pushed, or all of
//! them if they were fewer. Older ones are dropped in bulk, so that a push costs constant time on average and the values
//! always lie in one slice.

use crate::forecaster::VALUE_MAX;
use serde::{Deserialize, Serialize};

/// The latest values of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct History {
    keep: usize,
    seen: u64,
    values: Vec<f64>,
}

impl History {
    /// A history that keeps the last `keep` values, and at least one.
    pub(crate) fn keeping(keep: usize) -> History {
        History { keep: keep.max(1), seen: 0, values: Vec::new() }
    }

    /// The last `keep` values of `series`, and at least one.
    pub(crate) fn of(series: &[f64], keep: usize) -> History {
        let mut history = History::keeping(keep);
        series.iter().for_each(|value| history.push(*value));
        history
    }

    /// Adds the next value, cut to [`VALUE_MAX`]. One that is not finite is a bug of the caller: it would poison every
    /// later forecast.
    pub(crate) fn push(&mut self, value: f64) {
        assert!(value.is_finite(), "a series holds finite numbers, not {value}");
        let value = value.clamp(-VALUE_MAX, VALUE_MAX);
        self.values.push(value);
        self.seen += 1;
        if self.values.len() >= self.keep * 2 {
            self.values.drain(..self.values.len() - self.keep);
        }
    }

    /// The last `keep` values, the latest last; fewer if fewer were seen.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values[self.values.len().saturating_sub(self.keep)..]
    }

    /// The latest value.
    pub(crate) fn last(&self) -> Option<f64> {
        self.values.last().copied()
    }

    /// How many values were ever pushed: the position of the next one in the series.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// Whether a decoded history could have been built by pushes that keep `keep` values.
    pub(crate) fn is_sound(&self, keep: usize) -> bool {
        let length = self.values.len();
        self.keep == keep.max(1)
            && length < self.keep.saturating_mul(2)
            && self.seen >= length as u64
            && (length as u64 == self.seen || length >= self.keep)
            && self.values.iter().all(|value| value.abs() <= VALUE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_latest_values_in_order() {
        let mut history = History::keeping(3);
        for value in 0..10 {
            history.push(f64::from(value));
            assert!(history.is_sound(3));
        }
        assert_eq!((history.values(), history.last(), history.seen()), (&[7.0, 8.0, 9.0][..], Some(9.0), 10));
    }

    #[test]
    #[should_panic(expected = "finite numbers, not NaN")]
    fn refuses_what_is_not_a_number() {
        History::keeping(1).push(f64::NAN);
    }
}
