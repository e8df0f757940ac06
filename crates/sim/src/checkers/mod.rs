//! The checkers: from what clients saw, decide whether the database kept its promises. One file per invariant. Each
//! scenario calls those that concern it, where it judges a run.
//!
//! | file | invariant | judged from |
//! |---|---|---|
//! | [`strict_serializability`] | some order of the transactions that happened, true to real time, explains every read | the history |
//! | [`no_phantom`] | a row absent from a scan was not there yet (or no more) in that order | the history |
//! | [`no_lost_write`] | what was acknowledged is there at the end; what was aborted is not | the history, with final reads |
//! | [`stale_reads`] | a read as of `t` returns the newest versions committed at or below `t` | the history |
//! | [`progress`] | once healed, transactions commit and none waits for ever | the history |
//! | [`bounded_clocks`] | no commit is stamped far ahead of its time | the history |
//! | [`convergence`] | once healed and settled, all regions hold the same rows | the regions' dumps |
//!
//! Each checker is a pure function and returns the first counterexample as a [`Violation`]. The first four stand on one
//! reading of the history, in layers:
//!
//! ```text
//!   footprint     one transaction: what it wrote, what it read that others wrote
//!   observations  all of them: which of the unknown ones happened, who wrote what was read
//!   versions      per key: the order of its versions, by commit timestamp
//!   dependencies  edges ww, wr, rw and real time, in linear number
//!   graph         strongly connected components, short cycles
//! ```
//!
//! The method is that of Elle (Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB
//! 2020), the names of the anomalies those of Adya ("Weak Consistency", MIT 1999). An *unknown* transaction happened if somebody
//! saw a write of it; then it is held to all rules save that nothing has to come after it in real time. If nobody saw any,
//! leaving it out explains as much as keeping it, so it is left out.

pub mod bounded_clocks;
pub mod convergence;
mod counterexample;
mod dependencies;
mod footprint;
mod graph;
mod keys;
pub mod no_lost_write;
pub mod no_phantom;
mod observations;
pub mod progress;
pub mod stale_reads;
pub mod strict_serializability;
mod versions;
mod violation;

pub use violation::{Anomaly, Violation};

#[cfg(test)]
mod tests;
