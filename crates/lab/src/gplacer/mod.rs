//! The evaluation of GPlacer (EDBT 2018, figures 2 to 12) in virtual time: `rhumb lab gplacer-…`.
//!
//! ```text
//!   T-YCSB ─▶ clients ─▶ World of replicated_commit::Site ─▶ Meter
//!                          ▲                                  │
//!   planner ─▶ placement ──┘                                  ▼
//!      └─▶ what it expects ─▶ experiments ─▶ Outcome: tables, findings, charts
//! ```
//!
//! Transactions run on the product's own sites, in the two rounds of the paper's model protocol; placements and coordinators
//! come from the product's own planner. One seed decides all but what the planner's searches take on this machine (Figure 10).
//! What the paper leaves open is decided in [`parameters`]. `docs/lab.md` says what each experiment shows.

mod client;
pub mod experiments;
pub mod form;
pub mod idle;
pub mod instances;
pub mod lab;
pub mod meter;
pub mod parameters;
pub mod placed;
pub mod run;
mod transactions;

pub use experiments::EXPERIMENTS;
pub use lab::Lab;

use crate::experiment::{Bench, Options};

/// The evaluation.
pub fn evaluation(options: Options) -> Bench<Lab> {
    Bench { name: "gplacer", experiments: &EXPERIMENTS, lab: Lab::new(options) }
}
