//! Invariant: once the network has healed, transactions commit again, and in the end none is left waiting.
//!
//! Safety is easy for a database that does nothing; this is what such a one fails.

use super::violation::{Anomaly, Violation};
use crate::history::{History, Mode, Txn};
use rhumb_core::{RegionId, Span, Time};

/// A region in which fewer transactions were begun may have had none to commit by chance.
const TRIED_MIN: usize = 12;
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

/// Checks that in each of `regions` some transaction that may write, begun after `from`, committed: whatever is down or cut then, no
/// region is to stand still.
///
/// # Errors
/// The first region in which none did, with some of its transactions that failed.
pub fn check_each(history: &History, regions: &[RegionId], from: Time) -> Result<(), Violation> {
    for &region in regions {
        let writes = |txn: &&Txn| txn.region == region && txn.invoked > from && txn.mode == Mode::ReadWrite;
        let (committed, failed): (Vec<&Txn>, Vec<&Txn>) =
            history.txns().iter().filter(writes).partition(|txn| txn.acknowledged().is_some());
        if committed.is_empty() && failed.len() >= TRIED_MIN {
            let story =
                format!("none of the {} transactions of region {region} that began after {from} and may write committed", failed.len());
            return Err(Violation::new(Anomaly::Stalled, story, failed.into_iter().take(SHOWN_MAX)));
        }
    }
    Ok(())
}
