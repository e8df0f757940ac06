//! Fits the network to a series: stochastic gradient descent over windows, the best weights on held-back values kept.
//!
//! The series is cut into windows of a common length that overlap by half. The first half of a window warms the state up, the second
//! half is what the loss is taken of, so that every epoch is forecast once per pass with half a window behind it. The last
//! part of the series is held back; after each pass the network forecasts it, and the weights of the best pass are the
//! result. The weights before the first pass, a random walk, are a candidate too.

use super::LstmConfig;
use super::adam::Adam;
use super::features;
use super::network::Weights;
use crate::forecaster::Progress;
use nalgebra::DMatrix;
use rhumb_core::Rng;
use std::f64::consts::PI;

/// One in this many values is held back.
const HELD_BACK: usize = 10;
/// The rate falls along a cosine from its first value to this share of it.
const RATE_SHARE_LAST: f64 = 0.01;
/// The loss is quadratic for errors below this, in standard deviations of the series, and linear above: it is the absolute
/// error that tables compare, without its kink.
const HUBER_BEND: f64 = 0.05;

/// A fit of a network to scaled values.
pub(super) struct Training<'a> {
    config: &'a LstmConfig,
    values: &'a [f64],
    inputs: usize,
    rng: Rng,
}

impl<'a> Training<'a> {
    /// A fit to `values`, of mean about 0 and deviation about 1.
    pub(super) fn new(config: &'a LstmConfig, values: &'a [f64]) -> Training<'a> {
        Training { config, values, inputs: features::count(&config.periods), rng: Rng::seeded(config.seed) }
    }

    /// How many values the fit of `config` needs: those that the features reach back, and enough windows on either side of the
    /// line between what is trained on and what is held back.
    pub(super) fn needed(config: &LstmConfig) -> usize {
        features::reach(&config.periods) + HELD_BACK * (config.window + 1)
    }

    /// The best weights found. Errors in `progress` are scaled by `scale`.
    pub(super) fn run(mut self, scale: f64, progress: &mut dyn FnMut(Progress)) -> Weights {
        let held_back = self.values.len() - (self.values.len() / HELD_BACK).max(self.config.window);
        let reach = features::reach(&self.config.periods);
        let mut weights = Weights::random(self.inputs, self.config.hidden, &mut self.rng);
        let mut adam = Adam::new(self.inputs, self.config.hidden);
        let (mut best, mut least) = (weights.clone(), self.error(&weights, held_back));
        for pass in 0..self.config.passes {
            let turned = libm::cos(PI * pass as f64 / self.config.passes as f64);
            let rate = self.config.rate * (RATE_SHARE_LAST + (1.0 - RATE_SHARE_LAST) * 0.5 * (1.0 + turned));
            let offset = self.rng.below(self.half() as u64) as usize;
            let mut starts = self.starts(reach + offset, held_back);
            self.rng.shuffle(&mut starts);
            for batch in starts.chunks(self.config.batch) {
                let gradient = self.gradient(&weights, batch);
                adam.step(&mut weights, &gradient, rate);
            }
            let error = self.error(&weights, held_back);
            if error < least {
                least = error;
                best = weights.clone();
            }
            progress(Progress { done: pass + 1, total: self.config.passes, error: error * scale });
        }
        best
    }

    fn half(&self) -> usize {
        (self.config.window / 2).max(1)
    }

    /// Where windows begin whose values, and the one after them, lie in `from..to`.
    fn starts(&self, from: usize, to: usize) -> Vec<usize> {
        (from..to.saturating_sub(self.config.window)).step_by(self.half()).collect()
    }

    /// The inputs of the windows at `starts`, a matrix per epoch with a column per window.
    fn inputs(&self, starts: &[usize]) -> Vec<DMatrix<f64>> {
        let at = |epoch: usize| {
            let mut input = DMatrix::zeros(self.inputs, starts.len());
            for (start, column) in starts.iter().zip(input.as_mut_slice().chunks_exact_mut(self.inputs)) {
                features::write(&self.config.periods, self.values, start + epoch, 0, column);
            }
            input
        };
        (0..self.config.window).map(at).collect()
    }

    /// What the network says beyond the truth at `epoch` of the windows at `starts`.
    fn misses(&self, starts: &[usize], epoch: usize, output: &DMatrix<f64>) -> DMatrix<f64> {
        DMatrix::from_fn(1, starts.len(), |_, column| output[column] - self.values[starts[column] + epoch + 1])
    }

    fn gradient(&self, weights: &Weights, starts: &[usize]) -> Weights {
        let pass = weights.forward(&self.inputs(starts));
        let counted = (starts.len() * (self.config.window - self.config.window / 2)) as f64;
        let slopes: Vec<DMatrix<f64>> = (pass.outputs.iter().enumerate())
            .map(|(epoch, output)| {
                let warming = epoch < self.config.window / 2;
                let slope = |miss: f64| if warming { 0.0 } else { (miss / HUBER_BEND).clamp(-1.0, 1.0) / counted };
                self.misses(starts, epoch, output).map(slope)
            })
            .collect();
        weights.backward(&pass, &slopes)
    }

    /// The mean absolute error over the values from `from` on.
    fn error(&self, weights: &Weights, from: usize) -> f64 {
        let reach = features::reach(&self.config.periods);
        let starts = self.starts((from - self.half()).max(reach), self.values.len());
        let (mut sum, mut count) = (0.0, 0_usize);
        for batch in starts.chunks(self.config.batch) {
            let outputs = weights.forward(&self.inputs(batch)).outputs;
            for (epoch, output) in outputs.iter().enumerate().skip(self.config.window / 2) {
                sum += self.misses(batch, epoch, output).iter().map(|miss| miss.abs()).sum::<f64>();
                count += batch.len();
            }
        }
        if count == 0 { f64::INFINITY } else { sum / count as f64 }
    }
}
