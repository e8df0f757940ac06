//! LSTM: a recurrent network that carries a state along the series and is told about its seasons.
//!
//! A forecast runs the network over the last `window` epochs from a state of zeros, as in training; the state is not
//! carried between forecasts, so it cannot drift, and nothing of it need be saved. Forecasts of several epochs feed each
//! forecast back as if it had been observed.
//!
//! Every observed value also refreshes the weights, by one short step of plain gradient descent on the window that it ends:
//! a demand that slowly changes its ways is followed without training anew.
//!
//! Simplified: one layer; no dropout, since the weights kept are those that do best on held-back values.

mod adam;
mod features;
mod network;
mod training;
mod windows;

use crate::forecaster::{EPOCHS_MAX, Forecaster, PERIOD_MAX, Progress, TrainError, VALUE_MAX, check_series};
use crate::format::{self, Kind};
use crate::history::History;
use network::Weights;
use serde::{Deserialize, Serialize};
use windows::Windows;

/// The most hidden units.
pub const HIDDEN_MAX: usize = 256;
/// The most epochs that the network is unrolled over.
pub const WINDOW_MAX: usize = 1_024;
/// The most periods.
pub const PERIODS_MAX: usize = 4;
/// The most windows of a batch.
pub const BATCH_MAX: usize = 1_024;
/// The most passes of a training.
pub const PASSES_MAX: usize = 10_000;
/// The least deviation by which values are divided: a constant series has none.
const DEVIATION_MIN: f64 = 1e-6;

/// The shape of an LSTM and how it is trained. What is out of bounds is cut to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LstmConfig {
    /// Hidden units, 1 to [`HIDDEN_MAX`].
    pub hidden: usize,
    /// Epochs that the network is unrolled over, 2 to [`WINDOW_MAX`].
    pub window: usize,
    /// Periods of the series in epochs (a day, a week), at most [`PERIODS_MAX`]. May be empty.
    pub periods: Vec<usize>,
    /// Passes over the series, at most [`PASSES_MAX`].
    pub passes: usize,
    /// Windows per step of the descent, 1 to [`BATCH_MAX`].
    pub batch: usize,
    /// About how far one step moves a weight at first; between 0 and 1.
    pub rate: f64,
    /// How far one observed value moves the weights, at most in all; 0, and they stay as trained. Between 0 and 1.
    pub refresh: f64,
    /// Decides the first weights and the order of the windows.
    pub seed: u64,
}

impl LstmConfig {
    /// What serves well on a few thousand values with these periods.
    pub fn with_periods(periods: &[usize], seed: u64) -> LstmConfig {
        LstmConfig { hidden: 24, window: 24, periods: periods.to_vec(), passes: 60, batch: 16, rate: 0.004, refresh: 0.0003, seed }
    }

    fn bounded(mut self) -> LstmConfig {
        self.periods.retain(|period| (2..=PERIOD_MAX).contains(period));
        self.periods.truncate(PERIODS_MAX);
        let share = |rate: f64| if rate.is_finite() { rate.clamp(0.0, 1.0) } else { 0.0 };
        LstmConfig {
            hidden: self.hidden.clamp(1, HIDDEN_MAX),
            window: self.window.clamp(2, WINDOW_MAX),
            passes: self.passes.min(PASSES_MAX),
            batch: self.batch.clamp(1, BATCH_MAX),
            rate: share(self.rate),
            refresh: share(self.refresh),
            ..self
        }
    }

    fn keep(&self) -> usize {
        features::reach(&self.periods) + self.window + 1
    }
}

/// An LSTM network with what it has observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lstm {
    config: LstmConfig,
    /// Mean and standard deviation of the series trained on: the network sees values less the one, over the other.
    mean: f64,
    deviation: f64,
    /// The weights in their fixed order; none before it is trained.
    weights: Vec<f64>,
    /// Values as they came.
    history: History,
}

impl Lstm {
    /// A network that was not trained. What is out of bounds in `config` is cut to them.
    pub fn new(config: LstmConfig) -> Lstm {
        let config = config.bounded();
        let history = History::keeping(config.keep());
        Lstm { config, mean: 0.0, deviation: 1.0, weights: Vec::new(), history }
    }

    pub(crate) fn is_sound(&self) -> bool {
        let count = Weights::count(features::count(&self.config.periods), self.config.hidden.min(HIDDEN_MAX));
        self.config == self.config.clone().bounded()
            && self.mean.abs() <= VALUE_MAX
            && (DEVIATION_MIN..=VALUE_MAX).contains(&self.deviation)
            && (self.weights.is_empty() || self.weights.len() == count)
            && self.weights.iter().all(|weight| weight.abs() <= VALUE_MAX)
            && self.history.is_sound(self.config.keep())
    }

    fn network(&self) -> Option<Weights> {
        let mut network = Weights::zeros(features::count(&self.config.periods), self.config.hidden);
        network.iter_mut().zip(&self.weights).for_each(|(weight, saved)| *weight = *saved);
        (!self.weights.is_empty()).then_some(network)
    }

    fn scaled(&self) -> Vec<f64> {
        self.history.values().iter().map(|value| (value - self.mean) / self.deviation).collect()
    }

    /// The position in the series of the first value that the history still shows.
    fn origin(&self) -> u64 {
        self.history.seen() - self.history.values().len() as u64
    }

    /// One step of plain gradient descent on the window that ends with the latest value.
    fn refresh(&mut self) {
        if self.config.refresh == 0.0 || self.history.values().len() < self.config.keep() {
            return;
        }
        let Some(mut network) = self.network() else { return };
        let start = self.config.keep() - self.config.window - 1;
        let gradient = Windows::new(&self.config, &self.scaled(), self.origin()).gradient(&network, &[start]);
        adam::descend(&mut network, &gradient, self.config.refresh);
        self.weights = network.iter().copied().collect();
    }
}

impl Forecaster for Lstm {
    fn name(&self) -> String {
        format!("LSTM({})", self.config.hidden)
    }

    fn train(&mut self, series: &[f64], progress: &mut dyn FnMut(Progress)) -> Result<(), TrainError> {
        check_series(&self.name(), series, training::needed(&self.config))?;
        let mut fresh = Lstm::new(self.config.clone());
        series.iter().for_each(|value| fresh.history.push(*value));
        fresh.mean = series.iter().sum::<f64>() / series.len() as f64;
        let variance = series.iter().map(|value| (value - fresh.mean) * (value - fresh.mean)).sum::<f64>() / series.len() as f64;
        fresh.deviation = variance.sqrt().max(DEVIATION_MIN);
        let scaled: Vec<f64> = series.iter().map(|value| (value - fresh.mean) / fresh.deviation).collect();
        fresh.weights = training::train(&self.config, &scaled, fresh.deviation, progress).iter().copied().collect();
        *self = fresh;
        Ok(())
    }

    fn observe(&mut self, value: f64) {
        self.history.push(value);
        self.refresh();
    }

    fn predict(&self, epochs: usize) -> Vec<f64> {
        let epochs = epochs.min(EPOCHS_MAX);
        let Some(last) = self.history.last() else { return Vec::new() };
        let Some(network) = self.network() else { return vec![last; epochs] };
        let mut values = self.scaled();
        let observed = values.len();
        let bound = VALUE_MAX / self.deviation;
        for _ in 0..epochs {
            let next = Windows::new(&self.config, &values, self.origin()).next(&network).unwrap_or(values[values.len() - 1]);
            values.push(next.clamp(-bound, bound));
        }
        values[observed..].iter().map(|value| value * self.deviation + self.mean).collect()
    }

    fn save(&self) -> Vec<u8> {
        format::encode(Kind::Lstm, self)
    }
}
