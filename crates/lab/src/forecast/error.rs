//! What ends a training or a comparison, told so that the reader knows what to do next.

use rhumb_display::plot::PlotError;
use rhumb_forecast::lstm::PASSES_MAX;
use rhumb_forecast::{PERIOD_MAX, SeriesError, TrainError, UnknownModel};
use std::io;
use thiserror::Error;

/// What ends a training or a comparison.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ForecastError {
    #[error("{path}: cannot read the series: {reason}")]
    Read { path: String, reason: io::Error },
    #[error("{path}: larger than {max} bytes; cut the series or make its epochs longer")]
    TooLarge { path: String, max: u64 },
    #[error("a period of {found} epochs: it must be 2 to {PERIOD_MAX}")]
    Period { found: usize },
    #[error("{found} passes: the training of an LSTM takes 1 to {PASSES_MAX}")]
    Passes { found: usize },
    #[error("the model `{model}` is not trained in passes; only `lstm` is")]
    NoPasses { model: String },
    #[error("{name}: {error}")]
    Train { name: String, error: TrainError },
    #[error(transparent)]
    Series(#[from] SeriesError),
    #[error(transparent)]
    Model(#[from] UnknownModel),
    #[error(transparent)]
    Plot(#[from] PlotError),
}

impl ForecastError {
    /// Whether something was asked for that cannot be, whatever the series.
    pub fn is_usage(&self) -> bool {
        use ForecastError::{Model, NoPasses, Passes, Period};
        matches!(self, Period { .. } | Passes { .. } | NoPasses { .. } | Model(_))
    }
}
