//! The results of a run: a value to serialize, and the text that shows it.
//!
//! Latencies are those of committed transactions, from the first attempt (or, in an open loop, from the moment the transaction was due) to the answer to
//! COMMIT. COMMIT latencies are those of the statement alone.

use std::fmt;

use rhumb_display::Table;
use serde::Serialize;

use super::cells::{percent, percentile_cells, rate};
use super::comparison::{self, Comparison};
use super::conditions::Conditions;
use super::kind::KindReport;
use super::prediction::Prediction;
use super::region::RegionReport;
use super::statement::{self, StatementReport};

/// The results of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The workload's name and what distinguishes this variant of it.
    pub workload: String,
    /// The load, and how long it was measured.
    #[serde(flatten)]
    pub conditions: Conditions,
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

impl Report {
    /// Adds what `prediction` says of every region.
    pub fn hold_against(&mut self, prediction: &Prediction) {
        let compare =
            |it: &RegionReport| Comparison::new(&it.region, prediction.latency_ms(&it.region), it.latency.map(|latency| latency.p50_ms));
        self.predictions = self.regions.iter().map(compare).collect();
        let unforetold = self.predictions.iter().filter(|it| it.predicted_ms.is_none());
        let unforetold: Vec<&str> = unforetold.map(|it| it.region.as_str()).collect();
        if !unforetold.is_empty() {
            self.warnings.push(format!("the plan has no clients in {}", unforetold.join(", ")));
        }
    }

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
            table.row(region.cells());
        }
        if self.regions.len() > 1 {
            table.rule();
            table.row(self.total.cells());
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
        writeln!(f, "{} · {}\n", self.workload, self.conditions)?;
        if self.statements.is_empty() {
            write!(f, "{}", self.region_table())?;
            if self.kinds.len() > 1 {
                write!(f, "\n{}", self.kind_table())?;
            }
        } else {
            write!(f, "{}", statement::table(&self.statements))?;
        }
        if !self.predictions.is_empty() {
            write!(f, "\n{}", comparison::table(&self.predictions))?;
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

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
