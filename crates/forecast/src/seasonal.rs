//! The seasonal naive forecast: the next value is the one a period ago.

use crate::forecaster::{EPOCHS_MAX, Forecaster, Progress, TrainError};
use crate::format::{self, Kind};
use crate::window::Window;
use serde::{Deserialize, Serialize};

/// Forecasts the value of the same place in the last period. Until a whole period was seen: the last value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeasonalNaive {
    /// As long as the period.
    window: Window,
}

impl SeasonalNaive {
    /// A forecast with a period of `period` epochs, at least one and at most [`PERIOD_MAX`](crate::PERIOD_MAX).
    pub fn new(period: usize) -> SeasonalNaive {
        SeasonalNaive { window: Window::new(period) }
    }

    fn period(&self) -> usize {
        self.window.length()
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.window.is_sound()
    }
}

impl Forecaster for SeasonalNaive {
    fn name(&self) -> String {
        format!("seasonal naive({})", self.period())
    }

    fn train(&mut self, series: &[f64], _progress: &mut dyn FnMut(Progress)) -> Result<(), TrainError> {
        self.window.train(&self.name(), series, self.period())
    }

    fn observe(&mut self, value: f64) {
        self.window.push(value);
    }

    fn predict(&self, epochs: usize) -> Vec<f64> {
        let values = self.window.values();
        let epochs = epochs.min(EPOCHS_MAX);
        if values.len() < self.period() {
            return self.window.last().map_or_else(Vec::new, |last| vec![last; epochs]);
        }
        (0..epochs).map(|epoch| values[epoch % self.period()]).collect()
    }

    fn save(&self) -> Vec<u8> {
        format::encode(Kind::SeasonalNaive, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_the_last_period() {
        let mut model = SeasonalNaive::new(3);
        for value in [9.0, 9.0, 1.0] {
            model.observe(value);
        }
        assert_eq!(model.predict(4), [9.0, 9.0, 1.0, 9.0]);
        model.observe(5.0);
        assert_eq!(model.predict(4), [9.0, 1.0, 5.0, 9.0]);
    }

    #[test]
    fn repeats_the_last_value_before_a_period_is_seen() {
        let mut model = SeasonalNaive::new(3);
        assert_eq!(model.predict(2), []);
        model.observe(7.0);
        assert_eq!(model.predict(2), [7.0, 7.0]);
    }
}
