//! Windows of a series, as the network is trained on them.
//!
//! The first half of a window warms the state up, the second half is what the loss is taken of: a forecast there has half a
//! window or more behind it, as it will have in use.

use super::LstmConfig;
use super::features;
use super::network::Weights;
use nalgebra::DMatrix;

/// The loss is quadratic for errors below this, in standard deviations of the series, and linear above: it is the absolute
/// error that tables compare, without its kink.
const HUBER_BEND: f64 = 0.05;

/// Scaled values of a series, of which windows are taken by where they begin. A window at `start` takes the `config.window`
/// values from there, the one that follows them, and those that the features reach back.
pub(super) struct Windows<'a> {
    config: &'a LstmConfig,
    values: &'a [f64],
    /// The position of the first value in the whole series.
    origin: u64,
    inputs: usize,
}

impl<'a> Windows<'a> {
    /// Windows of `values`, the first of which has the position `origin` in the series.
    pub(super) fn new(config: &'a LstmConfig, values: &'a [f64], origin: u64) -> Windows<'a> {
        Windows { config, values, origin, inputs: features::count(&config.periods) }
    }

    /// The epochs of a window that only warm the state up.
    pub(super) fn warming(config: &LstmConfig) -> usize {
        config.window / 2
    }

    /// The inputs of the windows at `starts`, a matrix per epoch with a column per window.
    fn inputs(&self, starts: &[usize]) -> Vec<DMatrix<f64>> {
        let at = |epoch: usize| {
            let mut input = DMatrix::zeros(self.inputs, starts.len());
            for (start, column) in starts.iter().zip(input.as_mut_slice().chunks_exact_mut(self.inputs)) {
                features::write(&self.config.periods, self.values, start + epoch, self.origin, column);
            }
            input
        };
        (0..self.config.window).map(at).collect()
    }

    /// What the network says beyond the truth at `epoch` of the windows at `starts`.
    fn misses(&self, starts: &[usize], epoch: usize, output: &DMatrix<f64>) -> DMatrix<f64> {
        DMatrix::from_fn(1, starts.len(), |_, column| output[column] - self.values[starts[column] + epoch + 1])
    }

    /// The gradient of the mean loss over the windows at `starts`.
    pub(super) fn gradient(&self, weights: &Weights, starts: &[usize]) -> Weights {
        let pass = weights.forward(&self.inputs(starts));
        let warming = Self::warming(self.config);
        let counted = (starts.len() * (self.config.window - warming)) as f64;
        let slopes: Vec<DMatrix<f64>> = (pass.outputs.iter().enumerate())
            .map(|(epoch, output)| {
                let slope = |miss: f64| if epoch < warming { 0.0 } else { (miss / HUBER_BEND).clamp(-1.0, 1.0) / counted };
                self.misses(starts, epoch, output).map(slope)
            })
            .collect();
        weights.backward(&pass, &slopes)
    }

    /// The mean absolute error over the windows at `starts`; infinite over none.
    pub(super) fn error(&self, weights: &Weights, starts: &[usize]) -> f64 {
        let (mut sum, mut count) = (0.0, 0_usize);
        for batch in starts.chunks(self.config.batch) {
            let outputs = weights.forward(&self.inputs(batch)).outputs;
            for (epoch, output) in outputs.iter().enumerate().skip(Self::warming(self.config)) {
                sum += self.misses(batch, epoch, output).iter().map(|miss| miss.abs()).sum::<f64>();
                count += batch.len();
            }
        }
        if count == 0 { f64::INFINITY } else { sum / count as f64 }
    }

    /// What the network expects after the last value, having seen the window that ends there.
    pub(super) fn next(&self, weights: &Weights) -> Option<f64> {
        let start = self.values.len().checked_sub(self.config.window)?;
        if start < features::reach(&self.config.periods) {
            return None;
        }
        weights.forward(&self.inputs(&[start])).outputs.last().map(|output| output[0])
    }
}
