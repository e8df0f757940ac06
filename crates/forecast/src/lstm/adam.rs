//! Adam: gradient descent with a step per weight, from running means of its gradient and of the gradient's square.

use super::network::Weights;

const MEAN_DECAY: f64 = 0.9;
const SQUARE_DECAY: f64 = 0.999;
const SMALLEST: f64 = 1e-8;
/// A longer gradient is shortened to this: one odd batch must not throw the weights far off.
const GRADIENT_NORM_MAX: f64 = 1.0;

/// The state of the descent.
pub(super) struct Adam {
    mean: Weights,
    square: Weights,
    steps: i32,
}

impl Adam {
    /// A descent of weights of this shape.
    pub(super) fn new(inputs: usize, hidden: usize) -> Adam {
        Adam { mean: Weights::zeros(inputs, hidden), square: Weights::zeros(inputs, hidden), steps: 0 }
    }

    /// Moves `weights` against `gradient`, each by about `rate`.
    pub(super) fn step(&mut self, weights: &mut Weights, gradient: &Weights, rate: f64) {
        let Some(shorten) = shortening(gradient) else { return };
        self.steps = self.steps.saturating_add(1);
        let steps = f64::from(self.steps);
        let (mean_share, square_share) = (1.0 - libm::pow(MEAN_DECAY, steps), 1.0 - libm::pow(SQUARE_DECAY, steps));
        let moments = self.mean.iter_mut().zip(self.square.iter_mut());
        for ((weight, slope), (mean, square)) in weights.iter_mut().zip(gradient.iter()).zip(moments) {
            let slope = slope * shorten;
            *mean = MEAN_DECAY * *mean + (1.0 - MEAN_DECAY) * slope;
            *square = SQUARE_DECAY * *square + (1.0 - SQUARE_DECAY) * slope * slope;
            *weight -= rate * (*mean / mean_share) / ((*square / square_share).sqrt() + SMALLEST);
        }
    }
}

/// One step of plain gradient descent: moves `weights` against `gradient`, by `rate` at most in all.
pub(super) fn descend(weights: &mut Weights, gradient: &Weights, rate: f64) {
    let Some(shorten) = shortening(gradient) else { return };
    weights.iter_mut().zip(gradient.iter()).for_each(|(weight, slope)| *weight -= rate * shorten * slope);
}

/// What brings a gradient down to its greatest length; `None` for one that has grown beyond all numbers, which points
/// nowhere.
fn shortening(gradient: &Weights) -> Option<f64> {
    let norm = gradient.iter().map(|slope| slope * slope).sum::<f64>().sqrt();
    norm.is_finite().then(|| if norm > GRADIENT_NORM_MAX { GRADIENT_NORM_MAX / norm } else { 1.0 })
}
