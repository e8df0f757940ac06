//! The next period's load: exponential moving averages with nine smoothing factors, of which the one that has erred least so
//! far speaks (equation 8).
//!
//! Under noise the slowest factor errs least, and after an hour of it would take ten periods to follow a load that has changed for good.
//! So once two periods in a row surprise ([`SURPRISE`](super::SURPRISE)), all averages begin again, with the second: the change may have
//! come in the middle of the first.

use super::estimate::{Errors, Estimate};

/// The factors: `α` = 0.1 to 0.9.
pub const ALPHAS: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/// The forecast of one site's load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    /// By factor, in the order of [`ALPHAS`]: what it expects of the next period, and the sum of its absolute errors so far.
    averages: Option<[Average; ALPHAS.len()]>,
    /// Of what was said.
    errors: Errors,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Average {
    expected: f64,
    deviation: f64,
}

impl Forecast {
    /// A period has ended with this load, a finite number.
    pub fn observe(&mut self, load: f64) {
        let said = self.best().map(|(_, average)| average.expected);
        match (&mut self.averages, said) {
            (Some(averages), Some(said)) => {
                if self.errors.observe(load - said) {
                    averages.iter_mut().for_each(|average| average.expected = load);
                    return;
                }
                for (average, alpha) in averages.iter_mut().zip(ALPHAS) {
                    average.deviation += (load - average.expected).abs();
                    average.expected = alpha * load + (1.0 - alpha) * average.expected;
                }
            }
            _ => {
                self.averages = Some([Average { expected: load, deviation: 0.0 }; ALPHAS.len()]);
                self.errors = Errors::of_first(load);
            }
        }
    }

    /// What the next period is expected to bring; `None` before the first has ended.
    pub fn next(&self) -> Option<Estimate> {
        self.best().map(|(_, average)| Estimate { value: average.expected, error: self.errors.mean() })
    }

    /// The factor that speaks: the one with the lowest mean absolute deviation; the smallest of equals.
    pub fn alpha(&self) -> Option<f64> {
        self.best().map(|(alpha, _)| alpha)
    }

    /// All have seen the same number of periods, so the lowest sum is the lowest mean.
    fn best(&self) -> Option<(f64, Average)> {
        ALPHAS.into_iter().zip(self.averages?).min_by(|one, other| one.1.deviation.total_cmp(&other.1.deviation))
    }
}
