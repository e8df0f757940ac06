//! What is expected and how far such expectations were out, and what tells a lasting change from noise.

use std::mem;

/// An expectation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// What is expected.
    pub value: f64,
    /// By how much expectations of it have erred on average.
    pub error: f64,
}

/// Errors above so many mean ones are a surprise. Two in a row, in the same direction, are a change that lasts: with less, an average
/// that has learned to be slow would take as long to follow as it has known noise.
pub const SURPRISE: f64 = 3.0;

/// The errors of one series of expectations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Errors {
    /// Expected of them before there were many; half as much with each.
    before: f64,
    sum: f64,
    count: f64,
    /// The last error, if it was a surprise: whether it counts is seen with the next one.
    surprise: f64,
}

impl Errors {
    /// Before anything was expected: as if the first value had come unexpected.
    pub(super) fn of_first(value: f64) -> Errors {
        Errors { before: value.abs(), ..Errors::default() }
    }

    /// The mean absolute error.
    pub(super) fn mean(&self) -> f64 {
        self.before.max(if self.count > 0.0 { self.sum / self.count } else { 0.0 })
    }

    /// An expectation was out by `error`. True if what is expected has changed for good; such errors count for nothing.
    pub(super) fn observe(&mut self, error: f64) -> bool {
        let is_surprise = error.abs() > SURPRISE * self.mean();
        let last = mem::take(&mut self.surprise);
        if is_surprise && last * error > 0.0 {
            return true;
        }
        let mut count = |error: f64| {
            self.sum += error.abs();
            self.count += 1.0;
            self.before /= 2.0;
        };
        if last != 0.0 {
            count(last);
        }
        if is_surprise {
            self.surprise = error;
        } else {
            count(error);
        }
        false
    }
}
