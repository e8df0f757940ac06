//! Invariant: once the network has healed, transactions commit again, and in the end none is left waiting.
//!
//! Safety is easy for a database that does nothing; this is what such a one fails.

use super::violation::{Anomaly, Violation};
use crate::history::{History, Txn};
use rhumb_core::{Span, Time};

/// How many violations of one kind are printed in full.
const SHOWN_MAX: usize = 5;

/// What is demanded of the transactions invoked after the grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// At least so many committed.
    pub committed_min: usize,
    /// At least so many of a hundred committed.
    pub committed_percent_min: usize,
}

/// Checks that `history`, whose network healed at `healed`, meets `demand` from `grace` after that on, and that no
/// transaction of it is still pending.
///
/// # Errors
/// What is missing, with some of the transactions that failed.
pub fn check(history: &History, healed: Time, grace: Span, demand: Demand) -> Result<(), Violation> {
    let pending: Vec<&Txn> = history.txns().iter().filter(|txn| txn.ended.is_none()).collect();
    if !pending.is_empty() {
        let story = format!("{} transactions have not ended", pending.len());
        return Err(Violation::new(Anomaly::Pending, story, pending.into_iter().take(SHOWN_MAX)));
    }
    let from = healed + grace;
    let (committed, failed): (Vec<&Txn>, Vec<&Txn>) =
        history.txns().iter().filter(|txn| txn.invoked > from).partition(|txn| txn.acknowledged().is_some());
    let all = committed.len() + failed.len();
    if committed.len() < demand.committed_min || committed.len() * 100 < demand.committed_percent_min * all {
        let story = format!(
            "of {all} transactions begun after {from} ({grace} after the network healed) {} committed; at least {} and {} % must",
            committed.len(),
            demand.committed_min,
            demand.committed_percent_min
        );
        return Err(Violation::new(Anomaly::Stalled, story, failed.into_iter().take(SHOWN_MAX)));
    }
    Ok(())
}
