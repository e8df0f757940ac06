//! What the network is shown of each epoch.
//!
//! ```text
//! [ x(t) | for each period P:  x(t+1−P)  x(t−P)  sin φ  cos φ ]        φ = 2π · (t+1) / P
//! ```
//!
//! The value itself; what followed the same moment a period ago, and what it was then; and the place in the period of the
//! epoch to forecast. A network that unrolls a few hours cannot remember last week: it is told.

use std::f64::consts::TAU;

/// Features per period.
const PER_PERIOD: usize = 4;

/// How many features there are with `periods` periods.
pub(super) fn count(periods: &[usize]) -> usize {
    1 + PER_PERIOD * periods.len()
}

/// How many values before its own an epoch's features take.
pub(super) fn reach(periods: &[usize]) -> usize {
    periods.iter().copied().max().unwrap_or(0)
}

/// The features of the epoch `at` of `values`, whose first value has the position `origin` in the whole series.
pub(super) fn write(periods: &[usize], values: &[f64], at: usize, origin: u64, out: &mut [f64]) {
    out[0] = values[at];
    for (period, out) in periods.iter().zip(out[1..].chunks_exact_mut(PER_PERIOD)) {
        let phase = (origin + at as u64 + 1) % *period as u64;
        let angle = TAU * phase as f64 / *period as f64;
        out.copy_from_slice(&[values[at + 1 - period], values[at - period], libm::sin(angle), libm::cos(angle)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_shown_with_the_same_moment_a_period_ago() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        let mut out = [0.0; 5];
        write(&[4], &values, 6, 100, &mut out);
        assert_eq!(out[..3], [6.0, 3.0, 2.0]);
        // Epoch 107 is to be forecast: three quarters into its period.
        assert!((out[3] + 1.0).abs() < 1e-12 && out[4].abs() < 1e-12, "{out:?}");
    }
}
