//! The deterministic simulator of Rhumb, its faults and its checkers.
//!
//! A [`World`] drives actors by their contract ([`rhumb_core::actor`]) in virtual time: sites with disks and clocks of their
//! own, a wide area between them, clients, and [`Fault`]s that strike by script or by a [`FaultPlan`] drawn from a seed.
//! One seed decides all: two runs have the same [trace](World::trace), byte by byte. A [`Scenario`] puts a protocol, a
//! workload, faults and checks together, and [`run_seeds`] runs it many times.
//!
//! ```text
//!   scenario ── World ── schedule (what happens when)
//!               │   ├─── sites: actor · store · disk queue · clock
//!               │   ├─── network: delays, losses, cuts
//!               │   └─── clients ──→ history ──→ checkers
//!               └─────── observers: invariants after each event
//! ```

pub mod catenae;
pub mod checkers;
pub mod history;
mod interactive;
pub mod kit;
pub mod paxos_commit;
pub mod quad;
pub mod replicated_commit;
pub mod replicated_log;
pub mod samya;

mod client;
mod clock;
mod config;
mod cost;
mod disk;
mod doom;
mod error;
mod fault;
mod network;
mod observers;
mod place;
mod plan;
mod planted;
mod recorded;
mod runner;
mod schedule;
mod trace;
mod world;

pub use client::{ClientEvent, ClientProgram, Next, Reply};
pub use clock::{CLOCK_ORIGIN, ClockSkew};
pub use config::{Config, Costs, EVENTS_MAX, LocalDelays, STEP_MAX};
pub use error::SimError;
pub use fault::{Fault, Replacement};
pub use network::{LinkFaults, TOO_LARGE};
pub use place::{Links, Place};
pub use plan::{FaultPlan, FaultRates};
pub use planted::Planted;
pub use runner::{Progress, Report, Scenario, all_cores, run_seed, run_seeds, trace_seed};
pub use world::{Observer, REFUSED_AFTER, World};
