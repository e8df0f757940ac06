//! Why a chart cannot be drawn.

use super::canvas::SERIES_MAX;
use thiserror::Error;

/// The largest value that is shown, either way: spans of such values stay finite.
pub const VALUE_MAX: f64 = 1e15;

/// Why a chart cannot be drawn. Points count from 1.
#[derive(Debug, Error, PartialEq)]
#[allow(missing_docs)]
pub enum PlotError {
    #[error("the plot `{title}` has nothing to show; give it a series with a point")]
    Empty { title: String },
    #[error("`{series}` has no points; leave it out of the plot")]
    EmptySeries { series: String },
    #[error("`{series}`, point {point}: {value} is not a number of at most {VALUE_MAX:e}")]
    NotANumber { series: String, point: usize, value: f64 },
    #[error("`{series}`, point {point}: {value} has no place on a logarithmic axis; values there are above zero")]
    NotPositive { series: String, point: usize, value: f64 },
    #[error("`{series}` has {found} bars, but there are {groups} groups; give it one for each")]
    Groups { series: String, found: usize, groups: usize },
    #[error("`{series}`, point {point}: {value} is not on the globe; expected degrees from -{most} to {most}")]
    OffTheGlobe { series: String, point: usize, value: f64, most: f64 },
    #[error("{found} series in one plot; colours can be told apart up to {SERIES_MAX}")]
    TooManySeries { found: usize },
}
