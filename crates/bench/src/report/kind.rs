//! The results of one kind of transaction.

use serde::Serialize;

use super::meter::Meter;
use super::percentiles::Percentiles;

/// The results of one kind of transaction.
#[derive(Clone, Debug, Serialize)]
pub struct KindReport {
    /// The kind's name.
    pub kind: String,
    /// Transactions committed.
    pub committed: u64,
    /// Transactions that rolled themselves back.
    pub rolled_back: u64,
    /// Its share of all transactions finished, from 0 to 1.
    pub share: f64,
    /// Committed transactions per minute.
    pub per_minute: f64,
    /// Latency of transactions.
    pub latency: Option<Percentiles>,
    /// Aborted attempts as a share of all attempts.
    pub abort_rate: f64,
    /// Transactions given up after the last attempt.
    pub given_up: u64,
    /// Transactions whose outcome is unknown.
    pub unknown: u64,
}

impl KindReport {
    /// What `meter` measured of the kind in `measured_s` seconds, in which `finished` transactions of all kinds ended.
    pub fn new(kind: &str, meter: &Meter, finished: u64, measured_s: f64) -> KindReport {
        KindReport {
            kind: kind.to_owned(),
            committed: meter.committed,
            rolled_back: meter.rolled_back,
            share: (meter.committed + meter.rolled_back) as f64 / finished.max(1) as f64,
            per_minute: 60.0 * meter.committed_per_s(measured_s),
            latency: meter.latency(),
            abort_rate: meter.abort_rate(),
            given_up: meter.aborts.values().chain(meter.unavailable.values()).map(|count| count.given_up).sum(),
            unknown: meter.unknown,
        }
    }
}
