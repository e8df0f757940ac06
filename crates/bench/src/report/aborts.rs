//! How often a cause ended an attempt.

use serde::Serialize;

/// How often a cause ended an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AbortReport {
    /// Attempts followed by another.
    pub retried: u64,
    /// Attempts that were the last their transaction had.
    pub given_up: u64,
}

impl AbortReport {
    /// Counts one attempt.
    pub fn count(&mut self, retried: bool) {
        if retried {
            self.retried += 1;
        } else {
            self.given_up += 1;
        }
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &AbortReport) {
        self.retried += other.retried;
        self.given_up += other.given_up;
    }
}
