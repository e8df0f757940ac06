//! What is counted and timed of a run.

use hdrhistogram::Histogram;
use rhumb_core::Span;

/// Latencies are kept in microseconds up to ten minutes, with three significant digits.
const LATENCY_US_MAX: u64 = 600_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// What was counted and timed, of what ended while it was measured.
#[derive(Clone, Debug)]
pub struct Meter {
    /// For how long.
    pub measured: Span,
    /// Transactions aborted as others were in the way.
    pub aborted: u64,
    /// Transactions that failed for another reason.
    pub failed: u64,
    /// Transactions that rejected themselves.
    pub rejected: u64,
    /// Transactions without an answer long after an open loop's end.
    pub unanswered: u64,
    latency: Histogram<u64>,
}

impl Default for Meter {
    fn default() -> Meter {
        let latency = Histogram::new_with_bounds(1, LATENCY_US_MAX, SIGNIFICANT_DIGITS).expect("the bounds are in order");
        Meter { measured: Span::ZERO, aborted: 0, failed: 0, rejected: 0, unanswered: 0, latency }
    }
}

impl Meter {
    /// A transaction committed, so long after it was asked for the first time.
    pub(super) fn commit(&mut self, took: Span) {
        self.latency.saturating_record(took.as_micros().max(1));
    }

    /// Transactions committed.
    pub fn committed(&self) -> u64 {
        self.latency.len()
    }

    /// Committed a second.
    pub fn throughput(&self) -> f64 {
        self.committed() as f64 * 1_000.0 / self.measured.as_millis_f64().max(1.0)
    }

    /// Mean latency of what committed, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.latency.mean() / 1_000.0
    }

    /// Latency in milliseconds below which this share of what committed stayed.
    pub fn percentile_ms(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1_000.0
    }

    /// Of what ended, the share that was aborted.
    pub fn abort_share(&self) -> f64 {
        self.aborted as f64 / (self.committed() + self.aborted + self.failed + self.rejected).max(1) as f64
    }
}
