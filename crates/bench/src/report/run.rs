//! The results of a run: a value to serialize, and the text that shows it.
//!
//! Latencies are those of committed transactions, from the first attempt (or, in an open loop, from the moment the transaction was due) to the answer to
//! COMMIT. COMMIT latencies are those of the statement alone.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::meter::Meter;
use super::prediction::{self, Comparison};
use super::yardstick::{self, StatementReport};
use rhumb_display::Table;

/// What a value that does not exist is shown as.
pub(crate) const NONE: &str = "–";

/// A floor below this says nothing: within one site or machine the work itself outweighs the way.
const FLOOR_MS_MIN: f64 = 1.0;

/// The results of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The workload's name and what distinguishes this variant of it.
    pub workload: String,
    /// How load was offered.
    pub load: String,
    /// The seed that the run's randomness came from.
    pub seed: u64,
    /// Seconds before the measured window.
    pub warmup_s: f64,
    /// Seconds of the measured window.
    pub measured_s: f64,
    /// One entry per region, in the order of the addresses given.
    pub regions: Vec<RegionReport>,
    /// All regions together.
    pub total: RegionReport,
    /// One entry per kind of transaction.
    pub kinds: Vec<KindReport>,
    /// One entry per kind and region, if the kinds are single statements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementReport>,
    /// One entry per region, if a plan is held against them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Comparison>,
    /// Invariants of the workload that were found broken.
    pub violations: Vec<String>,
    /// What else the reader should know.
    pub warnings: Vec<String>,
}

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

/// How often a cause ended an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AbortReport {
    /// Attempts followed by another.
    pub retried: u64,
    /// Attempts that were the last their transaction had.
    pub given_up: u64,
}

impl RegionReport {
    /// The report with what `meter` measured in `measured_s` seconds. The region, its clients and its floor must be set already.
    pub fn filled(self, meter: &Meter, measured_s: f64) -> RegionReport {
        let (latency, commit_latency) = (meter.latency(), meter.commit_latency());
        let over_floor = |latency: Option<Percentiles>| Some(latency?.p50_ms / self.floor_ms.filter(|floor| tells(*floor))?);
        RegionReport {
            committed: meter.committed,
            rolled_back: meter.rolled_back,
            throughput_per_s: per_second(meter.committed, measured_s),
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
}

impl KindReport {
    /// What `meter` measured of the kind in `measured_s` seconds, in which `finished` transactions of all kinds ended.
    pub fn new(kind: &str, meter: &Meter, finished: u64, measured_s: f64) -> KindReport {
        KindReport {
            kind: kind.to_owned(),
            committed: meter.committed,
            rolled_back: meter.rolled_back,
            share: (meter.committed + meter.rolled_back) as f64 / finished.max(1) as f64,
            per_minute: 60.0 * per_second(meter.committed, measured_s),
            latency: meter.latency(),
            abort_rate: meter.abort_rate(),
            given_up: meter.aborts.values().chain(meter.unavailable.values()).map(|count| count.given_up).sum(),
            unknown: meter.unknown,
        }
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
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

impl Report {
    /// The report as JSON, indented.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report holds nothing that JSON cannot")
    }

    fn region_table(&self) -> Table {
        let mut table = Table::new("region")
            .group("", &["clients", "txn/s"])
            .group("transaction ms", &["p50", "p95", "p99"])
            .group("COMMIT ms", &["p50", "p95", "p99"])
            .group("not committed", &["aborts", "unknown", "errors"])
            .group("floor ms", &["RTT", "p50÷", "COMMIT÷"]);
        for region in &self.regions {
            table.row(region_cells(region));
        }
        if self.regions.len() > 1 {
            table.rule();
            table.row(region_cells(&self.total));
        }
        table
    }

    fn kind_table(&self) -> Table {
        let mut table = Table::new("transaction")
            .group("", &["committed", "per min", "share"])
            .group("transaction ms", &["p50", "p95", "p99"])
            .group("not committed", &["aborts", "given up", "rolled back", "unknown"]);
        for kind in &self.kinds {
            let mut cells = vec![kind.kind.clone(), kind.committed.to_string(), rate(kind.per_minute), percent(kind.share)];
            cells.extend(percentile_cells(kind.latency.as_ref()));
            cells.extend([percent(kind.abort_rate), kind.given_up.to_string(), kind.rolled_back.to_string(), kind.unknown.to_string()]);
            table.row(cells);
        }
        table
    }

    fn cause_table(&self) -> Option<Table> {
        let mut table = Table::new("cause").group("", &["retried", "given up"]);
        let causes = self.total.aborts.iter().chain(&self.total.unavailable);
        for (cause, count) in causes.clone() {
            table.row(vec![cause.clone(), count.retried.to_string(), count.given_up.to_string()]);
        }
        for (reason, count) in &self.total.errors {
            table.row(vec![reason.clone(), "0".to_owned(), count.to_string()]);
        }
        (causes.count() + self.total.errors.len() > 0).then_some(table)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (warmup, measured) = (self.warmup_s, self.measured_s);
        writeln!(f, "{} · {} · {measured:.1} s measured after {warmup:.1} s · seed {}\n", self.workload, self.load, self.seed)?;
        if self.statements.is_empty() {
            write!(f, "{}", self.region_table())?;
            if self.kinds.len() > 1 {
                write!(f, "\n{}", self.kind_table())?;
            }
        } else {
            write!(f, "{}", yardstick::table(&self.statements))?;
        }
        if !self.predictions.is_empty() {
            write!(f, "\n{}", prediction::table(&self.predictions))?;
        }
        if let Some(causes) = self.cause_table() {
            write!(f, "\n{causes}")?;
        }
        if self.total.overdue > 0 {
            writeln!(
                f,
                "\n{} transactions were due and not begun: the servers, or the number of clients, cannot keep this rate.",
                self.total.overdue
            )?;
        }
        for warning in &self.warnings {
            writeln!(f, "\nWarning: {warning}")?;
        }
        for violation in &self.violations {
            writeln!(f, "\nVIOLATION  {violation}")?;
        }
        Ok(())
    }
}

fn region_cells(region: &RegionReport) -> Vec<String> {
    let mut cells = vec![region.region.clone(), region.clients.to_string(), rate(region.throughput_per_s)];
    cells.extend(percentile_cells(region.latency.as_ref()));
    cells.extend(percentile_cells(region.commit_latency.as_ref()));
    cells.extend([percent(region.abort_rate), region.unknown.to_string(), region.errors.values().sum::<u64>().to_string()]);
    let floor_ms = region.floor_ms.filter(|floor| tells(*floor));
    cells.extend([floor_ms.map_or(NONE.to_owned(), millis), ratio(region.p50_over_floor), ratio(region.commit_p50_over_floor)]);
    cells
}

/// True if latencies can be held against this floor.
pub(super) fn tells(floor_ms: f64) -> bool {
    floor_ms >= FLOOR_MS_MIN
}

pub(super) fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or(NONE.to_owned(), |ratio| format!("{ratio:.2}×"))
}

pub(super) fn percentile_cells(latency: Option<&Percentiles>) -> [String; 3] {
    match latency {
        Some(latency) => [latency.p50_ms, latency.p95_ms, latency.p99_ms].map(millis),
        None => [NONE, NONE, NONE].map(str::to_owned),
    }
}

/// Three significant digits, as many as the histograms keep.
pub(crate) fn millis(ms: f64) -> String {
    match ms {
        ms if ms < 9.995 => format!("{ms:.2}"),
        ms if ms < 99.95 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

pub(crate) fn rate(per_time: f64) -> String {
    if per_time < 99.95 { format!("{per_time:.1}") } else { format!("{per_time:.0}") }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
