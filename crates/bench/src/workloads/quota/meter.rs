//! What is counted and timed of the operations of one kind in one region.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Latencies are kept in microseconds up to a minute, with three significant digits.
const LATENCY_US_MAX: u64 = 60_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// Counts and latencies.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Operations done.
    pub done: u64,
    /// Operations refused, by the code of the refusal.
    pub refused: BTreeMap<String, u64>,
    /// Operations whose connection broke before they were answered.
    pub unknown: u64,
    /// Of every answer, whatever it was: a refusal takes its time too.
    latency: Histogram<u64>,
}

impl Default for Meter {
    fn default() -> Meter {
        let latency = Histogram::new_with_bounds(1, LATENCY_US_MAX, SIGNIFICANT_DIGITS).expect("the bounds are in order");
        Meter { done: 0, refused: BTreeMap::new(), unknown: 0, latency }
    }
}

impl Meter {
    /// Counts an answer: done, or refused with this code.
    pub fn answer(&mut self, refused: Option<&str>, latency: Duration) {
        match refused {
            None => self.done += 1,
            Some(code) => *self.refused.entry(code.to_owned()).or_default() += 1,
        }
        self.latency.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1));
    }

    /// Adds what `other` counted.
    pub fn add(&mut self, other: &Meter) {
        self.done += other.done;
        self.unknown += other.unknown;
        for (code, count) in &other.refused {
            *self.refused.entry(code.clone()).or_default() += count;
        }
        self.latency.add(&other.latency).expect("the bounds are the same");
    }

    /// Operations refused, whatever the code.
    pub fn refusals(&self) -> u64 {
        self.refused.values().sum()
    }

    /// Percentiles of the latency of all answers; none without any.
    pub fn latency(&self) -> Option<Percentiles> {
        let ms = |us: u64| us as f64 / 1_000.0;
        let at = |quantile| ms(self.latency.value_at_quantile(quantile));
        (!self.latency.is_empty()).then(|| Percentiles {
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            mean_ms: self.latency.mean() / 1_000.0,
            max_ms: ms(self.latency.max()),
        })
    }
}

/// Percentiles of a latency, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half are faster.
    pub p50_ms: f64,
    /// 99 % are faster.
    pub p99_ms: f64,
    /// 99.9 % are faster.
    pub p999_ms: f64,
    /// The mean.
    pub mean_ms: f64,
    /// The slowest.
    pub max_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_kind_and_timed_alike() {
        let mut one = Meter::default();
        one.answer(None, Duration::from_millis(1));
        let mut two = Meter::default();
        two.answer(Some("EXCEEDED"), Duration::from_millis(3));
        two.answer(Some("EXCEEDED"), Duration::from_millis(3));
        one.add(&two);
        assert_eq!((one.done, one.refusals(), one.refused["EXCEEDED"]), (1, 2, 2));
        let latency = one.latency().expect("three answers");
        assert_eq!((latency.p50_ms.round(), latency.max_ms.round()), (3.0, 3.0));
        assert_eq!(Meter::default().latency(), None);
    }
}
