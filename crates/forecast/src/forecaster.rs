//! The contract of a forecasting model.
//!
//! A model is trained once on a recorded series, then follows the running one a value at a time, and says at any moment
//! what it expects of the next epochs. It never fails while it runs: a model that was not trained, or has seen too little,
//! forecasts the last value again, which is the random walk.

use thiserror::Error;

/// The most epochs that one call forecasts; more are cut to this.
pub const EPOCHS_MAX: usize = 10_000;
/// The longest period or window of a model, in epochs: a year of five-minute epochs.
pub const PERIOD_MAX: usize = 105_120;
/// The largest value of a series, either way; larger ones are cut to it. Sums and products of such values stay finite.
pub const VALUE_MAX: f64 = 1e15;

/// A model that forecasts a series: a value per epoch, of one unit, finite. Epochs are of equal length, which the model need not know.
pub trait Forecaster: Send {
    /// What the model is called in tables, with its order: `ARIMA(3,1,2)`.
    fn name(&self) -> String;

    /// Fits the model to `series`, oldest value first, and then stands at its end as if it had observed it. What it had learnt and
    /// observed before is forgotten. After an error it is as it was. `progress` is told of each pass over the series.
    fn train(&mut self, series: &[f64], progress: &mut dyn FnMut(Progress)) -> Result<(), TrainError>;

    /// Takes the value of the epoch that just ended.
    ///
    /// # Panics
    /// If `value` is not finite.
    fn observe(&mut self, value: f64);

    /// The expected values of the next `epochs` epochs, the nearest first. Empty as long as nothing was observed. May be
    /// negative, if the series' course says so.
    fn predict(&self, epochs: usize) -> Vec<f64>;

    /// The model with all it has learnt and observed, as bytes for [`load`](crate::load).
    fn save(&self) -> Vec<u8>;
}

/// How far training is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Passes done.
    pub done: usize,
    /// Passes to do at most; training may end earlier.
    pub total: usize,
    /// The mean absolute error of one-step forecasts on the part of the series held back, in the series' unit.
    pub error: f64,
}

/// Why a model cannot be fitted to a series.
#[derive(Debug, Error, PartialEq)]
#[allow(missing_docs)]
pub enum TrainError {
    #[error("{model} needs {needed} values or more to train on, but the series has {found}; give a longer series or a smaller model")]
    TooShort { model: String, needed: usize, found: usize },
    #[error("value {position} of the series is {value}, not a number of at most {VALUE_MAX:e}")]
    OutOfRange { position: usize, value: f64 },
}

/// Checks what every model asks of a series: `needed` values within [`VALUE_MAX`].
pub(crate) fn check_series(model: &str, series: &[f64], needed: usize) -> Result<(), TrainError> {
    if let Some(index) = series.iter().position(|value| value.is_nan() || value.abs() > VALUE_MAX) {
        return Err(TrainError::OutOfRange { position: index + 1, value: series[index] });
    }
    if series.len() < needed {
        return Err(TrainError::TooShort { model: model.to_owned(), needed, found: series.len() });
    }
    Ok(())
}
