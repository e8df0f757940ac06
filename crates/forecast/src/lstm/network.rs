//! One LSTM layer with a linear output, over a batch of sequences, forwards and backwards through time.
//!
//! ```text
//! z = [x(t); h(t−1); 1]      a = W z          W: gates i, f, g, o above one another, each `hidden` rows
//! c(t) = σ(f) ∘ c(t−1) + σ(i) ∘ tanh(g)       h(t) = σ(o) ∘ tanh(c(t))       y(t) = u · [x(t); h(t); 1]
//! ```
//!
//! A batch is a matrix with a column per sequence. The output sees the inputs as well as the state, so that what is linear
//! in them need not pass through the gates.

use nalgebra::DMatrix;
use rhumb_core::Rng;

/// Gates per unit: input, forget, candidate, output.
const GATES: usize = 4;

/// The weights, or anything of their shape: gradients, moments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Weights {
    /// W, `GATES · hidden` by `inputs + hidden + 1`.
    gates: DMatrix<f64>,
    /// u, 1 by `inputs + hidden + 1`.
    output: DMatrix<f64>,
    inputs: usize,
    hidden: usize,
}

/// What a forward step leaves for the backward one.
struct Step {
    /// `[x; h before; 1]`.
    seen: DMatrix<f64>,
    /// `[x; h after; 1]`.
    made: DMatrix<f64>,
    /// The gates after their sigmoid or tanh.
    gates: DMatrix<f64>,
    cell_before: DMatrix<f64>,
    /// tanh of the cell after.
    cell_tanh: DMatrix<f64>,
}

/// A forward pass.
pub(super) struct Pass {
    steps: Vec<Step>,
    /// The output of each step, a row with a column per sequence.
    pub(super) outputs: Vec<DMatrix<f64>>,
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

impl Weights {
    /// Zeros.
    pub(super) fn zeros(inputs: usize, hidden: usize) -> Weights {
        let columns = inputs + hidden + 1;
        Weights { gates: DMatrix::zeros(GATES * hidden, columns), output: DMatrix::zeros(1, columns), inputs, hidden }
    }

    /// How many weights a network has.
    pub(super) fn count(inputs: usize, hidden: usize) -> usize {
        (GATES * hidden + 1) * (inputs + hidden + 1)
    }

    /// A network that begins as a random walk: random gates, forget gates open, and an output that is the first input.
    pub(super) fn random(inputs: usize, hidden: usize, rng: &mut Rng) -> Weights {
        let mut weights = Weights::zeros(inputs, hidden);
        let spread = 1.0 / ((inputs + hidden) as f64).sqrt();
        weights.gates.iter_mut().for_each(|weight| *weight = (2.0 * rng.unit() - 1.0) * spread);
        let bias = inputs + hidden;
        for unit in 0..hidden {
            weights.gates[(hidden + unit, bias)] = 1.0;
        }
        weights.output[0] = 1.0;
        weights
    }

    /// All weights in a fixed order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &f64> {
        self.gates.iter().chain(self.output.iter())
    }

    /// All weights in the same order, to change.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut f64> {
        self.gates.iter_mut().chain(self.output.iter_mut())
    }

    fn step(&self, input: &DMatrix<f64>, state: &mut DMatrix<f64>, cell: &mut DMatrix<f64>) -> (Step, DMatrix<f64>) {
        let (hidden, batch) = (self.hidden, input.ncols());
        let seen = stack(input, state);
        let mut gates = &self.gates * &seen;
        let cell_before = cell.clone();
        let mut cell_tanh = DMatrix::zeros(hidden, batch);
        for column in 0..batch {
            for unit in 0..hidden {
                let [i, f, g, o] = [0, 1, 2, 3].map(|gate| (gate * hidden + unit, column));
                gates[i] = sigmoid(gates[i]);
                gates[f] = sigmoid(gates[f]);
                gates[g] = libm::tanh(gates[g]);
                gates[o] = sigmoid(gates[o]);
                let at = (unit, column);
                cell[at] = gates[f] * cell[at] + gates[i] * gates[g];
                cell_tanh[at] = libm::tanh(cell[at]);
                state[at] = gates[o] * cell_tanh[at];
            }
        }
        let made = stack(input, state);
        let output = &self.output * &made;
        (Step { seen, made, gates, cell_before, cell_tanh }, output)
    }

    /// Runs over `inputs`, a matrix per epoch, from a state of zeros.
    pub(super) fn forward(&self, inputs: &[DMatrix<f64>]) -> Pass {
        let batch = inputs.first().map_or(0, DMatrix::ncols);
        let (mut state, mut cell) = (DMatrix::zeros(self.hidden, batch), DMatrix::zeros(self.hidden, batch));
        let (steps, outputs) = inputs.iter().map(|input| self.step(input, &mut state, &mut cell)).unzip();
        Pass { steps, outputs }
    }

    /// The gradient of a loss, given its derivative by each output of `pass`.
    pub(super) fn backward(&self, pass: &Pass, by_output: &[DMatrix<f64>]) -> Weights {
        let (hidden, batch) = (self.hidden, by_output.first().map_or(0, DMatrix::ncols));
        let mut gradient = Weights::zeros(self.inputs, hidden);
        let output_state = self.output.columns(self.inputs, hidden).transpose();
        let gates_state = self.gates.columns(self.inputs, hidden).transpose();
        let (mut by_state, mut by_cell) = (DMatrix::zeros(hidden, batch), DMatrix::zeros(hidden, batch));
        for (step, by_output) in pass.steps.iter().zip(by_output).rev() {
            gradient.output.gemm(1.0, by_output, &step.made.transpose(), 1.0);
            by_state.gemm(1.0, &output_state, by_output, 1.0);
            let by_gates = step.by_gates(&by_state, &mut by_cell);
            gradient.gates.gemm(1.0, &by_gates, &step.seen.transpose(), 1.0);
            by_state.gemm(1.0, &gates_state, &by_gates, 0.0);
        }
        gradient
    }
}

impl Step {
    /// The derivative by the gates before their sigmoid or tanh. `by_cell` comes in by the cell after, and leaves by the
    /// cell before.
    fn by_gates(&self, by_state: &DMatrix<f64>, by_cell: &mut DMatrix<f64>) -> DMatrix<f64> {
        let (hidden, batch) = by_state.shape();
        let mut by_gates = DMatrix::zeros(GATES * hidden, batch);
        for column in 0..batch {
            for unit in 0..hidden {
                let [i, f, g, o] = [0, 1, 2, 3].map(|gate| (gate * hidden + unit, column));
                let at = (unit, column);
                let (input, forget, candidate, output) = (self.gates[i], self.gates[f], self.gates[g], self.gates[o]);
                let cell_tanh = self.cell_tanh[at];
                let cell = by_cell[at] + by_state[at] * output * (1.0 - cell_tanh * cell_tanh);
                by_gates[i] = cell * candidate * input * (1.0 - input);
                by_gates[f] = cell * self.cell_before[at] * forget * (1.0 - forget);
                by_gates[g] = cell * input * (1.0 - candidate * candidate);
                by_gates[o] = by_state[at] * cell_tanh * output * (1.0 - output);
                by_cell[at] = cell * forget;
            }
        }
        by_gates
    }
}

/// `[input; state; 1]`.
fn stack(input: &DMatrix<f64>, state: &DMatrix<f64>) -> DMatrix<f64> {
    let (inputs, hidden) = (input.nrows(), state.nrows());
    let mut stacked = DMatrix::from_element(inputs + hidden + 1, input.ncols(), 1.0);
    stacked.rows_mut(0, inputs).copy_from(input);
    stacked.rows_mut(inputs, hidden).copy_from(state);
    stacked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(rng: &mut Rng) -> Vec<DMatrix<f64>> {
        (0..5).map(|_| DMatrix::from_fn(2, 3, |_, _| rng.unit() - 0.5)).collect()
    }

    #[test]
    fn begins_as_the_first_input() {
        let mut rng = Rng::seeded(1);
        let inputs = inputs(&mut rng);
        let pass = Weights::random(2, 4, &mut rng).forward(&inputs);
        for (input, output) in inputs.iter().zip(&pass.outputs) {
            assert_eq!(output.row(0), input.row(0));
        }
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let mut rng = Rng::seeded(2);
        let inputs = inputs(&mut rng);
        let mut weights = Weights::random(2, 4, &mut rng);
        weights.iter_mut().for_each(|weight| *weight += rng.unit() - 0.5);
        // The loss is half the sum of the squared outputs, whose derivative by an output is that output.
        let loss = |weights: &Weights| weights.forward(&inputs).outputs.iter().map(|output| output.norm_squared() / 2.0).sum::<f64>();
        let pass = weights.forward(&inputs);
        let gradient = weights.backward(&pass, &pass.outputs);
        let nudge = 1e-5;
        for (index, slope) in gradient.iter().enumerate() {
            let at = |by: f64| {
                let mut moved = weights.clone();
                *moved.iter_mut().nth(index).expect("of the same shape") += by;
                loss(&moved)
            };
            let measured = (at(nudge) - at(-nudge)) / (2.0 * nudge);
            assert!((slope - measured).abs() < 1e-6, "weight {index}: {slope} computed, {measured} measured");
        }
        assert_eq!(gradient.iter().count(), Weights::count(2, 4));
    }
}
