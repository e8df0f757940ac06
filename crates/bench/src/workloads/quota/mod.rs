//! A load on quotas, over the Redis protocol: `rhumb bench … quota`.
//!
//! ```text
//!   mix ─▶ what is wanted next ─┐
//!   pace ─▶ when ───────────────┴▶ client: ACQUIRE, RELEASE, pipelined ─▶ site of its region
//!                                     └▶ meter ─▶ report, by region
//! ```
//!
//! Clients of a region share what they hold: any of them releases what another acquired. Nothing is tried again, so that
//! every answer counts once. At the end of a run clients give back what they hold.

mod client;
mod meter;
mod mix;
mod places;
mod redistributions;
mod report;
mod run;
mod stages;
pub mod trace;
mod wants;

pub use meter::Percentiles;
pub use mix::Mix;
pub use report::Report;
pub use run::{RunOptions, run};
pub use stages::{InitOptions, check, init};
