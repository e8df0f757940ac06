//! The evaluation of QuAD (Fetai, Stiemer and Schuldt, section V) in virtual time: `rhumb lab quad-…`.
//!
//! ```text
//!   System ─▶ Quorums ─┐
//!   Cluster ───────────┼─▶ Setup ─▶ World of the product's own sites, workers at each ─▶ Run
//!   mix, workers ──────┘                                                                  │
//!   Course: workers whose numbers change, over periods ─▶ Passed ──────────────────────────┤
//!   experiments ─▶ Outcome: tables, findings, charts ◀────────────────────────────────────┘
//! ```
//!
//! A site has a processor: clients' requests, messages and rows wait for it in one queue. So a site with many clients answers late, and
//! so does whoever needs it for a quorum. What the paper leaves open is decided in [`parameters`], once for all systems.
//! `docs/lab.md` says what each experiment shows.

pub mod client;
pub mod cluster;
pub mod course;
pub mod experiments;
pub mod lab;
pub mod meter;
pub mod parameters;
pub mod run;
pub mod system;
mod transactions;

pub use experiments::EXPERIMENTS;
pub use lab::Lab;

use crate::experiment::{Bench, Options};

/// The evaluation.
pub fn evaluation(options: Options) -> Bench<Lab> {
    Bench { name: "quad", experiments: &EXPERIMENTS, lab: Lab::new(options) }
}
