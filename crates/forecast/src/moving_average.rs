//! The simple moving average: the next value is the mean of the last few.

use crate::forecaster::{EPOCHS_MAX, Forecaster, Progress, TrainError};
use crate::format::{self, Kind};
use crate::window::Window;
use serde::{Deserialize, Serialize};

/// Forecasts the mean of the last `window` values, or of all if there are fewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MovingAverage {
    window: Window,
}

impl MovingAverage {
    /// A moving average over `window` values, at least one and at most [`PERIOD_MAX`](crate::PERIOD_MAX).
    pub fn new(window: usize) -> MovingAverage {
        MovingAverage { window: Window::new(window) }
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.window.is_sound()
    }
}

impl Forecaster for MovingAverage {
    fn name(&self) -> String {
        format!("moving average({})", self.window.length())
    }

    fn train(&mut self, series: &[f64], _progress: &mut dyn FnMut(Progress)) -> Result<(), TrainError> {
        self.window.train(&self.name(), series, 1)
    }

    fn observe(&mut self, value: f64) {
        self.window.push(value);
    }

    /// A forecast put in the place of the value leaves the mean as it is: all epochs get the same.
    fn predict(&self, epochs: usize) -> Vec<f64> {
        let values = self.window.values();
        if values.is_empty() {
            return Vec::new();
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        vec![mean; epochs.min(EPOCHS_MAX)]
    }

    fn save(&self) -> Vec<u8> {
        format::encode(Kind::MovingAverage, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecasts_the_mean_of_the_window() {
        let mut model = MovingAverage::new(3);
        assert_eq!(model.predict(2), []);
        model.observe(4.0);
        assert_eq!(model.predict(1), [4.0], "of what there is");
        for value in [100.0, 3.0, 6.0, 9.0] {
            model.observe(value);
        }
        assert_eq!(model.predict(2), [6.0, 6.0]);
    }
}
