//! What is counted and timed of the operations of one kind in one region.

use crate::driver;
use crate::progress::Pulse;
use crate::report::Latencies;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Counts and latencies.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// Operations done.
    pub done: u64,
    /// Operations refused, by the code of the refusal.
    pub refused: BTreeMap<String, u64>,
    /// Operations whose connection broke before they were answered.
    pub unknown: u64,
    /// Of every answer, whatever it was: a refusal takes its time too.
    latency: Latencies,
}

impl Meter {
    /// Counts an answer: done, or refused with this code.
    pub fn answer(&mut self, refused: Option<&str>, latency: Duration) {
        match refused {
            None => self.done += 1,
            Some(code) => *self.refused.entry(code.to_owned()).or_default() += 1,
        }
        self.latency.record(latency);
    }

    /// Operations refused, whatever the code.
    pub fn refusals(&self) -> u64 {
        self.refused.values().sum()
    }

    /// Percentiles of the latency of all answers; none without any.
    pub fn latency(&self) -> Option<Percentiles> {
        (!self.latency.is_empty()).then(|| Percentiles {
            p50_ms: self.latency.quantile_ms(0.5),
            p99_ms: self.latency.quantile_ms(0.99),
            p999_ms: self.latency.quantile_ms(0.999),
            mean_ms: self.latency.mean_ms(),
            max_ms: self.latency.max_ms(),
        })
    }
}

impl driver::Meter for Meter {
    fn add(&mut self, other: &Meter) {
        self.done += other.done;
        self.unknown += other.unknown;
        for (code, count) in &other.refused {
            *self.refused.entry(code.clone()).or_default() += count;
        }
        self.latency.add(&other.latency);
    }

    fn pulse(&self, elapsed: Duration) -> Pulse {
        Pulse {
            committed: self.done,
            per_second: self.done as f64 / elapsed.as_secs_f64(),
            p50_ms: self.latency().map_or(0.0, |latency| latency.p50_ms),
            aborted: self.refusals(),
            unknown: self.unknown,
        }
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
    use crate::driver::Meter as _;

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
