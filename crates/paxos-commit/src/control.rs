//! Concurrency control of one replica: which attempts may go on, and which hold what they need to be voted for.

use super::config::Concurrency;
pub(super) use super::locking::Change;
use super::locking::Locking;
use super::optimistic::Optimistic;
use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_commit::votes::Refusal;
use rhumb_core::TxnId;

/// The one or the other.
#[derive(Debug)]
pub(super) enum Control {
    Locking(Locking),
    Optimistic(Optimistic),
}

impl Control {
    pub(super) fn new(concurrency: Concurrency) -> Control {
        match concurrency {
            Concurrency::Locking => Control::Locking(Locking::default()),
            Concurrency::Optimistic => Control::Optimistic(Optimistic::default()),
        }
    }

    /// An attempt wants to read; it may as soon as it is [ready](Change::Ready).
    pub(super) fn execute(&mut self, txn: TxnId, footprint: &Footprint) -> Vec<Change> {
        match self {
            Control::Locking(locking) => locking.execute(txn, footprint),
            Control::Optimistic(_) => vec![Change::Ready(txn)],
        }
    }

    /// Makes firm what an attempt needs to be voted for, if it can have that without waiting.
    ///
    /// # Errors
    /// Why it cannot. Whatever it holds is still to be released.
    pub(super) fn prepare(&mut self, txn: TxnId, footprint: &Footprint) -> Result<(), Refusal> {
        match self {
            Control::Locking(locking) => locking.prepare(txn, footprint),
            Control::Optimistic(optimistic) => optimistic.prepare(txn, footprint),
        }
    }

    /// Takes the locks of an attempt that an earlier incarnation has voted for. Nobody else is there yet but others of that kind.
    pub(super) fn restore(&mut self, txn: TxnId, footprint: &Footprint) {
        if let Control::Locking(locking) = self {
            locking.execute(txn, footprint);
        }
        self.prepare(txn, footprint).expect("attempts that a region has voted for do not conflict");
    }

    /// An attempt has come to its end here.
    pub(super) fn release(&mut self, txn: TxnId) -> Vec<Change> {
        match self {
            Control::Locking(locking) => locking.release(txn),
            Control::Optimistic(optimistic) => {
                optimistic.release(txn);
                Vec::new()
            }
        }
    }
}
