//! What is counted and timed during a run.

use super::parameters::{MOVING_AVERAGE, SAMPLE_ONE_IN};
use hdrhistogram::Histogram;
use rhumb_core::{Rng, Span};
use std::collections::BTreeMap;

/// Latencies are kept in microseconds up to ten minutes, with three significant digits.
const LATENCY_US_MAX: u64 = 600_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// A moving average is taken over a sixth of a run at the most, so that a short run has one, too.
const WINDOWS_MIN: usize = 6;

/// What is counted and timed during a run.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Transactions that the trace asks for and that could be asked for: no release of what was never granted.
    pub offered: u64,
    /// Releases in the trace of tokens that were never granted.
    pub void: u64,
    /// Acquires granted.
    pub acquired: u64,
    /// Releases done.
    pub released: u64,
    /// Reads answered.
    pub read: u64,
    /// Transactions that the client could not send in time.
    pub given_up: u64,
    /// Transactions refused, by the word for programs.
    pub refused: BTreeMap<&'static str, u64>,
    /// Transactions whose site crashed before it answered.
    pub lost: u64,
    /// Transactions without an answer long after the end of the run: a site does not keep its promise to answer.
    pub unanswered: u64,
    /// Milliseconds since the start and latency in milliseconds of some transactions.
    pub samples: Vec<(f64, f64)>,
    per_second: Vec<u32>,
    latency: Histogram<u64>,
    refusal: Histogram<u64>,
    sampling: Rng,
}

impl Meter {
    /// A meter of a run of `length`.
    pub fn new(length: Span, sampling: Rng) -> Meter {
        Meter {
            offered: 0,
            void: 0,
            acquired: 0,
            released: 0,
            read: 0,
            given_up: 0,
            refused: BTreeMap::new(),
            lost: 0,
            unanswered: 0,
            samples: Vec::new(),
            per_second: vec![0; seconds(length).ceil() as usize],
            latency: histogram(),
            refusal: histogram(),
            sampling,
        }
    }

    /// A transaction was answered with success, `at` after the start and `latency` after it was sent.
    pub fn commit(&mut self, at: Span, latency: Span) {
        self.latency.saturating_record(latency.as_micros().max(1));
        if let Some(count) = self.per_second.get_mut(seconds(at) as usize) {
            *count += 1;
        }
        if self.sampling.below(SAMPLE_ONE_IN) == 0 {
            self.samples.push((at.as_millis_f64(), latency.as_millis_f64()));
        }
    }

    /// A transaction was refused, `latency` after it was sent.
    pub fn refuse(&mut self, code: &'static str, latency: Span) {
        self.refusal.saturating_record(latency.as_micros().max(1));
        *self.refused.entry(code).or_default() += 1;
    }

    /// Time in milliseconds below which this share of the refusals stayed.
    pub fn refusal_percentile_ms(&self, quantile: f64) -> f64 {
        self.refusal.value_at_quantile(quantile) as f64 / 1_000.0
    }

    /// Mean time to a refusal in milliseconds.
    pub fn refusal_mean_ms(&self) -> f64 {
        self.refusal.mean() / 1_000.0
    }

    /// Transactions answered with success.
    pub fn committed(&self) -> u64 {
        self.acquired + self.released + self.read
    }

    /// Committed transactions per second over the whole run.
    pub fn throughput(&self) -> f64 {
        self.committed() as f64 / self.per_second.len().max(1) as f64
    }

    /// Committed transactions as a share of those offered.
    pub fn success(&self) -> f64 {
        self.committed() as f64 / self.offered.max(1) as f64
    }

    /// Committed transactions per second between two moments of the run, in seconds.
    pub fn throughput_between(&self, from: f64, to: f64) -> f64 {
        let range = from as usize..(to as usize).min(self.per_second.len());
        let (length, count) = (range.len(), self.per_second[range].iter().map(|count| u64::from(*count)).sum::<u64>());
        count as f64 / length.max(1) as f64
    }

    /// Latency in milliseconds below which this share of the committed transactions stayed.
    pub fn percentile_ms(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1_000.0
    }

    /// Mean latency of the committed transactions in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.latency.mean() / 1_000.0
    }

    /// Seconds since the start and committed transactions per second over the window that ends then.
    pub fn moving_average(&self) -> Vec<(f64, f64)> {
        let length = self.per_second.len();
        let window = (seconds(MOVING_AVERAGE) as usize).min(length / WINDOWS_MIN).max(1);
        let mean = |counts: &[u32]| counts.iter().map(|count| f64::from(*count)).sum::<f64>() / counts.len() as f64;
        let every = (window / 10).max(1);
        (window..=length).step_by(every).map(|end| (end as f64, mean(&self.per_second[end - window..end]))).collect()
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_US_MAX, SIGNIFICANT_DIGITS).expect("the bounds are in order")
}

fn seconds(span: Span) -> f64 {
    span.as_millis_f64() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moving_average_covers_the_seconds_before_it() {
        let mut meter = Meter::new(Span::from_secs(12), Rng::seeded(1));
        for second in 0..12 {
            for _ in 0..second {
                meter.commit(Span::from_millis(second * 1_000 + 500), Span::from_millis(2));
                meter.acquired += 1;
            }
        }
        assert_eq!(meter.moving_average()[..2], [(2.0, 0.5), (3.0, 1.5)]);
        assert_eq!(meter.moving_average().last(), Some(&(12.0, 10.5)));
        assert_eq!(meter.throughput(), 5.5);
        assert_eq!(meter.throughput_between(10.0, 99.0), 10.5);
        assert_eq!(meter.percentile_ms(0.99), 2.0);
    }
}
