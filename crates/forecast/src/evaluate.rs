//! Walk-forward evaluation: forecast one epoch, be told what it was, forecast the next.

use crate::forecaster::{Forecaster, Progress, TrainError};

/// The errors of one-step forecasts, in the series' unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Mean absolute error.
    pub mae: f64,
    /// Root of the mean squared error.
    pub rmse: f64,
    /// The mean absolute error of the random walk on the same epochs.
    pub random_walk_mae: f64,
    /// Epochs forecast.
    pub epochs: usize,
}

impl Errors {
    /// The mean absolute error as a share of the random walk's: below 1 the model knows something. Not finite where the
    /// random walk makes no error.
    pub fn share(&self) -> f64 {
        self.mae / self.random_walk_mae
    }
}

/// Trains `model` on `train`, then forecasts each value of `test`, which follows it, from all before it. Negative
/// forecasts count as they are.
pub fn evaluate(model: &mut dyn Forecaster, train: &[f64], test: &[f64], progress: &mut dyn FnMut(Progress)) -> Result<Errors, TrainError> {
    model.train(train, progress)?;
    let mut last = train[train.len() - 1];
    let (mut absolute, mut squared, mut walk) = (0.0, 0.0, 0.0);
    for value in test {
        let forecast = model.predict(1).first().copied().unwrap_or(last);
        absolute += (value - forecast).abs();
        squared += (value - forecast) * (value - forecast);
        walk += (value - last).abs();
        model.observe(*value);
        last = *value;
    }
    let epochs = test.len();
    let over = epochs.max(1) as f64;
    Ok(Errors { mae: absolute / over, rmse: (squared / over).sqrt(), random_walk_mae: walk / over, epochs })
}
