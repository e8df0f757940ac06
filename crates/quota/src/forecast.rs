//! The models of the crate `forecast` as the prediction module of a site.

use crate::demand::Predictor;
use rhumb_forecast::Forecaster;

/// A model that follows the demand for one quota at one site, and learns from it as far as its kind does.
pub struct Forecast(Box<dyn Forecaster>);

impl Forecast {
    /// Goes on where `model` stands.
    pub fn new(model: Box<dyn Forecaster>) -> Forecast {
        Forecast(model)
    }
}

impl Predictor for Forecast {
    fn observe(&mut self, demand: f64) {
        self.0.observe(demand);
    }

    fn predict(&self) -> Option<f64> {
        self.0.predict(1).first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_forecast::RandomWalk;

    #[test]
    fn a_model_forecasts_the_next_epoch_once_it_has_seen_one() {
        let mut forecast = Forecast::new(Box::new(RandomWalk::default()));
        assert_eq!(forecast.predict(), None);
        forecast.observe(7.0);
        assert_eq!(forecast.predict(), Some(7.0));
    }
}
