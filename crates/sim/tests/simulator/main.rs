//! The simulator, and every protocol in it: scenarios, seeds, latencies, planted bugs.
//!
//! One program of all of them: apart, each would compile the worlds of its protocols anew.

mod catenae;
mod catenae_away;
mod catenae_clocks;
mod catenae_latency;
mod catenae_replication;
mod catenae_scenarios;
mod catenae_takeover;
mod latency;
mod paxos_commit;
mod planted;
mod quad;
mod quad_latency;
mod quad_moves;
mod quad_scenarios;
mod quota_counts;
mod replicated_commit;
mod replicated_log;
mod samya;
mod snapshots;
mod support;
mod toy;
mod world;
