//! What a plan foretold, held against what was measured: `rhumb bench run … --plan plan.json`.
//!
//! The plan knows distances alone. What it says should come true within 5 % and 3 ms, which the work of the sites themselves may
//! take: a transaction that takes longer meets something the plan does not know, such as load, conflicts, or another number of
//! reads.

use rhumb_display::Table;
use serde::Serialize;

use super::cells::{NONE, millis};

/// By how much of itself a prediction may be off, and by how many milliseconds besides.
const SHARE: f64 = 0.05;
const SLACK_MS: f64 = 3.0;

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

impl Comparison {
    /// Holds what was measured in `region` against what was predicted.
    pub fn new(region: &str, predicted_ms: Option<f64>, measured_ms: Option<f64>) -> Comparison {
        let near = |predicted: f64, measured: f64| (measured - predicted).abs() <= SHARE * predicted + SLACK_MS;
        let as_predicted = predicted_ms.zip(measured_ms).map(|(predicted, measured)| near(predicted, measured));
        Comparison { region: region.to_owned(), predicted_ms, measured_ms, as_predicted }
    }
}

/// Predictions as a table.
pub fn table(comparisons: &[Comparison]) -> Table {
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
