//! Workloads and experiments of Rhumb.
//!
//! Four workloads drive any server that speaks the PostgreSQL protocol: [`ycsb`], [`tpcc`], [`bank`] and [`statements`]. [`mod@bench`] is what they share: sessions that know
//! an unknown outcome from a failure, a bounded loader, a closed and an open loop, and a report that holds every latency against the physical floor of the
//! network. A workload never measures; the driver never knows a table.
//!
//! [`quota`] does the same to quotas, over the Redis protocol. [`samya`], [`gplacer`], [`catenae`] and [`quad`] repeat published evaluations in virtual time, with what every [`experiment`] has. [`mod@forecast`] trains models of demand and sets them side by side. [`plot`] draws what any of them measured.

pub mod bank;
pub mod bench;
pub mod catenae;
pub mod experiment;
pub mod forecast;
pub mod gplacer;
mod output;
pub mod plot;
pub mod quad;
pub mod quota;
pub mod samya;
pub mod statements;
pub mod tpcc;
pub mod ycsb;

pub use output::Output;
