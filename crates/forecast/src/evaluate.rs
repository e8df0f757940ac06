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
    /// The errors of `forecasts` of the `actual` values, each of one step; `before` came before the first of these.
    ///
    /// # Panics
    /// If there is not one forecast for each value.
    pub fn of(forecasts: &[f64], actual: &[f64], before: f64) -> Errors {
        assert_eq!(forecasts.len(), actual.len(), "a forecast for each value");
        let (mut absolute, mut squared, mut walk) = (0.0, 0.0, 0.0);
        let mut last = before;
        for (forecast, value) in forecasts.iter().zip(actual) {
            absolute += (value - forecast).abs();
            squared += (value - forecast) * (value - forecast);
            walk += (value - last).abs();
            last = *value;
        }
        let over = actual.len().max(1) as f64;
        Errors { mae: absolute / over, rmse: (squared / over).sqrt(), random_walk_mae: walk / over, epochs: actual.len() }
    }

    /// The mean absolute error as a share of the random walk's: below 1 the model knows something. Not finite where the
    /// random walk makes no error.
    pub fn share(&self) -> f64 {
        self.mae / self.random_walk_mae
    }
}

/// Trains `model` on `train`, then forecasts each value of `test`, which follows it, from all before it. Negative
/// forecasts count as they are.
pub fn walk_forward(
    model: &mut dyn Forecaster,
    train: &[f64],
    test: &[f64],
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<f64>, TrainError> {
    model.train(train, progress)?;
    let step = |value: &f64| {
        let forecast = model.predict(1)[0];
        model.observe(*value);
        forecast
    };
    Ok(test.iter().map(step).collect())
}

/// The errors that [`walk_forward`] finds.
pub fn evaluate(model: &mut dyn Forecaster, train: &[f64], test: &[f64], progress: &mut dyn FnMut(Progress)) -> Result<Errors, TrainError> {
    let forecasts = walk_forward(model, train, test, progress)?;
    Ok(Errors::of(&forecasts, test, train[train.len() - 1]))
}
