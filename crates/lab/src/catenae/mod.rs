//! The evaluation of Catenae (Liu, Wang and Vlassov, sections III and VII) in virtual time: `rhumb lab catenae-…`.
//!
//! ```text
//!   workload ─▶ clients, in a closed or an open loop ─▶ World of one system ─▶ Run
//!                                                         │ Catenae           │
//!   experiments ─▶ Lab ─▶ Setup ──────────────────────────┤ 2PL, OCC          ▼
//!        └───────────────────────────── Outcome: tables, findings, charts ◀───┘
//! ```
//!
//! All three systems run the same lists of operations on the same machines, in the simulator; one seed decides all. What the paper
//! leaves open is decided in [`parameters`], once for all of them. `docs/lab.md` says what each experiment shows.

pub mod experiments;
pub mod lab;
pub mod load;
pub mod meter;
pub mod parameters;
pub mod run;
pub mod setup;
pub mod workload;

pub use experiments::EXPERIMENTS;
pub use lab::Lab;

use crate::experiment::{Bench, Options};

/// The evaluation.
pub fn evaluation(options: Options) -> Bench<Lab> {
    Bench { name: "catenae", experiments: &EXPERIMENTS, lab: Lab::new(options) }
}
