//! Table 4: the errors of models of demand. The one experiment that needs no cluster.

use super::outcome::{Finding, Outcome, Sheet};
use crate::forecast::{Demand, ForecastError, SHIPPED, Watch, compare};

/// What the command line calls it.
pub const NAME: &str = "samya-table4";
/// What it shows.
pub const TITLE: &str = "Errors of one-step forecasts of demand";
/// The LSTM is to err by no more than this share of the random walk's error. In the paper it errs by 259, the random walk
/// by 1,212.
const LSTM_SHARE_MAX: f64 = 0.43;

/// Trains all models on the shipped series, and has them forecast the last fifth.
pub fn run(seed: u64, watch: &mut dyn Watch) -> Result<Outcome, ForecastError> {
    let demands: Vec<Demand> = SHIPPED.iter().map(Demand::shipped).collect();
    let comparison = compare(&demands, &[], seed, watch)?;
    let mut outcome = Outcome::default();
    for series in &comparison.series {
        let title = format!("Errors on the series {}", series.table.series);
        let mut sheet = Sheet::new(title, &["model", "mean absolute error", "of the random walk's", "paper"]);
        for row in &series.table.rows {
            let paper = row.paper_share().map_or(String::new(), |share| format!("{share:.2}"));
            sheet.row([row.model.clone(), format!("{:.2}", row.errors.mae), format!("{:.2}", row.errors.share()), paper]);
            if row.kind == "LSTM" {
                let what = format!("error of the LSTM over that of the random walk, {}", series.table.series);
                outcome.findings.push(Finding::at_most(what, "0.21, of another series", row.errors.share(), LSTM_SHARE_MAX, ""));
            }
        }
        outcome.sheets.push(sheet);
    }
    outcome.note("The paper's series is not public: compare the shares. `rhumb forecast table` draws them.");
    Ok(outcome)
}
