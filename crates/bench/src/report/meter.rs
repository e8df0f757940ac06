//! What is counted and timed, per region and kind of transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use super::aborts::AbortReport;
use super::latencies::Latencies;
use super::percentiles::Percentiles;
use crate::driver;
use crate::progress::Pulse;

/// Distinct causes kept apart; what comes after them is counted as [`OTHER`].
const CAUSES_MAX: usize = 32;
const OTHER: &str = "other";

/// Counts and latencies of some transactions.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// Transactions committed.
    pub committed: u64,
    /// Transactions that rolled themselves back, as their workload asks.
    pub rolled_back: u64,
    /// Transactions whose outcome nobody knows.
    pub unknown: u64,
    /// Aborted attempts by cause.
    pub aborts: BTreeMap<String, AbortReport>,
    /// Attempts that met a server which could not serve, by cause.
    pub unavailable: BTreeMap<String, AbortReport>,
    /// Transactions that the server refused, by message.
    pub errors: BTreeMap<String, u64>,
    latency: Latencies,
    commit: Latencies,
}

impl Meter {
    /// Counts a committed transaction, with its latency from its first attempt on and that of each of its COMMITs.
    pub fn commit(&mut self, latency: Duration, commits: &[Duration]) {
        self.committed += 1;
        self.latency.record(latency);
        for commit in commits {
            self.commit.record(*commit);
        }
    }

    /// Counts an aborted attempt, which was tried again or given up.
    pub fn abort(&mut self, cause: &str, retried: bool) {
        entry(&mut self.aborts, cause).count(retried);
    }

    /// Counts an attempt that met an unavailable server.
    pub fn unavailable(&mut self, cause: &str, retried: bool) {
        entry(&mut self.unavailable, cause).count(retried);
    }

    /// Counts a transaction that the server refused.
    pub fn error(&mut self, reason: &str) {
        *entry(&mut self.errors, reason) += 1;
    }

    /// Committed transactions per second, of `seconds`.
    pub fn committed_per_s(&self, seconds: f64) -> f64 {
        if seconds > 0.0 { self.committed as f64 / seconds } else { 0.0 }
    }

    /// Latencies of committed transactions.
    pub fn latency(&self) -> Option<Percentiles> {
        Percentiles::of(&self.latency)
    }

    /// Latencies of their COMMITs.
    pub fn commit_latency(&self) -> Option<Percentiles> {
        Percentiles::of(&self.commit)
    }

    /// Aborted attempts.
    pub fn aborted(&self) -> u64 {
        self.aborts.values().map(|count| count.retried + count.given_up).sum()
    }

    /// Aborted attempts as a share of all attempts that a server decided.
    pub fn abort_rate(&self) -> f64 {
        let attempts = self.committed + self.rolled_back + self.aborted();
        if attempts == 0 { 0.0 } else { self.aborted() as f64 / attempts as f64 }
    }
}

impl driver::Meter for Meter {
    fn add(&mut self, other: &Meter) {
        self.committed += other.committed;
        self.rolled_back += other.rolled_back;
        self.unknown += other.unknown;
        for (cause, count) in &other.aborts {
            entry(&mut self.aborts, cause).add(count);
        }
        for (cause, count) in &other.unavailable {
            entry(&mut self.unavailable, cause).add(count);
        }
        for (reason, count) in &other.errors {
            *entry(&mut self.errors, reason) += count;
        }
        self.latency.add(&other.latency);
        self.commit.add(&other.commit);
    }

    fn pulse(&self, elapsed: Duration) -> Pulse {
        Pulse {
            committed: self.committed,
            per_second: self.committed_per_s(elapsed.as_secs_f64()),
            p50_ms: self.latency().map_or(0.0, |latency| latency.p50_ms),
            aborted: self.aborted(),
            unknown: self.unknown,
        }
    }
}

fn entry<'a, T: Default>(counts: &'a mut BTreeMap<String, T>, cause: &str) -> &'a mut T {
    let known = counts.contains_key(cause) || counts.len() < CAUSES_MAX;
    counts.entry(if known { cause } else { OTHER }.to_owned()).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Meter as _;

    #[test]
    fn two_meters_add_up() {
        let mut one = Meter::default();
        one.commit(Duration::from_millis(10), &[Duration::from_millis(4)]);
        one.abort("40001 conflict", true);
        let mut two = Meter::default();
        two.commit(Duration::from_millis(30), &[]);
        two.abort("40001 conflict", false);
        two.error("23505 duplicate");
        one.add(&two);
        assert_eq!((one.committed, one.aborted(), one.errors["23505 duplicate"]), (2, 2, 1));
        assert_eq!(one.abort_rate(), 0.5);
        assert_eq!(one.latency().map(|l| (l.p50_ms.round(), l.p99_ms.round())), Some((10.0, 30.0)));
        assert_eq!(one.commit_latency().map(|l| l.p50_ms.round()), Some(4.0));
    }

    #[test]
    fn causes_are_bounded() {
        let mut meter = Meter::default();
        for i in 0..100 {
            meter.error(&format!("message {i}"));
        }
        assert_eq!((meter.errors.len(), meter.errors[OTHER]), (CAUSES_MAX + 1, 100 - CAUSES_MAX as u64));
    }
}
