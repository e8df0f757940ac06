//! The models held against each other: our figures beside those of Samya's Table 4.
//!
//! The series of the paper is not public, so its absolute errors compare with nothing here; what compares is the share of
//! the random walk's error.

use crate::evaluate::Errors;
use crate::spec::Spec;
use std::fmt;

/// The mean absolute errors of Samya's Table 4, in tokens: random walk, ARIMA, LSTM.
pub const PAPER_MAE: [f64; 3] = [1212.19, 609.13, 259.21];

/// One model's errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What the model is called whatever its order.
    pub kind: &'static str,
    /// The model's name with its order.
    pub model: String,
    /// Its errors on our series.
    pub errors: Errors,
    /// The paper's mean absolute error of such a model, if it gives one.
    pub paper_mae: Option<f64>,
}

impl Row {
    /// The row of the model that `spec` describes.
    pub fn new(spec: &Spec, errors: Errors) -> Row {
        let paper_mae = match spec {
            Spec::RandomWalk => Some(PAPER_MAE[0]),
            Spec::Arima(order) if order.season.is_none() => Some(PAPER_MAE[1]),
            Spec::Lstm(_) => Some(PAPER_MAE[2]),
            _ => None,
        };
        Row { kind: spec.kind(), model: spec.build().name(), errors, paper_mae }
    }

    /// The same as a share of the paper's random walk.
    pub fn paper_share(&self) -> Option<f64> {
        self.paper_mae.map(|mae| mae / PAPER_MAE[0])
    }
}

/// All models' errors on one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What the series is called.
    pub series: String,
    /// Epochs trained on.
    pub trained: usize,
    /// A row per model.
    pub rows: Vec<Row>,
}

impl Table {
    /// The table as CSV, with a header.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("series,model,mae,rmse,share_of_random_walk,paper_mae,paper_share_of_random_walk\n");
        for row in &self.rows {
            let Errors { mae, rmse, .. } = row.errors;
            let cell = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
            // The order of an ARIMA has commas in it.
            text += &format!("{},\"{}\",{mae:.4},{rmse:.4},", self.series, row.model);
            text += &format!("{:.4},{},{}\n", row.errors.share(), cell(row.paper_mae), cell(row.paper_share()));
        }
        text
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tested = self.rows.first().map_or(0, |row| row.errors.epochs);
        writeln!(f, "{}: {} epochs to train on, {tested} forecast one by one", self.series, self.trained)?;
        writeln!(f, "{:<28}{:>12}{:>12}{:>16}{:>14}{:>16}", "model", "MAE", "RMSE", "of random walk", "paper's MAE", "of random walk")?;
        for row in &self.rows {
            let Errors { mae, rmse, .. } = row.errors;
            write!(f, "{:<28}{mae:>12.2}{rmse:>12.2}{:>16.3}", row.model, row.errors.share())?;
            match (row.paper_mae, row.paper_share()) {
                (Some(mae), Some(share)) => writeln!(f, "{mae:>14.2}{share:>16.3}")?,
                _ => writeln!(f, "{:>14}{:>16}", "-", "-")?,
            }
        }
        Ok(())
    }
}
