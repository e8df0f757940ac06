//! Which sites a transaction asks: quorums that follow load and distance, and the quorum systems that they are compared with.
//!
//! Everything here is a function of what was measured; what is done with it is the rest of the protocol. Source: Fetai, Stiemer
//! and Schuldt, "QuAD: A Quorum Protocol for Adaptive Data Management in the Cloud", section III; equations by its numbers.
//!
//! ```text
//!   transactions, capacity ──▶ load ──▶ forecast (8) ──┐
//!       or latency, load ──▶ predicted latency ────────┼─▶ measures ──▶ scores (2, 3) ──▶ cores ──▶ assignment (4–7)
//!                              round-trip times ───────┘                    │                          │
//!                                                                           └──▶ gain (9, 10) ◀── quorums of all sites
//! ```
//!
//! Two sites that fill in the same measures get the same configuration, bit for bit: sums have a fixed order, exponentials come
//! from `libm`, ties go to the lower site. The intersection property is that of [`Quorums`]: whatever is up, every read quorum meets
//! every write quorum, and two write quorums meet.
//!
//! | file | role |
//! |---|---|
//! | `measures.rs` | what is known of the sites |
//! | `forecast.rs`, `latency.rs` | the next period's load; the latency to expect of it |
//! | `estimate.rs`, `distance.rs` | what an expectation may be out by; what is noise and what a lasting change |
//! | `scores.rs` | how strong a site is, which are cores |
//! | `assignment.rs` | which majority of the cores a slave is assigned to |
//! | `system.rs` | a configuration's quorums, with what is up |
//! | `tree.rs`, `grid.rs` | quorums over a logical tree and over a grid |
//! | `policy.rs` | from measures to quorums, by any of the quorum systems |
//! | `kappa.rs` | how many cores, and why |
//! | `gain.rs` | whether new quorums are worth their reconciliation |

mod assignment;
mod distance;
mod estimate;
mod forecast;
mod gain;
mod grid;
mod kappa;
mod latency;
mod measures;
mod policy;
mod scores;
mod system;
mod tree;

#[cfg(test)]
mod tests;

pub use assignment::{CostWeights, assign, majorities};
pub use distance::{DISTANCE_MICROS, DISTANCE_PERCENT, Distance, HeardDistance};
pub use estimate::{Estimate, SURPRISE};
pub use forecast::{ALPHAS, Forecast};
pub use gain::{Verdict, asked_more_and_less, mean_score, reconciliation_cost, weigh};
pub use kappa::{Demand, Kappa, Reason, kappa, kappa_between};
pub use latency::{LATENCY_WINDOW, LatencyModel};
pub use measures::{MeasureError, Measures};
pub use policy::{Policy, Settings};
pub use scores::{ScoreWeights, Scoring, scores, strongest};
pub use system::{Choice, Quorums};

/// Cores at the most: a slave chooses among all their majorities, 462 for eleven.
pub const CORES_MAX: usize = 11;
/// Sites that quorums are built from at the most.
pub const SITES_MAX: usize = 64;

/// The smallest number that is more than half of `of`.
pub fn majority(of: usize) -> usize {
    of / 2 + 1
}
