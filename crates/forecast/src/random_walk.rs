//! The random walk: the next value is the last one. The baseline of every other model.

use crate::forecaster::{EPOCHS_MAX, Forecaster, Progress, TrainError, check_series};
use crate::format::{self, Kind};
use crate::history::History;
use serde::{Deserialize, Serialize};

/// Forecasts the last value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RandomWalk {
    history: History,
}

impl RandomWalk {
    /// A random walk that has seen nothing.
    pub fn new() -> RandomWalk {
        RandomWalk { history: History::keeping(1) }
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.history.is_sound(1)
    }
}

impl Default for RandomWalk {
    fn default() -> RandomWalk {
        RandomWalk::new()
    }
}

impl Forecaster for RandomWalk {
    fn name(&self) -> String {
        "random walk".into()
    }

    fn train(&mut self, series: &[f64], _progress: &mut dyn FnMut(Progress)) -> Result<(), TrainError> {
        check_series(&self.name(), series, 1)?;
        self.history = History::of(series, 1);
        Ok(())
    }

    fn observe(&mut self, value: f64) {
        self.history.push(value);
    }

    fn predict(&self, epochs: usize) -> Vec<f64> {
        self.history.last().map_or_else(Vec::new, |last| vec![last; epochs.min(EPOCHS_MAX)])
    }

    fn save(&self) -> Vec<u8> {
        format::encode(Kind::RandomWalk, self)
    }
}
