//! What every experiment of a published evaluation has, whatever it measures.
//!
//! ```text
//!   Options ──▶ laboratory ──▶ Experiment ──▶ Outcome: tables, findings, charts ──▶ files
//!               (runs each        │
//!                setup once)      └──▶ Progress
//! ```
//!
//! An evaluation has a laboratory of its own, which knows how its setups are run and keeps what they came to: experiments
//! share runs. The command line sees all evaluations alike, by the trait [`Evaluation`].

mod cells;
mod chart;
mod evaluation;
mod files;
mod outcome;
mod progress;
mod run_cache;

pub use cells::{one, percent, ratio};
pub use chart::{Chart, Series, Shape};
pub use evaluation::{Bench, Evaluation, Experiment, Failure, Options};
pub use files::File;
pub use outcome::{Finding, Outcome, Sheet};
pub use progress::{Progress, Silent};
pub use run_cache::RunCache;
