//! Forecasts of demand: what the next epochs of a series will be, so that a site can ask for tokens before it runs out.
//!
//! Every model stands behind [`Forecaster`]: trained offline on a recorded [`Series`], then fed the running one a value at
//! a time. [`Spec`] names the models that there are; [`evaluate`](evaluate::evaluate) and [`Table`] hold them against each
//! other as Samya's Table 4 does.
//!
//! | file | model | forecast |
//! |---|---|---|
//! | `random_walk` | random walk | the last value |
//! | `moving_average` | moving average | the mean of the last few |
//! | `exponential` | exponential smoothing | a mean that forgets at a learnt rate |
//! | `seasonal` | seasonal naive | the value a period ago |
//! | `arima/` | ARIMA | linear in past values and past errors |
//! | `lstm/` | LSTM | a recurrent network over values and their seasons |
//!
//! The same series and the same seed give the same bits on every machine: sums have a fixed order, exponentials come from
//! `libm` and not from the system, and no matrix product is left to a kernel chosen by the processor. Nothing here reads a
//! clock, a file or an entropy source, or starts a thread.

pub mod arima;
pub mod evaluate;
mod exponential;
mod forecaster;
mod format;
mod history;
mod least_squares;
mod load;
pub mod lstm;
mod moving_average;
mod random_walk;
mod seasonal;
pub mod series;
mod shipped;
mod spec;
mod table;
mod window;

pub use arima::{Arima, Order};
pub use evaluate::{Errors, evaluate, walk_forward};
pub use exponential::Exponential;
pub use forecaster::{EPOCHS_MAX, Forecaster, PERIOD_MAX, Progress, TrainError, VALUE_MAX};
pub use format::LoadError;
pub use load::load;
pub use lstm::{Lstm, LstmConfig};
pub use moving_average::MovingAverage;
pub use random_walk::RandomWalk;
pub use seasonal::SeasonalNaive;
pub use series::{Series, SeriesError};
pub use shipped::{SHIPPED, Shipped, shipped};
pub use spec::{Spec, UnknownModel};
pub use table::{PAPER_MAE, Row, Table};
