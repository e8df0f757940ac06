//! What clients were told, so that what the database holds can be compared with it.
//!
//! Each client of SQL raises a counter of its own in every transaction that it commits. Nobody else writes that counter, so what it may be
//! is known at all times: every acknowledged commit counts, none that failed does, one whose outcome is unknown may.

use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The journal of one client.
#[derive(Debug, Default)]
pub struct Journal {
    /// The protocol of the database.
    pub protocol: &'static str,
    /// The client's region.
    pub region: usize,
    seen: Mutex<Seen>,
}

/// What came of a client's transactions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// The counter is at least this.
    least: i64,
    /// And at most that.
    most: i64,
    /// Transactions acknowledged.
    pub committed: u64,
    /// Given up for others.
    pub conflicts: u64,
    /// Not served.
    pub unavailable: u64,
    /// Nobody knows.
    pub unknown: u64,
}

impl Journal {
    /// An empty one.
    pub fn new(protocol: &'static str, region: usize) -> Journal {
        Journal { protocol, region, seen: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transaction is sent.
    pub fn begin(&self) {
        self.lock().most += 1;
    }

    /// It is acknowledged, and had read the counter as `before` if it did. An error, if it cannot have been that.
    pub fn acknowledged(&self, before: Option<i64>) -> Result<(), String> {
        let mut seen = self.lock();
        seen.committed += 1;
        seen.least += 1;
        let Some(before) = before else { return Ok(()) };
        if !(seen.least..=seen.most).contains(&(before + 1)) {
            return Err(format!("read its counter as {before}, which may be {} to {}", seen.least - 1, seen.most - 1));
        }
        // One before it whose outcome was unknown is in it, or never will be.
        (seen.least, seen.most) = (before + 1, before + 1);
        Ok(())
    }

    /// It left no trace: another's was first, or it was not served.
    pub fn failed(&self, conflict: bool) {
        let mut seen = self.lock();
        seen.most -= 1;
        if conflict { seen.conflicts += 1 } else { seen.unavailable += 1 }
    }

    /// Nobody knows what became of it.
    pub fn unknown(&self) {
        self.lock().unknown += 1;
    }

    /// What the counter may be.
    pub fn range(&self) -> RangeInclusive<i64> {
        let seen = self.lock();
        seen.least..=seen.most
    }

    /// What came of all so far.
    pub fn seen(&self) -> Seen {
        *self.lock()
    }
}
