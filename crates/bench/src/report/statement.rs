//! What a statement ought to cost, beside what it does: wide-area trips, the floor that they make, and the excess over it.
//!
//! For workloads whose kinds of transaction are single statements. The floor of a statement that needs a trip is that of its region; one that needs none has
//! no floor, and its latency is its own measure.

use rhumb_display::Table;
use serde::Serialize;

use super::cells::{NONE, millis, percentile_cells, ratio, tells};
use super::meter::Meter;
use super::percentiles::Percentiles;
use super::yardstick::{Timed, Yardstick};

/// What was measured of one statement in one region.
#[derive(Clone, Debug, Serialize)]
pub struct StatementReport {
    /// The statement.
    pub statement: String,
    /// The region.
    pub region: String,
    /// How often it succeeded.
    pub committed: u64,
    /// Its latency.
    pub latency: Option<Percentiles>,
    /// The round trip that it cannot do without, in milliseconds, if it needs one.
    pub floor_ms: Option<f64>,
    /// How much longer than the floor the median took, in milliseconds.
    pub excess_ms: Option<f64>,
    /// The median divided by the floor.
    pub p50_over_floor: Option<f64>,
    /// Attempts that were aborted or met a server that could not serve.
    pub aborts: u64,
    /// How often its outcome is unknown.
    pub unknown: u64,
    /// How often the server refused it.
    pub errors: u64,
}

impl StatementReport {
    /// What `meter` measured of `statement` in `region`, whose floor is `floor_ms`.
    pub fn new(statement: &str, region: &str, yardstick: Yardstick, floor_ms: Option<f64>, meter: &Meter) -> StatementReport {
        let latency = match yardstick.timed {
            Timed::Whole => meter.latency(),
            Timed::Commit => meter.commit_latency(),
        };
        let floor_ms = floor_ms.filter(|_| yardstick.wide_area);
        let against = floor_ms.filter(|floor| tells(*floor)).zip(latency);
        StatementReport {
            statement: statement.to_owned(),
            region: region.to_owned(),
            committed: meter.committed,
            latency,
            floor_ms,
            excess_ms: against.map(|(floor, latency)| latency.p50_ms - floor),
            p50_over_floor: against.map(|(floor, latency)| latency.p50_ms / floor),
            aborts: meter.aborted() + meter.unavailable.values().map(|count| count.retried + count.given_up).sum::<u64>(),
            unknown: meter.unknown,
            errors: meter.errors.values().sum(),
        }
    }
}

/// The statements, region by region.
pub fn table(statements: &[StatementReport]) -> Table {
    let mut table = Table::new("statement")
        .group("", &["count"])
        .group("latency ms", &["p50", "p95", "p99"])
        .group("floor ms", &["RTT", "p50÷", "excess"])
        .group("not committed", &["aborts", "unknown", "errors"]);
    let mut last = None;
    for report in statements {
        if last != Some(&report.statement) {
            last = Some(&report.statement);
            table.row(vec![report.statement.clone()]);
        }
        let mut cells = vec![format!("  {}", report.region), report.committed.to_string()];
        cells.extend(percentile_cells(report.latency.as_ref()));
        cells.push(report.floor_ms.filter(|floor| tells(*floor)).map_or(NONE.to_owned(), millis));
        cells.extend([ratio(report.p50_over_floor), report.excess_ms.map_or(NONE.to_owned(), |excess| format!("{excess:+.1}"))]);
        cells.extend([report.aborts, report.unknown, report.errors].map(|count| count.to_string()));
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn measured(latency_ms: u64, commit_ms: u64) -> Meter {
        let mut meter = Meter::default();
        meter.commit(Duration::from_millis(latency_ms), &[Duration::from_millis(commit_ms)]);
        meter.abort("40001 conflict", true);
        meter
    }

    #[test]
    fn what_needs_a_trip_is_held_against_it_and_what_needs_none_is_not() {
        let meter = measured(180, 90);
        let whole = Yardstick { timed: Timed::Whole, wide_area: true };
        let reports = [
            StatementReport::new("INSERT", "oregon", whole, Some(86.0), &meter),
            StatementReport::new("INSERT", "near", whole, Some(0.04), &meter),
            StatementReport::new("COMMIT", "oregon", Yardstick { timed: Timed::Commit, ..whole }, Some(86.0), &meter),
            StatementReport::new("stale", "oregon", Yardstick { wide_area: false, ..whole }, Some(86.0), &meter),
            StatementReport::new("stale", "ohio", whole, None, &Meter::default()),
        ];
        assert_eq!(reports[3].floor_ms, None);
        let expected = [
            "                  latency ms ────────  floor ms ───────────  not committed ─────────",
            "statement  count    p50    p95    p99    RTT   p50÷  excess  aborts  unknown  errors",
            "────────────────────────────────────────────────────────────────────────────────────",
            "INSERT",
            "  oregon       1    180    180    180   86.0  2.09×   +94.1       1        0       0",
            "  near         1    180    180    180      –      –       –       1        0       0",
            "COMMIT",
            "  oregon       1   90.0   90.0   90.0   86.0  1.05×    +4.0       1        0       0",
            "stale",
            "  oregon       1    180    180    180      –      –       –       1        0       0",
            "  ohio         0      –      –      –      –      –       –       0        0       0",
            "",
        ];
        assert_eq!(table(&reports).to_string(), expected.join("\n"));
    }
}
