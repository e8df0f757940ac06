//! What can be run: four workloads of SQL transactions, and one of quotas.

pub mod bank;
pub mod quota;
pub mod statements;
pub mod tpcc;
pub mod ycsb;
