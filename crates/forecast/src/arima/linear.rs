//! The linear part of ARIMA: the next difference from the last differences and errors.

use crate::forecaster::VALUE_MAX;
use crate::least_squares::LeastSquares;
use serde::{Deserialize, Serialize};

/// A factor for the value `lag` epochs ago.
type Term = (usize, f64);

/// `intercept + Σ factor · value[−lag] + Σ factor · error[−lag]`. What lies before the first value counts as zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Linear {
    intercept: f64,
    autoregressive: Vec<Term>,
    moving: Vec<Term>,
}

fn at(values: &[f64], lag: usize) -> f64 {
    values.len().checked_sub(lag).map_or(0.0, |index| values[index])
}

fn sum(terms: &[Term], values: &[f64]) -> f64 {
    terms.iter().map(|(lag, factor)| factor * at(values, *lag)).sum()
}

impl Linear {
    /// What is always zero.
    pub(super) fn zero() -> Linear {
        Linear { intercept: 0.0, autoregressive: Vec::new(), moving: Vec::new() }
    }

    /// The least squares fit of each of `values` to those before it and to the `errors` before it, at the given lags.
    pub(super) fn fit(values: &[f64], errors: &[f64], autoregressive: &[usize], moving: &[usize]) -> Linear {
        let first = autoregressive.iter().chain(moving).copied().max().unwrap_or(0);
        let mut fit = LeastSquares::new(1 + autoregressive.len() + moving.len());
        let mut row = Vec::new();
        for now in first..values.len() {
            row.clear();
            row.push(1.0);
            row.extend(autoregressive.iter().map(|lag| values[now - lag]));
            row.extend(moving.iter().map(|lag| errors[now - lag]));
            fit.add(&row, values[now]);
        }
        let Some(solution) = fit.solve() else { return Linear::zero() };
        let (own, foreign) = solution[1..].split_at(autoregressive.len());
        let terms = |lags: &[usize], factors: &[f64]| lags.iter().copied().zip(factors.iter().copied()).collect();
        Linear { intercept: solution[0], autoregressive: terms(autoregressive, own), moving: terms(moving, foreign) }
    }

    /// The same for values `scale` times as large.
    pub(super) fn scaled(self, scale: f64) -> Linear {
        Linear { intercept: self.intercept * scale, ..self }
    }

    /// The value expected after `values`, of which the forecasts erred by `errors`.
    pub(super) fn next(&self, values: &[f64], errors: &[f64]) -> f64 {
        self.intercept + sum(&self.autoregressive, values) + sum(&self.moving, errors)
    }

    /// The errors of one-step forecasts along `values`.
    pub(super) fn follow(&self, values: &[f64]) -> Vec<f64> {
        let mut errors = Vec::with_capacity(values.len());
        for now in 0..values.len() {
            errors.push(values[now] - self.next(&values[..now], &errors));
        }
        errors
    }

    /// Whether decoded terms keep all sums finite and reach back no further than `lags`.
    pub(super) fn is_sound(&self, lags: usize) -> bool {
        let mut terms = self.autoregressive.iter().chain(&self.moving);
        self.intercept.abs() <= VALUE_MAX && terms.all(|(lag, factor)| (1..=lags).contains(lag) && factor.abs() <= VALUE_MAX)
    }
}
