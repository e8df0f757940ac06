//! Invariant: no commit is stamped far ahead of the time at which it ended. One wrong clock does not take the others along.
//!
//! Timestamps may run ahead of true time by what clocks may differ, and by what a site puts aside on disk ahead of its clock; nothing
//! adds up over a run.

use super::violation::{Anomaly, Violation};
use crate::clock::CLOCK_ORIGIN;
use crate::history::{History, Outcome};
use rhumb_core::{Span, Time, Timestamp};

/// How far ahead of true time a commit may be stamped: the maximum offset of clocks twice, and some seconds that sites put aside.
pub const AHEAD_MAX: Span = Span::from_secs(20);

/// Checks every commit of `history` that was acknowledged.
///
/// # Errors
/// The first commit that is stamped too far ahead.
pub fn check(history: &History) -> Result<(), Violation> {
    for txn in history.txns() {
        let Some((ended, Outcome::Committed { at })) = txn.ended else { continue };
        let latest = Timestamp::from_time(CLOCK_ORIGIN + ended.since(Time::ZERO)).plus(AHEAD_MAX);
        if at > latest {
            let story = format!("a commit that ended at {ended} is stamped {at}, more than {AHEAD_MAX} ahead");
            return Err(Violation::new(Anomaly::ClockRanAway, story, [txn]));
        }
    }
    Ok(())
}
