//! Benchmarks: load against a running cluster, over its network interfaces.
//!
//! ```text
//! Load ──▶ init ──▶ tables + ledger of their sizes
//!                      │
//! Run ───▶ run ────────┴──▶ driver: regions × clients ──▶ terminal.draw / terminal.attempt ──▶ Report
//! Kind ──▶ check ─────────▶ consistency conditions ──▶ CheckReport
//! ```
//!
//! Clients repeat what certainly left no trace, within bounds, and never what may have committed. A workload never measures; the driver never knows a table.
//! Every latency is held against the physical floor of the network. [`workloads::quota`] does the same to quotas, over the Redis protocol.
//!
//! The entry points are awaited where they are called (their futures are not `Send`); the clients of a run are tasks of the surrounding runtime.
//!
//! | module | |
//! |---|---|
//! | [`driver`] | clients in every region, in a closed or an open loop; the window of a run; whoever watches |
//! | [`client`] | sessions of PostgreSQL, which know an unknown outcome from a failure; connections of Redis |
//! | [`tables`] | a bounded loader, the ledger of what it loaded, consistency conditions |
//! | [`transactions`] | SQL transactions as load |
//! | [`report`] | meters, and what is shown of them |
//! | [`workloads`] | YCSB, TPC-C, a bank, single statements, quotas |

pub mod client;
pub mod driver;
mod error;
mod lock;
mod progress;
pub mod report;
mod stages;
pub mod tables;
pub mod transactions;
pub mod workloads;

pub use error::BenchError;
pub use progress::{Progress, Pulse, Silent, Unit};
pub use stages::{Kind, Load, Run, check, init, run};
