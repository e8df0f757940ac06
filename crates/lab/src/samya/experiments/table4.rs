//! Table 4: the errors of models of demand. The one experiment that needs no cluster.

use super::super::lab::Lab;
use crate::experiment::{Failure, Finding, Outcome, Progress, Sheet};
use crate::forecast::{self, Demand, SHIPPED, Watch, compare};

/// The LSTM is to err by no more than this share of the random walk's error. In the paper it errs by 259, the random walk
/// by 1,212.
const LSTM_SHARE_MAX: f64 = 0.43;

/// Trains all models on the shipped series, and has them forecast the last fifth.
pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let demands: Vec<Demand> = SHIPPED.iter().map(Demand::shipped).collect();
    let comparison = compare(&demands, &[], lab.seed(), &mut Trainings(progress))?;
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

/// Trainings as runs of the laboratory.
struct Trainings<'a>(&'a mut dyn Progress);

impl Watch for Trainings<'_> {
    fn begin(&mut self, what: &str, _: usize, _: usize) {
        self.0.begin(what);
    }

    fn passed(&mut self, forecast::Progress { done, total, .. }: forecast::Progress) {
        self.0.passed(done as u64, total as u64);
    }
}
