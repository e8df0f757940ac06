//! How much may be agreed on and not settled at a site.
//!
//! An epoch is run once the entries of all streams are there. If one stands still, all that the others say meanwhile waits, at every
//! site, and for as long as nobody may take that stream over. So each site holds its own clients back beyond a bound; together they
//! hold no more than that, and what was under way in every region when they noticed.

use super::config::{BACKLOG_BYTES_MAX, BACKLOG_MAX};
use super::operation::Transaction;
use super::site::Site;
use super::stream_id::StreamId;

/// Transactions in entries that count, from when they are chosen until they are settled.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    transactions: usize,
    bytes: usize,
}

impl Backlog {
    /// A batch is agreed on.
    pub(super) fn add(&mut self, batch: &[Transaction]) {
        self.transactions += batch.len();
        self.bytes += batch.iter().map(Transaction::bytes).sum::<usize>();
    }

    /// A transaction is settled.
    pub(super) fn remove(&mut self, transaction: &Transaction) {
        self.transactions -= 1;
        self.bytes -= transaction.bytes();
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.transactions
    }

    /// True if there are too many for more to be taken.
    pub(super) fn is_full(&self) -> bool {
        self.transactions >= BACKLOG_MAX || self.bytes >= BACKLOG_BYTES_MAX
    }
}

impl Site {
    /// What a client is told that asks for more than is taken.
    pub(super) fn why_too_much_waits(&self) -> String {
        let waiting = self.epochs.backlog.len();
        let stands_still = |id: &StreamId| self.streams[*id].covered() <= self.epochs.execution;
        let of = self.stream_ids().find(stands_still).map_or("a region", |id| self.topology.name(id.region()));
        let execution = self.epochs.execution;
        format!(
            "{waiting} transactions are agreed on and wait to be run; the epochs of {of} are known up to {execution} only. Try again later"
        )
    }

    /// True if a stream is to be asked for what is missing here. While too much waits, only those that all the others wait for.
    pub(super) fn takes_more(&self, stream: StreamId) -> bool {
        !self.epochs.backlog.is_full() || self.streams[stream].covered() <= self.epochs.execution
    }
}
