//! Linear least squares, by the normal equations.
//!
//! Rows are added one by one and only their products are kept, so that memory is the square of the number of coefficients
//! however long the series. The equations are as ill-conditioned as regressors are alike: callers scale them to about 1,
//! and a small ridge keeps the solution finite where regressors coincide (a constant series) or vanish.

use nalgebra::{DMatrix, DVector};

/// The ridge, as a share of the mean of the diagonal.
const RIDGE: f64 = 1e-10;

/// The equations of a least squares fit.
pub(crate) struct LeastSquares {
    products: DMatrix<f64>,
    targets: DVector<f64>,
}

impl LeastSquares {
    /// A fit of `coefficients` coefficients.
    pub(crate) fn new(coefficients: usize) -> LeastSquares {
        LeastSquares { products: DMatrix::zeros(coefficients, coefficients), targets: DVector::zeros(coefficients) }
    }

    /// Asks that the coefficients times `row` be `target`.
    pub(crate) fn add(&mut self, row: &[f64], target: f64) {
        let row = nalgebra::DVectorView::from_slice(row, row.len());
        self.products.ger(1.0, &row, &row, 1.0);
        self.targets.axpy(target, &row, 1.0);
    }

    /// The coefficients of the least sum of squares; `None` if there is none that is finite.
    pub(crate) fn solve(mut self) -> Option<Vec<f64>> {
        let coefficients = self.targets.len();
        let ridge = (self.products.trace() / coefficients as f64 * RIDGE).max(f64::MIN_POSITIVE.sqrt());
        for index in 0..coefficients {
            self.products[(index, index)] += ridge;
        }
        let solution = self.products.cholesky()?.solve(&self.targets);
        solution.iter().all(|value| value.is_finite()).then(|| solution.as_slice().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_line_through_points() {
        let mut fit = LeastSquares::new(2);
        for x in 0..10 {
            fit.add(&[1.0, f64::from(x)], 3.0 - 2.0 * f64::from(x));
        }
        let line = fit.solve().expect("two unknowns, ten points");
        assert!((line[0] - 3.0).abs() < 1e-6 && (line[1] + 2.0).abs() < 1e-6, "{line:?}");
    }

    #[test]
    fn shares_out_what_coinciding_regressors_explain() {
        let mut fit = LeastSquares::new(2);
        for x in 1..10 {
            fit.add(&[f64::from(x), f64::from(x)], f64::from(x));
        }
        let halves = fit.solve().expect("the ridge decides");
        assert!(halves.iter().all(|half| (half - 0.5).abs() < 1e-4), "{halves:?}");
    }

    #[test]
    fn nothing_known_is_nothing_explained() {
        assert_eq!(LeastSquares::new(2).solve(), Some(vec![0.0, 0.0]));
    }
}
