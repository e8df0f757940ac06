//! What a run measured: counted by meters, shown to people and as JSON.

mod meter;
mod prediction;
mod run;
mod yardstick;

pub use meter::Meter;
pub use prediction::{Comparison, Prediction};
pub use run::{AbortReport, KindReport, Percentiles, RegionReport, Report};
pub(crate) use run::{NONE, millis, rate};
pub use yardstick::{StatementReport, Timed, Yardstick};
