//! What a plan foretold, held against what was measured: `rhumb bench run … --plan plan.json`.
//!
//! The plan knows distances alone. What it says should come true within 5 % and 3 ms, which the work of the sites themselves may
//! take: a transaction that takes longer meets something the plan does not know, such as load, conflicts, or another number of
//! reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::run::{NONE, Report, millis};
use crate::error::BenchError;
use rhumb_display::Table;

/// By how much of itself a prediction may be off, and by how many milliseconds besides.
const SHARE: f64 = 0.05;
const SLACK_MS: f64 = 3.0;

/// The mean latency of a transaction by region, in milliseconds, as `rhumb plan --json` says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction(BTreeMap<String, f64>);

#[derive(Deserialize)]
struct Plan {
    clients: Vec<Client>,
}

#[derive(Deserialize)]
struct Client {
    region: String,
    latency_ms: f64,
}

impl Prediction {
    /// Reads what `rhumb plan --json` printed.
    pub fn parse(json: &str) -> Result<Prediction, BenchError> {
        let plan: Plan = serde_json::from_str(json)
            .map_err(|error| BenchError::Options(format!("this is no plan as `rhumb plan --json` prints it: {error}")))?;
        Ok(Prediction(plan.clients.into_iter().map(|client| (client.region, client.latency_ms)).collect()))
    }
}

/// A region's prediction and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The region.
    pub region: String,
    /// What the plan says; none if it has no clients there.
    pub predicted_ms: Option<f64>,
    /// The median latency of transactions; none if none was committed.
    pub measured_ms: Option<f64>,
    /// Whether they are within 5 % and 3 ms of each other; none if either is missing.
    pub as_predicted: Option<bool>,
}

impl Report {
    /// Adds what `prediction` says of every region.
    pub fn hold_against(&mut self, prediction: &Prediction) {
        let compare = |region: &super::run::RegionReport| {
            let predicted_ms = prediction.0.get(&region.region).copied();
            let measured_ms = region.latency.map(|latency| latency.p50_ms);
            let near = |predicted: f64, measured: f64| (measured - predicted).abs() <= SHARE * predicted + SLACK_MS;
            let as_predicted = predicted_ms.zip(measured_ms).map(|(predicted, measured)| near(predicted, measured));
            Comparison { region: region.region.clone(), predicted_ms, measured_ms, as_predicted }
        };
        self.predictions = self.regions.iter().map(compare).collect();
        let foretold = self.predictions.iter().filter(|it| it.predicted_ms.is_some()).count();
        if foretold < self.predictions.len() {
            let unforetold: Vec<&str> =
                self.predictions.iter().filter(|it| it.predicted_ms.is_none()).map(|it| it.region.as_str()).collect();
            self.warnings.push(format!("the plan has no clients in {}", unforetold.join(", ")));
        }
    }
}

/// Predictions as a table.
pub(super) fn table(comparisons: &[Comparison]) -> Table {
    let mut table = Table::new("region").group("transaction ms", &["plan", "p50", "off by"]).group("", &["within 5 % + 3 ms"]);
    let shown = |ms: Option<f64>| ms.map_or(NONE.to_owned(), millis);
    for it in comparisons {
        let off =
            it.predicted_ms.zip(it.measured_ms).map_or(NONE.to_owned(), |(predicted, measured)| format!("{:+.1}", measured - predicted));
        let verdict = it.as_predicted.map_or(NONE, |near| if near { "yes" } else { "no" });
        table.row(vec![it.region.clone(), shown(it.predicted_ms), shown(it.measured_ms), off, verdict.to_owned()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::run::{Percentiles, RegionReport};
    use super::*;

    fn report(medians: &[(&str, f64)]) -> Report {
        let latency = |p50_ms| Some(Percentiles { p50_ms, p95_ms: p50_ms, p99_ms: p50_ms, mean_ms: p50_ms, max_ms: p50_ms });
        let region = |(name, p50): &(&str, f64)| RegionReport { region: (*name).into(), latency: latency(*p50), ..RegionReport::default() };
        Report { regions: medians.iter().map(region).collect(), ..Report::default() }
    }

    #[test]
    fn a_median_is_as_predicted_within_five_percent_and_three_milliseconds() {
        let plan = r#"{"mean_ms": 1.0, "clients": [{"region": "a", "latency_ms": 100.0, "floor_ms": 90.0}, {"region": "b", "latency_ms": 100.0}]}"#;
        let prediction = Prediction::parse(plan).expect("a plan");
        let mut report = report(&[("a", 108.0), ("b", 91.9), ("c", 5.0)]);
        report.hold_against(&prediction);
        let verdicts: Vec<_> = report.predictions.iter().map(|it| it.as_predicted).collect();
        assert_eq!(verdicts, [Some(true), Some(false), None]);
        assert_eq!(report.warnings, ["the plan has no clients in c"]);
        let shown = table(&report.predictions).to_string();
        assert!(shown.contains("+8.0") && shown.contains("-8.1"), "{shown}");
    }

    #[test]
    fn what_is_no_plan_is_refused() {
        for text in ["", "[]", r#"{"clients": [{"region": "a"}]}"#] {
            assert!(Prediction::parse(text).expect_err("no plan").to_string().contains("rhumb plan --json"));
        }
    }
}
