//! The latest values of a series, as many as a model looks back on.

use crate::forecaster::{PERIOD_MAX, TrainError, check_series};
use crate::history::History;
use serde::{Deserialize, Serialize};

/// The last `length` values of a series, or all if there are fewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Window {
    length: usize,
    history: History,
}

impl Window {
    /// An empty window for `length` values, at least one and at most [`PERIOD_MAX`].
    pub(crate) fn new(length: usize) -> Window {
        let length = length.clamp(1, PERIOD_MAX);
        Window { length, history: History::keeping(length) }
    }

    /// How many values it has room for.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Adds the next value.
    pub(crate) fn push(&mut self, value: f64) {
        self.history.push(value);
    }

    /// Its values, the latest last.
    pub(crate) fn values(&self) -> &[f64] {
        self.history.values()
    }

    /// The latest value.
    pub(crate) fn last(&self) -> Option<f64> {
        self.history.last()
    }

    /// Forgets its values and takes those of `series`, of which the model of that name needs so many.
    pub(crate) fn train(&mut self, model: &str, series: &[f64], needed: usize) -> Result<(), TrainError> {
        check_series(model, series, needed)?;
        self.history = History::of(series, self.length);
        Ok(())
    }

    /// Whether a decoded window could have been built here.
    pub(crate) fn is_sound(&self) -> bool {
        (1..=PERIOD_MAX).contains(&self.length) && self.history.is_sound(self.length)
    }
}
