//! How much may be agreed on and not settled at a site.
//!
//! An epoch is run once the entries of all streams are there. If one stands still, all that the others say meanwhile waits, at every
//! site, and for as long as nobody may take that stream over. So each site holds its own clients back beyond a bound, and seals epochs
//! without transactions; and beyond a number of entries that wait so, it seals none. The stream that all wait for is never held back by
//! that. Together the sites hold no more than that, and what was under way in every region when they noticed. A site that is slower than
//! the others does not listen to what it has no room for, and asks for it later: it falls behind, and its memory stays bounded.

use super::config::{AHEAD_MAX, BACKLOG_BYTES_MAX, BACKLOG_MAX, FLOODED_FACTOR};
use super::site::Site;
use super::stream_id::StreamId;
use rhumb_commit::one_shot::operation::Transaction;

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
        self.has(1)
    }

    /// True if there are `times` as many as clients may bring about.
    fn has(&self, times: usize) -> bool {
        self.transactions >= times * BACKLOG_MAX || self.bytes >= times * BACKLOG_BYTES_MAX
    }
}

impl Site {
    /// True if so much waits that this site takes no more of its clients.
    pub(super) fn holds_clients_back(&self) -> bool {
        self.epochs.backlog.is_full() || self.is_far_ahead(self.own())
    }

    /// True if so much that is said in a stream waits for others that no more is said in it.
    pub(super) fn is_far_ahead(&self, stream: StreamId) -> bool {
        self.streams[stream].view().is_ahead_of(self.epochs.execution, AHEAD_MAX)
    }

    /// True if there is no room for what is said in a stream, which nothing here waits for.
    pub(super) fn is_flooded(&self, stream: StreamId) -> bool {
        let (said, execution) = (self.streams[stream].view(), self.epochs.execution);
        let is_full = self.epochs.backlog.has(FLOODED_FACTOR) || said.is_ahead_of(execution, FLOODED_FACTOR as u64 * AHEAD_MAX);
        is_full && said.covered() > execution
    }

    /// What a client is told that asks for more than is taken.
    pub(super) fn why_too_much_waits(&self) -> String {
        let waiting = self.epochs.backlog.len();
        let stands_still = |id: &StreamId| self.streams[*id].view().covered() <= self.epochs.execution;
        let of = self.stream_ids().find(stands_still).map_or("a region", |id| self.topology.name(id.region()));
        let execution = self.epochs.execution;
        format!(
            "{waiting} transactions are agreed on and wait to be run; the epochs of {of} are known up to {execution} only. Try again later"
        )
    }

    /// True if a stream is to be asked for what is missing here. While too much waits, only those that all the others wait for.
    pub(super) fn takes_more(&self, stream: StreamId) -> bool {
        !self.epochs.backlog.is_full() || self.streams[stream].view().covered() <= self.epochs.execution
    }
}
