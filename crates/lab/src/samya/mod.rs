//! The evaluation of Samya (ICDE 2021, section 5) in virtual time: `rhumb lab samya-…`.
//!
//! ```text
//!   series ─▶ demand, phase-shifted ─▶ clients ─▶ World of one system ─▶ meter
//!                                                   │ Samya · baselines      │
//!   experiments ─▶ Lab ─▶ Setup ────────────────────┘                        ▼
//!        └───────────────────────────── Outcome: tables, findings, charts ◀── Run
//! ```
//!
//! Each table and figure is an experiment of its own ([`EXPERIMENTS`]); all run the same product code, in the simulator,
//! and one seed decides all. What the paper leaves open is decided in [`parameters`], once for all systems.
//! `docs/lab.md` says what each experiment shows.

pub mod baselines;
mod client;
pub mod experiments;
pub mod lab;
pub mod level;
pub mod load;
pub mod meter;
pub mod parameters;
pub mod pool;
pub mod prediction;
pub mod setup;
pub mod system;

pub use experiments::EXPERIMENTS;
pub use lab::Lab;

use crate::experiment::{Bench, Options};

/// The evaluation, whose sites know of the demand to come that the next epoch is like the last.
pub fn evaluation(options: Options) -> Bench<Lab> {
    Bench { name: "samya", experiments: &EXPERIMENTS, lab: Lab::new(options, None) }
}
