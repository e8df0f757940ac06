//! Latencies as they are measured, in bounded memory.

use std::time::Duration;

use hdrhistogram::Histogram;

/// They are kept in microseconds up to ten minutes, with three significant digits.
const LATENCY_US_MAX: u64 = 600_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// The latencies of some operations.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies(Histogram::new_with_bounds(1, LATENCY_US_MAX, SIGNIFICANT_DIGITS).expect("the bounds are in order"))
    }
}

impl Latencies {
    /// Adds one.
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(LATENCY_US_MAX).max(1));
    }

    /// Adds those of `other`.
    pub fn add(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("the bounds are the same");
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The latency, in milliseconds, that this share of them does not exceed.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        millis(self.0.value_at_quantile(share))
    }

    /// The mean, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.0.mean() / 1_000.0
    }

    /// The longest, in milliseconds.
    pub fn max_ms(&self) -> f64 {
        millis(self.0.max())
    }
}

fn millis(us: u64) -> f64 {
    us as f64 / 1_000.0
}
