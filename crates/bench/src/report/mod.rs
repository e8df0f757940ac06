//! What a run measured: counted by meters, shown to people and as JSON.

mod aborts;
mod cells;
mod comparison;
mod conditions;
mod kind;
mod latencies;
mod meter;
mod percentiles;
mod prediction;
mod region;
mod run;
mod statement;
mod yardstick;

pub use aborts::AbortReport;
pub(crate) use cells::{NONE, millis, rate};
pub use comparison::Comparison;
pub use conditions::Conditions;
pub use kind::KindReport;
pub use latencies::Latencies;
pub use meter::Meter;
pub use percentiles::Percentiles;
pub use prediction::Prediction;
pub use region::RegionReport;
pub use run::Report;
pub use statement::StatementReport;
pub use yardstick::{Timed, Yardstick};
