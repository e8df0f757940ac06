//! What a site has in hand for one stream of its region: what is asked and not sealed, and what is sealed and not known to be chosen.

use crate::asked::{Asked, Asker};
use crate::config::{BATCH_MAX, FORWARD_EPOCHS_MAX, QUEUE_BYTES_MAX, QUEUE_MAX, VOTES_BYTES_MAX};
use crate::epoch::Epoch;
use crate::message::Order;
use crate::reads::Read;
use rhumb_core::record::encoded_bytes;
use std::collections::{BTreeMap, VecDeque};

/// What a site has sealed and does not know to be chosen or lost.
#[derive(Debug)]
pub(super) struct Sealed {
    /// By its place in the batch.
    pub(super) asked: BTreeMap<u16, Asked>,
    pub(super) reads: Vec<Read>,
    pub(super) orders: Vec<Order>,
}

/// What waits for the end of an epoch, in order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    asked: VecDeque<Asked>,
    bytes: usize,
}

impl Queue {
    pub(super) fn push_back(&mut self, asked: Asked) {
        self.bytes += asked.transaction.bytes();
        self.asked.push_back(asked);
    }

    pub(super) fn push_front(&mut self, asked: Asked) {
        self.bytes += asked.transaction.bytes();
        self.asked.push_front(asked);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.asked.len()
    }

    /// Takes the first.
    pub(super) fn pop(&mut self) -> Option<Asked> {
        self.pop_if(|_| true)
    }

    /// Takes the first if it is like that.
    pub(super) fn pop_if(&mut self, is: impl FnOnce(&Asked) -> bool) -> Option<Asked> {
        let asked = self.asked.pop_front_if(|asked| is(asked))?;
        self.bytes -= asked.transaction.bytes();
        Some(asked)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// True if no more is to be taken of anybody.
    pub(super) fn is_full(&self) -> bool {
        self.asked.len() >= QUEUE_MAX || self.bytes >= QUEUE_BYTES_MAX
    }
}

/// One stream's desk.
#[derive(Debug, Default)]
pub(super) struct Desk {
    pub(super) queue: Queue,
    /// Strict reads that wait for the end of the epoch.
    pub(super) reads: Vec<Read>,
    /// Votes to send; only in the first stream.
    pub(super) orders: Vec<Order>,
    pub(super) sealed: BTreeMap<Epoch, Sealed>,
    /// The last epoch that this site has sealed in this stream.
    pub(super) epoch: Epoch,
    /// Ticks in a row in which there was no new epoch to seal.
    pub(super) stuck: u64,
    /// The last epoch that an earlier life may have sealed.
    pub(super) resumed: Epoch,
}

/// True unless it was forwarded for other epochs than this one.
fn belongs_in(asked: &Asked, epoch: Epoch) -> bool {
    match asked.by {
        Asker::Client(_) => true,
        Asker::Site { until, .. } => epoch <= until && until <= epoch.plus(FORWARD_EPOCHS_MAX),
    }
}

impl Desk {
    /// True if nothing is on its way but empty epochs.
    pub(super) fn is_idle(&self) -> bool {
        let is_empty = |sealed: &Sealed| sealed.asked.is_empty() && sealed.reads.is_empty() && sealed.orders.is_empty();
        let waits = !self.queue.is_empty() || !self.reads.is_empty() || !self.orders.is_empty();
        !waits && self.sealed.values().all(is_empty)
    }

    /// What is sealed in `epoch`, as much as `room` bytes take. What was forwarded and does not belong there any more is dropped: who forwarded it
    /// takes it back.
    pub(super) fn take_batch(&mut self, epoch: Epoch, room: usize) -> Vec<Asked> {
        let mut batch: Vec<Asked> = Vec::new();
        let mut left = room;
        let mut fits = |asked: &Asked| {
            let rest = left.checked_sub(asked.transaction.bytes());
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        while batch.len() < BATCH_MAX {
            let Some(next) = self.queue.pop_if(|asked| !belongs_in(asked, epoch) || fits(asked)) else { break };
            if belongs_in(&next, epoch) {
                batch.push(next);
            }
        }
        batch
    }

    /// The votes that `counts` holds of, as many as fit into an entry. Those that it does not hold of never will, and are dropped, as is
    /// one that no entry holds.
    pub(super) fn take_orders(&mut self, counts: impl Fn(&Order) -> bool) -> Vec<Order> {
        self.orders.retain(|order| counts(order) && encoded_bytes(order) <= VOTES_BYTES_MAX);
        let mut bytes = 0;
        let fits = |order: &&Order| {
            bytes += encoded_bytes(*order);
            bytes <= VOTES_BYTES_MAX
        };
        let fitting = self.orders.iter().take_while(fits).count();
        self.orders.drain(..fitting).collect()
    }
}

#[cfg(test)]
mod tests;
