//! SQL transactions as load: workloads draw them, clients attempt them until they are decided.

mod client;
mod places;
mod run;
mod violations;
mod workload;

pub use run::{RunOptions, run};
pub use workload::{Drawn, Terminal, Transactions, Verdict};
