//! What is counted and timed during a run, by region.

use super::parameters::{OPERATIONS, REGIONS};
use crate::experiment::ratio;
use rhumb_core::Span;

/// The clients of one region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions committed.
    pub committed: u64,
    /// Transactions aborted.
    pub aborted: u64,
    /// What the committed ones took together, from their first operation on.
    pub transactions: Span,
    /// What their commits took together.
    pub commits: Span,
}

/// All clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// In the order of [`REGIONS`].
    pub regions: [Counts; REGIONS.len()],
    /// True once clients begin no more: what is under way then still counts, lest long transactions count too seldom.
    pub closed: bool,
}

impl Counts {
    /// The mean latency of a committed transaction, in milliseconds.
    pub fn latency_ms(&self) -> f64 {
        ratio(self.transactions.as_millis_f64(), self.committed as f64)
    }

    /// The share of transactions that were aborted.
    pub fn abort_rate(&self) -> f64 {
        ratio(self.aborted as f64, (self.committed + self.aborted) as f64)
    }

    /// The mean latency of a commit, in milliseconds.
    pub fn commit_ms(&self) -> f64 {
        ratio(self.commits.as_millis_f64(), self.committed as f64)
    }
}

impl Meter {
    /// All transactions that ended.
    pub fn ended(&self) -> u64 {
        self.regions.iter().map(|counts| counts.committed + counts.aborted).sum()
    }

    /// The mean over regions of their mean latencies, however many transactions each committed: the paper's normalized
    /// transaction latency, in milliseconds.
    pub fn normalized_ms(&self) -> f64 {
        self.regions.iter().map(Counts::latency_ms).sum::<f64>() / REGIONS.len() as f64
    }

    /// The mean latency of all commits, in milliseconds.
    pub fn commit_ms(&self) -> f64 {
        let committed: u64 = self.regions.iter().map(|counts| counts.committed).sum();
        let commits: f64 = self.regions.iter().map(|counts| counts.commits.as_millis_f64()).sum();
        ratio(commits, committed as f64)
    }

    /// Transactions aborted.
    pub fn aborted(&self) -> u64 {
        self.regions.iter().map(|counts| counts.aborted).sum()
    }

    /// The share of transactions that were aborted.
    pub fn abort_rate(&self) -> f64 {
        ratio(self.aborted() as f64, self.ended() as f64)
    }

    /// Operations of committed transactions per second of `length`, of one region.
    pub fn operations_per_second(&self, region: usize, length: Span) -> f64 {
        ratio((self.regions[region].committed * OPERATIONS as u64) as f64, length.as_millis_f64() / 1_000.0)
    }
}
