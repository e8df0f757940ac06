//! The load driver: clients in every region at work on one workload, in a closed or an open loop.
//!
//! ```text
//!   pace ─▶ when ─▶ Turn: what is due ─▶ Client ─▶ operations, over whatever protocol
//!                     │                     │
//!                   Window ─▶ does it count? ─▶ Meter, by region and kind ─▶ Results
//! ```
//!
//! In the closed loop a client begins its next operation when the last one ended. In the open loop operations fall due at random moments at a given rate,
//! whether or not the servers keep up; latency then counts from the moment an operation was due, so a stall shows in full. Free clients pull the next due
//! moment, so no queue grows.
//!
//! What an operation is, the [`Workload`] knows: SQL transactions and operations on quotas are driven alike, and so would be any call that is sent and
//! answered.

mod arrivals;
mod client_slot;
mod course;
mod meter;
mod options;
mod pace;
mod results;
mod run;
#[cfg(test)]
mod tests;
mod turn;
mod window;
mod workload;

pub use arrivals::exponential;
pub use client_slot::ClientSlot;
pub use meter::Meter;
pub use options::DriverOptions;
pub use pace::Pace;
pub use results::{RegionResults, Results};
pub use run::run;
pub use turn::Turn;
pub use window::{Until, Window};
pub use workload::{Client, Workload};
