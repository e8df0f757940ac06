//! Fits the network to a series: stochastic gradient descent over windows, the best weights on held-back values kept.
//!
//! The series is cut into windows that overlap by half, so that every epoch is forecast once per pass. The last part of the
//! series is held back; after each pass the network forecasts it, and the weights of the best pass are the result. The
//! weights before the first pass, a random walk, are a candidate too.

use super::LstmConfig;
use super::adam::Adam;
use super::features;
use super::network::Weights;
use super::windows::Windows;
use crate::forecaster::Progress;
use rhumb_core::Rng;
use std::f64::consts::PI;

/// One in this many values is held back.
const HELD_BACK: usize = 10;
/// The rate falls along a cosine from its first value to this share of it.
const RATE_SHARE_LAST: f64 = 0.01;

/// How many values a training takes: those that the features reach back, and a window on either side of the line between
/// what is trained on and what is held back.
pub(super) fn needed(config: &LstmConfig) -> usize {
    features::reach(&config.periods) + HELD_BACK * (config.window + 1)
}

/// The best weights found for `values`, of mean about 0 and deviation about 1. Errors in `progress` are scaled by `scale`.
pub(super) fn train(config: &LstmConfig, values: &[f64], scale: f64, progress: &mut dyn FnMut(Progress)) -> Weights {
    let mut rng = Rng::seeded(config.seed);
    let windows = Windows::new(config, values, 0);
    let inputs = features::count(&config.periods);
    let mut weights = Weights::random(inputs, config.hidden, &mut rng);
    let mut adam = Adam::new(inputs, config.hidden);

    let first = features::reach(&config.periods);
    let line = values.len() - (values.len() / HELD_BACK).max(config.window);
    let held_back = starts(config, first.max(line - Windows::warming(config)), values.len());
    let (mut best, mut least) = (weights.clone(), windows.error(&weights, &held_back));
    for pass in 0..config.passes {
        let offset = rng.below(Windows::warming(config) as u64) as usize;
        let mut trained = starts(config, first + offset, line);
        rng.shuffle(&mut trained);
        for batch in trained.chunks(config.batch) {
            let gradient = windows.gradient(&weights, batch);
            adam.step(&mut weights, &gradient, rate(config, pass));
        }
        let error = windows.error(&weights, &held_back);
        if error < least {
            least = error;
            best = weights.clone();
        }
        progress(Progress { done: pass + 1, total: config.passes, error: error * scale });
    }
    best
}

/// Where windows begin whose values, and the one after them, lie in `from..to`.
fn starts(config: &LstmConfig, from: usize, to: usize) -> Vec<usize> {
    (from..to.saturating_sub(config.window)).step_by(Windows::warming(config)).collect()
}

fn rate(config: &LstmConfig, pass: usize) -> f64 {
    let fallen = (1.0 - libm::cos(PI * pass as f64 / config.passes as f64)) / 2.0;
    config.rate * (1.0 - (1.0 - RATE_SHARE_LAST) * fallen)
}
