//! What a run measured, for people and as JSON.

use super::meter::{Meter, Percentiles};
use crate::report::{Conditions, NONE, millis, rate};
use rhumb_display::Table;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What a run measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The quota.
    pub quota: String,
    /// Its limit when the run began.
    pub limit: u64,
    /// The load, and how long it was measured.
    #[serde(flatten)]
    pub conditions: Conditions,
    /// The regions, in the order in which they were given.
    pub regions: Vec<RegionReport>,
    /// All regions together.
    pub total: RegionReport,
    /// Redistributions in which sites took part meanwhile, by kind, summed over the sites; none if their metrics are not known.
    pub redistributions: Option<BTreeMap<String, u64>>,
    /// What a reader has to know beside.
    pub warnings: Vec<String>,
}

/// What was measured in one region.
#[derive(Clone, Debug, Serialize)]
pub struct RegionReport {
    /// Its name.
    pub region: String,
    /// Its clients.
    pub clients: usize,
    /// Operations answered per second, refusals among them.
    pub throughput_per_s: f64,
    /// Acquisitions.
    pub acquire: OperationReport,
    /// Releases.
    pub release: OperationReport,
    /// Operations that were due in an open loop and not begun when the run ended.
    pub overdue: u64,
}

/// What was measured of one kind of operation.
#[derive(Clone, Debug, Serialize)]
pub struct OperationReport {
    /// Operations done.
    pub done: u64,
    /// Operations refused, by code.
    pub refused: BTreeMap<String, u64>,
    /// Operations that were not answered.
    pub unknown: u64,
    /// The latency of all answers.
    pub latency: Option<Percentiles>,
}

impl OperationReport {
    fn new(meter: &Meter) -> OperationReport {
        OperationReport { done: meter.done, refused: meter.refused.clone(), unknown: meter.unknown, latency: meter.latency() }
    }

    fn answered(&self) -> u64 {
        self.done + self.refused.values().sum::<u64>()
    }
}

impl RegionReport {
    /// What `acquire` and `release` measured in `measured_s` seconds.
    pub fn new(region: &str, clients: usize, acquire: &Meter, release: &Meter, overdue: u64, measured_s: f64) -> RegionReport {
        let (acquire, release) = (OperationReport::new(acquire), OperationReport::new(release));
        let answered = acquire.answered() + release.answered();
        let throughput_per_s = if measured_s > 0.0 { answered as f64 / measured_s } else { 0.0 };
        RegionReport { region: region.to_owned(), clients, throughput_per_s, acquire, release, overdue }
    }

    fn cells(&self) -> Vec<String> {
        let percentiles = |operation: &OperationReport| match operation.latency {
            Some(latency) => [latency.p50_ms, latency.p99_ms, latency.p999_ms].map(millis),
            None => [NONE; 3].map(str::to_owned),
        };
        let mut cells = vec![self.region.clone(), self.clients.to_string(), rate(self.throughput_per_s)];
        cells.extend(percentiles(&self.acquire));
        cells.extend(percentiles(&self.release));
        let both = [&self.acquire, &self.release];
        let refused: u64 = both.iter().flat_map(|operation| operation.refused.values()).sum();
        let unknown: u64 = both.iter().map(|operation| operation.unknown).sum();
        cells.extend([refused.to_string(), unknown.to_string()]);
        cells
    }
}

impl Report {
    /// The report as JSON, indented.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report holds nothing that JSON cannot")
    }

    fn regions(&self) -> Table {
        let mut table = Table::new("region")
            .group("", &["clients", "ops/s"])
            .group("ACQUIRE ms", &["p50", "p99", "p99.9"])
            .group("RELEASE ms", &["p50", "p99", "p99.9"])
            .group("not done", &["refused", "unknown"]);
        self.regions.iter().for_each(|region| table.row(region.cells()));
        if self.regions.len() > 1 {
            table.rule();
            table.row(self.total.cells());
        }
        table
    }

    fn refusals(&self) -> Option<Table> {
        let mut table = Table::new("refused").group("", &["ACQUIRE", "RELEASE"]);
        let (acquire, release) = (&self.total.acquire.refused, &self.total.release.refused);
        let codes: std::collections::BTreeSet<&String> = acquire.keys().chain(release.keys()).collect();
        for code in &codes {
            let count = |of: &BTreeMap<String, u64>| of.get(*code).copied().unwrap_or(0).to_string();
            table.row(vec![(*code).clone(), count(acquire), count(release)]);
        }
        (!codes.is_empty()).then_some(table)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "quota {}, limit {} · {}\n", self.quota, self.limit, self.conditions)?;
        write!(f, "{}", self.regions())?;
        if let Some(refusals) = self.refusals() {
            write!(f, "\n{refusals}")?;
        }
        if let Some(kinds) = &self.redistributions {
            let shown: Vec<String> = kinds.iter().filter(|(_, count)| **count > 0).map(|(kind, count)| format!("{count} {kind}")).collect();
            let shown = if shown.is_empty() { "none".to_owned() } else { shown.join(", ") };
            writeln!(f, "\nRedistributions, as the sites count them: {shown}.")?;
        }
        if self.total.overdue > 0 {
            let overdue = self.total.overdue;
            writeln!(f, "\n{overdue} operations were due and not begun: the sites, or the number of clients, cannot keep this rate.")?;
        }
        writeln!(f, "\nThe floor is no wide-area trip: what a site's own tokens cover it answers after a sync of its disk.")?;
        self.warnings.iter().try_for_each(|warning| writeln!(f, "\nWarning: {warning}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_report_shows_latencies_by_region_and_refusals_by_code() {
        let (mut acquire, mut release) = (Meter::default(), Meter::default());
        acquire.answer(None, Duration::from_millis(1));
        acquire.answer(Some("EXCEEDED"), Duration::from_millis(200));
        release.unknown = 1;
        let region = |name| RegionReport::new(name, 8, &acquire, &release, 0, 2.0);
        let report = Report {
            quota: "vm".into(),
            limit: 5,
            conditions: Conditions { load: "closed loop".into(), seed: 1, warmup_s: 5.0, measured_s: 2.0 },
            regions: vec![region("a")],
            total: region("all"),
            redistributions: Some(BTreeMap::from([("dead".to_owned(), 0), ("reactive".to_owned(), 3)])),
            warnings: Vec::new(),
        };
        let text = report.to_string();
        let expected = [
            "quota vm, limit 5 · closed loop · 2.0 s measured after 5.0 s · seed 1",
            "",
            "                       ACQUIRE ms ────────  RELEASE ms ────────  not done ───────",
            "region  clients  ops/s    p50    p99  p99.9    p50    p99  p99.9  refused  unknown",
            "──────────────────────────────────────────────────────────────────────────────────",
            "a             8    1.0   1.00    200    200      –      –      –        1        1",
            "",
            "refused   ACQUIRE  RELEASE",
            "──────────────────────────",
            "EXCEEDED        1        0",
            "",
            "Redistributions, as the sites count them: 3 reactive.",
            "",
            "The floor is no wide-area trip: what a site's own tokens cover it answers after a sync of its disk.",
        ];
        for (shown, expected) in text.lines().zip(expected).filter(|(_, expected)| !expected.contains("ACQUIRE ms")) {
            assert_eq!(shown, expected);
        }
        assert_eq!(text.lines().count(), expected.len());
    }
}
