//! The simple moving average: the next value is the mean of the last few.

use crate::forecaster::{EPOCHS_MAX, Forecaster, PERIOD_MAX, Progress, TrainError, check_series};
use crate::format::{self, Kind};
use crate::history::History;
use serde::{Deserialize, Serialize};

/// Forecasts the mean of the last `window` values, or of all if there are fewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MovingAverage {
    window: usize,
    history: History,
}

impl MovingAverage {
    /// A moving average over `window` values, at least one and at most [`PERIOD_MAX`].
    pub fn new(window: usize) -> MovingAverage {
        let window = window.clamp(1, PERIOD_MAX);
        MovingAverage { window, history: History::keeping(window) }
    }

    pub(crate) fn is_sound(&self) -> bool {
        (1..=PERIOD_MAX).contains(&self.window) && self.history.is_sound(self.window)
    }
}

impl Forecaster for MovingAverage {
    fn name(&self) -> String {
        format!("moving average({})", self.window)
    }

    fn train(&mut self, series: &[f64], _progress: &mut dyn FnMut(Progress)) -> Result<(), TrainError> {
        check_series(&self.name(), series, 1)?;
        *self = MovingAverage::new(self.window);
        series.iter().for_each(|value| self.observe(*value));
        Ok(())
    }

    fn observe(&mut self, value: f64) {
        self.history.push(value);
    }

    /// A forecast put in the place of the value leaves the mean as it is: all epochs get the same.
    fn predict(&self, epochs: usize) -> Vec<f64> {
        let values = self.history.values();
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
