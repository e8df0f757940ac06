//! What a report says of latencies.

use serde::Serialize;

use super::latencies::Latencies;

/// Percentiles of a latency, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Percentiles {
    /// Half are faster.
    pub p50_ms: f64,
    /// 95 % are faster.
    pub p95_ms: f64,
    /// 99 % are faster.
    pub p99_ms: f64,
    /// The mean.
    pub mean_ms: f64,
    /// The slowest.
    pub max_ms: f64,
}

impl Percentiles {
    /// Those of `latencies`; none without any.
    pub fn of(latencies: &Latencies) -> Option<Percentiles> {
        (!latencies.is_empty()).then(|| Percentiles {
            p50_ms: latencies.quantile_ms(0.50),
            p95_ms: latencies.quantile_ms(0.95),
            p99_ms: latencies.quantile_ms(0.99),
            mean_ms: latencies.mean_ms(),
            max_ms: latencies.max_ms(),
        })
    }
}
