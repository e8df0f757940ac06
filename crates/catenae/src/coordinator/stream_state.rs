//! The open transactions of one stream of a site's region: those that are not sealed yet, and those that are sealed and not known to be chosen.

use crate::agreement::{self, Moment, Sealing};
use crate::asked::{Agreed, Asked, Asker};
use crate::config::{
    AHEAD_MAX, BATCH_MAX, FORWARD_EPOCHS_MAX, FORWARDED_MAX, QUEUE_BYTES_MAX, QUEUE_MAX, STUCK_TICKS, UNCHOSEN_MAX, VOTES_BYTES_MAX,
    WAITING_READS_MAX,
};
use crate::context::{Context, Shared};
use crate::epoch::Epoch;
use crate::message::{Entry, Identifier, Order};
use crate::planted::Planted;
use crate::reads::{self, Read};
use crate::stream_id::StreamId;
use rhumb_commit::transaction::TxnError;
use rhumb_core::record::encoded_bytes;
use rhumb_core::{Table, work};
use std::collections::{BTreeMap, VecDeque};

/// An entry that this site has sealed is agreed on.
#[derive(Debug)]
pub(crate) struct Confirmed {
    /// The transactions of its clients.
    pub(crate) agreed: Vec<Agreed>,
    /// Strict reads that wait for its epoch to be settled.
    pub(crate) reads: Vec<Read>,
}

/// What a site has sealed and does not know to be chosen or lost.
#[derive(Debug)]
struct Sealed {
    /// By its place in the batch.
    asked: BTreeMap<u16, Asked>,
    reads: Vec<Read>,
    orders: Vec<Order>,
}

impl Sealed {
    /// True if somebody waits for it.
    fn is_waited_for(&self) -> bool {
        !self.asked.is_empty() || !self.reads.is_empty()
    }
}

/// What waits for the end of an epoch, in order.
#[derive(Debug, Default)]
struct Queue {
    asked: VecDeque<Asked>,
    bytes: usize,
}

impl Queue {
    fn push_back(&mut self, asked: Asked) {
        self.bytes += asked.transaction.bytes();
        self.asked.push_back(asked);
    }

    fn push_front(&mut self, asked: Asked) {
        self.bytes += asked.transaction.bytes();
        self.asked.push_front(asked);
    }

    /// How many there are.
    fn len(&self) -> usize {
        self.asked.len()
    }

    /// Takes the first.
    fn pop(&mut self) -> Option<Asked> {
        self.pop_if(|_| true)
    }

    /// Takes the first if it is like that.
    fn pop_if(&mut self, is: impl FnOnce(&Asked) -> bool) -> Option<Asked> {
        let asked = self.asked.pop_front_if(|asked| is(asked))?;
        self.bytes -= asked.transaction.bytes();
        Some(asked)
    }

    fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// True if no more is to be taken of anybody.
    fn is_full(&self) -> bool {
        self.asked.len() >= QUEUE_MAX || self.bytes >= QUEUE_BYTES_MAX
    }
}

/// The open transactions of one stream.
#[derive(Debug, Default)]
pub(crate) struct StreamState {
    queue: Queue,
    /// Strict reads that wait for the end of the epoch.
    reads: Vec<Read>,
    /// Votes to send; only in the first stream.
    orders: Vec<Order>,
    sealed: BTreeMap<Epoch, Sealed>,
    /// The last epoch that this site has sealed in this stream.
    epoch: Epoch,
    /// Ticks in a row in which there was no new epoch to seal.
    stuck: u64,
    /// The last epoch that an earlier incarnation may have sealed.
    resumed: Epoch,
}

/// True unless it was forwarded for other epochs than this one.
fn belongs_in(asked: &Asked, epoch: Epoch) -> bool {
    match asked.by {
        Asker::Client(_) => true,
        Asker::Site { until, .. } => epoch <= until && until <= epoch.plus(FORWARD_EPOCHS_MAX),
    }
}

impl StreamState {
    /// Lists its tables.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("coordinator.queue", self.queue.len(), QUEUE_MAX + FORWARDED_MAX + UNCHOSEN_MAX as usize * BATCH_MAX));
        visit(Table::new("coordinator.reads", self.reads.len(), WAITING_READS_MAX));
        visit(Table::new("coordinator.orders", self.orders.len(), 2 * AHEAD_MAX as usize));
        // Where it is not quiet, an empty epoch is on its way all the time.
        visit(Table::new("coordinator.sealed", self.sealed.len(), UNCHOSEN_MAX as usize).stays());
    }

    /// The last epoch that this site has sealed in this stream.
    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Strict reads whose epoch is not agreed on.
    pub(super) fn reads(&self) -> usize {
        self.reads.len() + self.sealed.values().map(|sealed| sealed.reads.len()).sum::<usize>()
    }

    /// True if no more is to be taken of anybody.
    pub(super) fn is_full(&self) -> bool {
        self.queue.is_full()
    }

    /// True if `epoch` is sealed here and not known to be chosen, and a transaction or a read waits for that.
    pub(super) fn is_waited_for(&self, epoch: Epoch) -> bool {
        self.sealed.get(&epoch).is_some_and(Sealed::is_waited_for)
    }

    /// True if a transaction that is forwarded to be sealed by epoch `until` can still be, and there is room for it. The stream covers `covered`.
    pub(crate) fn takes_forwarded(&self, until: Epoch, covered: Epoch) -> bool {
        until > self.epoch.max(covered) && until > self.resumed.plus(FORWARD_EPOCHS_MAX) && !self.is_full()
    }

    /// Earlier incarnations have sealed the epochs up to `epoch`.
    pub(crate) fn resume(&mut self, epoch: Epoch) {
        (self.epoch, self.resumed) = (epoch, epoch);
    }

    /// A transaction waits for the next epoch.
    pub(crate) fn queue(&mut self, asked: Asked) {
        self.queue.push_back(asked);
    }

    /// The same, before all that waits already.
    pub(crate) fn queue_first(&mut self, asked: Asked) {
        self.queue.push_front(asked);
    }

    /// Gives up what waits for the next epoch, as this site does not lead the stream any more. Returns what its own clients ask; what others
    /// have forwarded they take back themselves.
    pub(crate) fn withdraw(&mut self) -> impl Iterator<Item = Asked> + use<> {
        let mut queue = std::mem::take(&mut self.queue);
        std::iter::from_fn(move || queue.pop()).filter(|asked| matches!(asked.by, Asker::Client(_)))
    }

    /// A read that must see all that ended before it: it waits for an epoch that this site seals from now on.
    pub(crate) fn read_strictly(&mut self, read: Read) {
        self.reads.push(read);
    }

    /// Votes of the region, to be sent with the next epoch. This is the state of its first stream.
    pub(crate) fn vote(&mut self, votes: impl IntoIterator<Item = Order>) {
        self.orders.extend(votes);
    }

    /// Drops votes that are not sent: another site speaks for the region.
    pub(crate) fn forget_votes(&mut self) {
        self.orders.clear();
    }

    /// The epoch to be sealed, if there is a new one. `last`: what the entries of the stream cover.
    pub(super) fn next_epoch(&mut self, last: Epoch, moment: &Moment, cx: &mut Context<'_>) -> Option<Epoch> {
        let last = last.max(self.epoch);
        let mut epoch = moment.due;
        if epoch <= last && moment.is_quiet {
            return None;
        }
        if epoch <= last {
            // Not long ahead of this clock: it will come. Far ahead, a clock was wrong: on, at a slower pace. What others have sealed says
            // nothing about that, for theirs may have been just as wrong, or they may be quiet.
            self.stuck += 1;
            if last.0.saturating_sub(cx.ended().0) <= 2 * cx.config.ahead_epochs || self.stuck < STUCK_TICKS {
                return None;
            }
            cx.fx.count("catenae.clock_behind");
            epoch = last.plus(1);
        }
        self.stuck = 0;
        Some(epoch)
    }

    /// Seals an epoch, with as many transactions as `room` bytes take.
    pub(super) fn seal(&mut self, epoch: Epoch, room: usize, cx: &Shared) -> agreement::Sealed {
        let window = if cx.rules.breaks(Planted::LateVoteCounts) { u64::MAX } else { cx.config.window_epochs };
        let asked: BTreeMap<u16, Asked> = (0..).zip(self.take_batch(epoch, room)).collect();
        let orders = self.take_orders(|order| epoch <= order.epoch.plus(window));
        let batch = asked.values().map(|asked| asked.transaction.clone()).collect();
        let entry = Entry { author: cx.me, epoch, batch, orders: orders.clone() };
        let forwarded = asked.iter().filter_map(|(&place, asked)| match asked.by {
            Asker::Client(_) => None,
            Asker::Site { site, name, .. } => Some(Sealing { site, name, place }),
        });
        let forwarded = forwarded.collect();
        self.sealed.insert(epoch, Sealed { asked, reads: std::mem::take(&mut self.reads), orders });
        self.epoch = epoch;
        agreement::Sealed { entry, forwarded }
    }

    /// An entry of stream `id` is chosen and counts. What of it this site has sealed is agreed on.
    pub(crate) fn confirm(&mut self, id: StreamId, entry: &Entry, cx: &Shared) -> Option<Confirmed> {
        let sealed = if entry.author == cx.me { self.sealed.remove(&entry.epoch) } else { None }?;
        let agreed = sealed.asked.into_iter().filter_map(|(place, asked)| match asked.by {
            Asker::Client(client) => {
                let identifier = Identifier { epoch: entry.epoch, stream: id, place };
                Some(Agreed { identifier, client, since: asked.since })
            }
            Asker::Site { .. } => None,
        });
        Some(Confirmed { agreed: agreed.collect(), reads: sealed.reads })
    }

    /// The stream covers the epochs up to `covered`. What is sealed there and not agreed on waits for the next epoch again, before all that
    /// waits already. Returns which epochs that are.
    pub(super) fn take_back_lost(&mut self, covered: Epoch) -> Vec<Epoch> {
        let later = self.sealed.split_off(&covered.plus(1));
        let lost = std::mem::replace(&mut self.sealed, later).into_iter().rev().map(|(epoch, lost)| {
            self.reads.extend(lost.reads);
            self.orders.extend(lost.orders);
            lost.asked.into_values().rev().for_each(|asked| self.queue.push_front(asked));
            epoch
        });
        lost.collect()
    }

    /// Gives up what has waited to be sealed since `deadline`.
    pub(super) fn expire_queue(&mut self, deadline: u64, cx: &mut Context<'_>) {
        while let Some(asked) = self.queue.pop_if(|asked| asked.since <= deadline) {
            let why = "this region could not agree with the others on an epoch in time; nothing was committed";
            asked.fail(TxnError::Unavailable(why.into()), cx);
        }
    }

    /// Gives up strict reads that have waited since `deadline` for an epoch to be sealed.
    pub(super) fn expire_reads(&mut self, deadline: u64, cx: &mut Context<'_>) {
        reads::give_up(&mut self.reads, deadline, cx);
    }

    /// Tells clients that have waited since `deadline` for what is sealed that its outcome is unknown. Returns the epochs for which nobody
    /// waits any more.
    pub(super) fn expire_sealed(&mut self, deadline: u64, cx: &mut Context<'_>) -> Vec<Epoch> {
        let mut over = Vec::new();
        for (epoch, sealed) in &mut self.sealed {
            work::add(1 + sealed.asked.len() + sealed.reads.len());
            for (_, asked) in sealed.asked.extract_if(.., |_, asked| asked.since <= deadline) {
                asked.fail(TxnError::Unknown("the other regions have not confirmed it in time".into()), cx);
            }
            reads::give_up(&mut sealed.reads, deadline, cx);
            over.extend((!sealed.is_waited_for()).then_some(*epoch));
        }
        over
    }

    /// True if nothing is on its way but empty epochs.
    pub(super) fn is_idle(&self) -> bool {
        let is_empty = |sealed: &Sealed| !sealed.is_waited_for() && sealed.orders.is_empty();
        let waits = !self.queue.is_empty() || !self.reads.is_empty() || !self.orders.is_empty();
        !waits && self.sealed.values().all(is_empty)
    }

    /// What is sealed in `epoch`, as much as `room` bytes take. What was forwarded and does not belong there any more is dropped: who forwarded it
    /// takes it back.
    fn take_batch(&mut self, epoch: Epoch, room: usize) -> Vec<Asked> {
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

    /// The votes that satisfy `counts`, as many as fit into an entry. The others never will, and are dropped, as is a vote that is too large for any
    /// entry.
    fn take_orders(&mut self, counts: impl Fn(&Order) -> bool) -> Vec<Order> {
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
