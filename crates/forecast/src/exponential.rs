//! Simple exponential smoothing: the forecast moves towards each value by a share of what it missed it by.
//!
//! ```text
//! level' = level + alpha · (value − level)        forecast = level
//! ```
//!
//! An alpha of 1 is the random walk; a small one a long memory. Training takes the alpha of a fixed grid with the least
//! mean absolute error of one-step forecasts.

use crate::forecaster::{EPOCHS_MAX, Forecaster, Progress, TrainError, VALUE_MAX, check_series};
use crate::format::{self, Kind};
use serde::{Deserialize, Serialize};

/// The grid of alphas is 1/`ALPHAS`, 2/`ALPHAS` … 1.
const ALPHAS: u32 = 20;

/// Forecasts an exponentially weighted mean of all values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exponential {
    alpha: f64,
    level: Option<f64>,
}

impl Exponential {
    /// Smoothing with an alpha of 1, until it is trained.
    pub fn new() -> Exponential {
        Exponential { alpha: 1.0, level: None }
    }

    /// The share of an error by which the forecast moves, in (0, 1].
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.alpha > 0.0 && self.alpha <= 1.0 && self.level.is_none_or(|level| level.abs() <= VALUE_MAX)
    }

    /// Follows `series` and returns the sum of the absolute errors on the way.
    fn follow(&mut self, series: &[f64]) -> f64 {
        let mut error = 0.0;
        for value in series {
            error += self.level.map_or(0.0, |level| (value - level).abs());
            self.observe(*value);
        }
        error
    }
}

impl Default for Exponential {
    fn default() -> Exponential {
        Exponential::new()
    }
}

impl Forecaster for Exponential {
    fn name(&self) -> String {
        "exponential smoothing".into()
    }

    fn train(&mut self, series: &[f64], progress: &mut dyn FnMut(Progress)) -> Result<(), TrainError> {
        check_series(&self.name(), series, 2)?;
        let mut least = f64::INFINITY;
        // From the random walk down: of equal alphas the one that forgets fastest.
        for step in (1..=ALPHAS).rev() {
            let mut model = Exponential { alpha: f64::from(step) / f64::from(ALPHAS), level: None };
            let error = model.follow(series) / (series.len() - 1) as f64;
            progress(Progress { done: (ALPHAS - step + 1) as usize, total: ALPHAS as usize, error });
            if error < least {
                least = error;
                *self = model;
            }
        }
        Ok(())
    }

    fn observe(&mut self, value: f64) {
        assert!(value.is_finite(), "a series holds finite numbers, not {value}");
        let value = value.clamp(-VALUE_MAX, VALUE_MAX);
        self.level = Some(self.level.map_or(value, |level| level + self.alpha * (value - level)));
    }

    fn predict(&self, epochs: usize) -> Vec<f64> {
        self.level.map_or_else(Vec::new, |level| vec![level; epochs.min(EPOCHS_MAX)])
    }

    fn save(&self) -> Vec<u8> {
        format::encode(Kind::Exponential, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_by_a_share_of_the_error() {
        let mut model = Exponential { alpha: 0.25, level: None };
        model.observe(8.0);
        model.observe(16.0);
        assert_eq!(model.predict(2), [10.0, 10.0]);
    }

    #[test]
    fn remembers_long_where_values_alternate_and_forgets_where_they_climb() {
        let alternating: Vec<f64> = (0..200).map(|epoch| f64::from(epoch % 2) * 10.0).collect();
        let climbing: Vec<f64> = (0..200).map(f64::from).collect();
        let alpha = |series: &[f64]| {
            let mut model = Exponential::new();
            model.train(series, &mut |_| ()).expect("long enough");
            model.alpha()
        };
        assert_eq!((alpha(&alternating), alpha(&climbing)), (0.05, 1.0));
    }
}
