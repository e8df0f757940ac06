//! Load of SQL transactions: workloads draw and attempt them, clients repeat what left no trace.

mod client;
mod run;
mod workload;

pub use run::{RunOptions, run};
pub use workload::{Drawn, Seat, Terminal, Verdict, Workload};
