//! Differences of a series, and their undoing.
//!
//! `(1 − B)^d (1 − B^s)` is one polynomial in the lag B with a leading 1: a difference is the value less what the other
//! terms make of the values before it, and undoing it is adding that again.

use super::Order;

/// The polynomial of a difference, but for its leading 1: lags and what is taken away per value at that lag.
pub(super) struct Difference {
    terms: Vec<(usize, f64)>,
}

impl Difference {
    /// The difference that a model of `order` takes.
    pub(super) fn of(order: Order) -> Difference {
        let mut polynomial = vec![(0, 1.0)];
        let lags = std::iter::repeat_n(1, order.d).chain(order.season);
        for lag in lags {
            let shifted: Vec<(usize, f64)> = polynomial.iter().map(|(at, factor)| (at + lag, -factor)).collect();
            polynomial.extend(shifted);
        }
        Difference { terms: polynomial.into_iter().skip(1).map(|(lag, factor)| (lag, -factor)).collect() }
    }

    /// How many values before the current one it takes.
    pub(super) fn reach(&self) -> usize {
        self.terms.iter().map(|(lag, _)| *lag).max().unwrap_or(0)
    }

    /// What is taken away from the value that follows `values`; `None` if these are too few.
    pub(super) fn removed(&self, values: &[f64]) -> Option<f64> {
        (values.len() >= self.reach()).then(|| self.terms.iter().map(|(lag, factor)| factor * values[values.len() - lag]).sum())
    }

    /// The differences of a whole series, which are `reach` fewer than its values.
    pub(super) fn all(&self, series: &[f64]) -> Vec<f64> {
        (0..series.len()).filter_map(|at| self.removed(&series[..at]).map(|removed| series[at] - removed)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(d: usize, season: Option<usize>, series: &[f64]) -> Vec<f64> {
        Difference::of(Order { p: 0, d, q: 0, season }).all(series)
    }

    #[test]
    fn each_difference_takes_one_degree_of_a_polynomial() {
        let squares = [0.0, 1.0, 4.0, 9.0, 16.0];
        assert_eq!(differences(0, None, &squares), squares);
        assert_eq!(differences(1, None, &squares), [1.0, 3.0, 5.0, 7.0]);
        assert_eq!(differences(2, None, &squares), [2.0, 2.0, 2.0]);
    }

    #[test]
    fn a_seasonal_difference_takes_the_season() {
        let rising = [0.0, 5.0, 1.0, 10.0, 15.0, 11.0];
        assert_eq!(differences(0, Some(3), &rising), [10.0, 10.0, 10.0]);
        assert_eq!(differences(1, Some(3), &rising), [0.0, 0.0]);
    }
}
