//! Forecasts of demand: a model trained on a recorded series, and all models side by side, as in Samya's Table 4.
//!
//! | file | |
//! |---|---|
//! | `demand` | the series: a shipped one, or a file |
//! | `train` | a model for a site, with what its error would have been |
//! | `compare` | the table of models, as text and CSV |
//! | `plots` | the same as plots |
//!
//! Models are always judged on the last fifth of a series, which their training does not see.

mod compare;
mod demand;
mod error;
mod plots;
#[cfg(test)]
mod tests;
mod train;

pub use compare::{Comparison, Measured, compare};
pub use demand::Demand;
pub use error::ForecastError;
pub use rhumb_forecast::{Progress, SHIPPED, Spec};
pub use train::{Choice, Trained, train};

/// The share of a series that models are trained on before they are judged by the rest.
pub const TRAINED_SHARE: f64 = 0.8;

/// Is told how far the work is.
pub trait Watch {
    /// Work on `what` begins, the part number `part` of `parts`.
    fn begin(&mut self, what: &str, part: usize, parts: usize);
    /// A pass of a training is done.
    fn passed(&mut self, progress: Progress);
}

/// Nobody watches.
impl Watch for () {
    fn begin(&mut self, _: &str, _: usize, _: usize) {}
    fn passed(&mut self, _: Progress) {}
}
