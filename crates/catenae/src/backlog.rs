//! How much is agreed on and not settled at a site, counted.

use super::config::{BACKLOG_BYTES_MAX, BACKLOG_MAX};
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
    pub(super) fn has(&self, times: usize) -> bool {
        self.transactions >= times * BACKLOG_MAX || self.bytes >= times * BACKLOG_BYTES_MAX
    }
}
