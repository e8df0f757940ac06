//! The results of one region.

use std::collections::BTreeMap;

use serde::Serialize;

use super::aborts::AbortReport;
use super::cells::{NONE, millis, percent, percentile_cells, rate, ratio, tells};
use super::meter::Meter;
use super::percentiles::Percentiles;

/// The results of one region, or of all together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RegionReport {
    /// The region's name.
    pub region: String,
    /// Clients at work.
    pub clients: usize,
    /// Transactions committed.
    pub committed: u64,
    /// Transactions that rolled themselves back, as their workload asks.
    pub rolled_back: u64,
    /// Committed transactions per second.
    pub throughput_per_s: f64,
    /// Latency of transactions.
    pub latency: Option<Percentiles>,
    /// Latency of COMMIT.
    pub commit_latency: Option<Percentiles>,
    /// Aborted attempts as a share of all attempts, from 0 to 1.
    pub abort_rate: f64,
    /// Aborted attempts by cause.
    pub aborts: BTreeMap<String, AbortReport>,
    /// Attempts that met a server which could not serve, by cause.
    pub unavailable: BTreeMap<String, AbortReport>,
    /// Transactions whose outcome is unknown.
    pub unknown: u64,
    /// Transactions that the server refused, by message.
    pub errors: BTreeMap<String, u64>,
    /// Transactions that were due in an open loop and not begun when the run ended.
    pub overdue: u64,
    /// Round trip to the nearest majority of regions, in milliseconds: no commit that survives the loss of a region can be faster.
    pub floor_ms: Option<f64>,
    /// Median transaction latency divided by the floor; none for a floor below a millisecond.
    pub p50_over_floor: Option<f64>,
    /// Median COMMIT latency divided by the floor.
    pub commit_p50_over_floor: Option<f64>,
}

impl RegionReport {
    /// The report with what `meter` measured in `measured_s` seconds. The region, its clients and its floor must be set already.
    pub fn filled(self, meter: &Meter, measured_s: f64) -> RegionReport {
        let (latency, commit_latency) = (meter.latency(), meter.commit_latency());
        let over_floor = |latency: Option<Percentiles>| Some(latency?.p50_ms / self.floor_ms.filter(|floor| tells(*floor))?);
        RegionReport {
            committed: meter.committed,
            rolled_back: meter.rolled_back,
            throughput_per_s: meter.committed_per_s(measured_s),
            latency,
            commit_latency,
            abort_rate: meter.abort_rate(),
            aborts: meter.aborts.clone(),
            unavailable: meter.unavailable.clone(),
            unknown: meter.unknown,
            errors: meter.errors.clone(),
            p50_over_floor: over_floor(latency),
            commit_p50_over_floor: over_floor(commit_latency),
            ..self
        }
    }

    /// Its row in the table of regions.
    pub fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.region.clone(), self.clients.to_string(), rate(self.throughput_per_s)];
        cells.extend(percentile_cells(self.latency.as_ref()));
        cells.extend(percentile_cells(self.commit_latency.as_ref()));
        cells.extend([percent(self.abort_rate), self.unknown.to_string(), self.errors.values().sum::<u64>().to_string()]);
        let floor_ms = self.floor_ms.filter(|floor| tells(*floor));
        cells.extend([floor_ms.map_or(NONE.to_owned(), millis), ratio(self.p50_over_floor), ratio(self.commit_p50_over_floor)]);
        cells
    }
}
