//! The coordinator of a region: takes its clients' transactions, and at the end of each epoch says what came in.
//!
//! ```text
//!   client ──▶ queue ── end of epoch ──▶ sealed ── chosen ──▶ running ── settled ──▶ answered
//!                ▲                          │
//!                └── another entry covers the epoch: lost, for certain ──┘
//! ```
//!
//! A region where nothing has been asked or told for a while is *quiet*: it seals an epoch once another region has, so that those
//! who are not quiet need not wait, and none of its own accord. When all are quiet, nothing is sent or written. What is asked
//! then takes a whole round trip, until all have heard of it.
//!
//! Epochs end where the clock says so, or where another region that is ahead says so; a site never seals an epoch twice.
//! The *coordinator epoch* is the last one sealed. The *execution epoch* is the last whose batches are all here
//! ([`Epochs`](super::epochs::Epochs)). The offset between the two grows when messages are delayed and shrinks as the backlog
//! is executed; an offset beyond the delay tolerance starts a [takeover](super::agreement).

mod desk;

use super::agreement::{Moment, Sealed as Saying, Sealing};
use super::asked::{Agreed, Asked, Asker};
use super::config::{
    AHEAD_MAX, BATCH_BYTES_MAX, BATCH_MAX, FORWARD_EPOCHS_MAX, FORWARDED_MAX, MEASURED_MAX, QUEUE_MAX, STUCK_TICKS, UNCHOSEN_BYTES_MAX,
    UNCHOSEN_MAX, WAITING_READS_MAX,
};
use super::context::{Context, Shared};
use super::epoch::Epoch;
use super::log::Log;
use super::message::{Entry, Identifier, Order, Settling};
use super::planted::Planted;
use super::reads::{self, Read};
use super::stream_id::StreamId;
use desk::{Desk, Sealed};
use rhumb_commit::transaction::TxnError;
use rhumb_core::{RegionId, Table, Time, work};
use std::collections::BTreeMap;

/// The coordinator of a site: what its clients ask, until it is agreed on.
#[derive(Debug)]
pub(super) struct Coordinator {
    /// By stream of the region.
    desks: Vec<Desk>,
    /// When this site sealed epochs that clients wait for and that are not settled.
    ended: BTreeMap<Epoch, Time>,
    /// How long such took until they were.
    settling: Settling,
}

/// An entry that this site has sealed is agreed on.
#[derive(Debug)]
pub(super) struct Confirmed {
    /// The transactions of its clients.
    pub(super) agreed: Vec<Agreed>,
    /// Strict reads that wait for its epoch to be settled.
    pub(super) reads: Vec<Read>,
}

impl Coordinator {
    /// In a region of so many coordinators.
    pub(super) fn new(coordinators: u16) -> Coordinator {
        let desks = (0..coordinators).map(|_| Desk::default()).collect();
        Coordinator { desks, ended: BTreeMap::new(), settling: Settling::default() }
    }

    /// Lists its tables.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        for desk in &self.desks {
            visit(Table::new("desk.queue", desk.queue.len(), QUEUE_MAX + FORWARDED_MAX + UNCHOSEN_MAX as usize * BATCH_MAX));
            visit(Table::new("desk.reads", desk.reads.len(), WAITING_READS_MAX));
            visit(Table::new("desk.orders", desk.orders.len(), 2 * AHEAD_MAX as usize));
            // Where it is not quiet, an empty epoch is on its way all the time.
            visit(Table::new("desk.sealed", desk.sealed.len(), UNCHOSEN_MAX as usize).stays());
        }
        visit(Table::new("coordinator.ended", self.ended.len(), MEASURED_MAX));
    }

    /// What this site has in hand for a stream of its region.
    fn desk(&mut self, stream: StreamId) -> &mut Desk {
        &mut self.desks[usize::from(stream.number())]
    }

    /// Earlier lives have sealed the epochs up to `epoch` in a stream.
    pub(super) fn resume(&mut self, stream: StreamId, epoch: Epoch) {
        let desk = self.desk(stream);
        (desk.epoch, desk.resumed) = (epoch, epoch);
    }

    /// The coordinator epoch.
    pub(super) fn epoch(&self) -> Epoch {
        self.desks.iter().map(|desk| desk.epoch).max().unwrap_or_default()
    }

    /// How long it took to settle what this site sealed.
    pub(super) fn settling(&self) -> Settling {
        self.settling
    }

    /// True if nothing is on its way but empty epochs.
    pub(super) fn is_idle(&self) -> bool {
        self.desks.iter().all(Desk::is_idle)
    }

    /// Strict reads whose epoch is not agreed on.
    pub(super) fn reads(&self) -> usize {
        let sealed = |desk: &Desk| desk.sealed.values().map(|sealed| sealed.reads.len()).sum::<usize>();
        self.desks.iter().map(|desk| desk.reads.len() + sealed(desk)).sum()
    }

    /// # Errors
    /// What a client is told whose transaction is not taken.
    pub(super) fn check_room(&self, log: &Log, cx: &mut Context<'_>) -> Result<(), TxnError> {
        if self.desks.iter().any(|desk| desk.queue.is_full()) {
            cx.fx.count("catenae.queue_full");
            return Err(TxnError::Unavailable("too many transactions wait for the end of an epoch already. Try again later".into()));
        }
        if log.holds_clients_back(cx) {
            cx.fx.count("catenae.backlog_full");
            return Err(TxnError::Unavailable(log.why_too_much_waits(cx)));
        }
        Ok(())
    }

    /// True if what is forwarded to be sealed in a stream up to epoch `until` may be, and there is room for it. The stream covers `covered`.
    pub(super) fn takes_forwarded(&self, stream: StreamId, until: Epoch, covered: Epoch) -> bool {
        let desk = &self.desks[usize::from(stream.number())];
        until > desk.epoch.max(covered) && until > desk.resumed.plus(FORWARD_EPOCHS_MAX) && !desk.queue.is_full()
    }

    /// A transaction waits for the next epoch of a stream.
    pub(super) fn queue(&mut self, asked: Asked, stream: StreamId) {
        self.desk(stream).queue.push_back(asked);
    }

    /// The same, before all that waits there already.
    pub(super) fn queue_first(&mut self, asked: Asked, stream: StreamId) {
        self.desk(stream).queue.push_front(asked);
    }

    /// Takes back what waits for an epoch of a stream that this site leads no more: what its own clients ask. What others have forwarded they
    /// take back themselves.
    pub(super) fn withdraw(&mut self, stream: StreamId) -> impl Iterator<Item = Asked> + use<> {
        let mut queue = std::mem::take(&mut self.desk(stream).queue);
        std::iter::from_fn(move || queue.pop()).filter(|asked| matches!(asked.by, Asker::Client(_)))
    }

    /// A read that must see all that ended before it: it waits for an epoch that this site seals from now on in its own stream.
    pub(super) fn read_strictly(&mut self, read: Read, own: StreamId) {
        self.desk(own).reads.push(read);
    }

    /// Votes of this region, to be sent with the next epoch.
    pub(super) fn vote(&mut self, region: RegionId, votes: impl IntoIterator<Item = Order>) {
        self.desk(StreamId::first(region)).orders.extend(votes);
    }

    /// Drops votes that are not sent: another site speaks for the region.
    pub(super) fn forget_votes(&mut self, region: RegionId) {
        self.desk(StreamId::first(region)).orders.clear();
    }

    /// Seals the epoch that ends now in a stream that this site leads, if there is a new one and not too many are under way.
    pub(super) fn seal(&mut self, id: StreamId, moment: &Moment, log: &Log, cx: &mut Context<'_>) -> Option<Saying> {
        let stream = log.streams.view(id);
        let epoch = self.next_epoch(id, stream.last_epoch(), moment, cx)?;
        let is_unheard = stream.end() - stream.chosen() >= UNCHOSEN_MAX || stream.unchosen_bytes() >= UNCHOSEN_BYTES_MAX;
        if is_unheard || moment.is_far_ahead {
            cx.fx.count("catenae.too_far_ahead");
            return None;
        }
        let room = if log.runs.backlog().is_full() { 0 } else { BATCH_BYTES_MAX };
        let room = if cx.rules.breaks(Planted::BatchUnbounded) { usize::MAX } else { room };
        let window = if cx.rules.breaks(Planted::LateVoteCounts) { u64::MAX } else { cx.config.window_epochs };
        let desk = self.desk(id);
        let asked: BTreeMap<u16, Asked> = (0..).zip(desk.take_batch(epoch, room)).collect();
        let reads = std::mem::take(&mut desk.reads);
        let orders = desk.take_orders(|order| epoch <= order.epoch.plus(window));
        let batch = asked.values().map(|asked| asked.transaction.clone()).collect();
        let entry = Entry { author: cx.me, epoch, batch, orders: orders.clone() };
        let forwarded = asked.iter().filter_map(|(&place, asked)| match asked.by {
            Asker::Client(_) => None,
            Asker::Site { site, name, .. } => Some(Sealing { site, name, place }),
        });
        let forwarded = forwarded.collect();
        let is_waited_for = !asked.is_empty() || !reads.is_empty();
        desk.sealed.insert(epoch, Sealed { asked, reads, orders });
        desk.epoch = epoch;
        if is_waited_for && self.ended.len() < MEASURED_MAX {
            self.ended.insert(epoch, cx.now);
        }
        Some(Saying { entry, forwarded })
    }

    /// The epoch to be sealed, if there is a new one. `last`: what the entries of the stream cover.
    fn next_epoch(&mut self, id: StreamId, last: Epoch, moment: &Moment, cx: &mut Context<'_>) -> Option<Epoch> {
        let desk = self.desk(id);
        let last = last.max(desk.epoch);
        let mut epoch = moment.due;
        if epoch <= last && moment.is_quiet {
            return None;
        }
        if epoch <= last {
            // Not long ahead of this clock: it will come. Far ahead, a clock was wrong: on, at a slower pace. What others have sealed says
            // nothing about that, for theirs may have been just as wrong, or they may be quiet.
            desk.stuck += 1;
            if last.0.saturating_sub(cx.ended().0) <= 2 * cx.config.ahead_epochs || desk.stuck < STUCK_TICKS {
                return None;
            }
            cx.fx.count("catenae.clock_behind");
            epoch = last.plus(1);
        }
        desk.stuck = 0;
        Some(epoch)
    }

    /// An entry of a stream of this region is chosen and counts. What of it this site has sealed is agreed on.
    pub(super) fn confirm(&mut self, id: StreamId, entry: &Entry, cx: &Shared) -> Option<Confirmed> {
        let sealed = if entry.author == cx.me { self.desk(id).sealed.remove(&entry.epoch) } else { None }?;
        let agreed = sealed.asked.into_iter().filter_map(|(place, asked)| match asked.by {
            Asker::Client(client) => {
                let identifier = Identifier { epoch: entry.epoch, stream: id, place };
                Some(Agreed { identifier, client, since: asked.since })
            }
            Asker::Site { .. } => None,
        });
        Some(Confirmed { agreed: agreed.collect(), reads: sealed.reads })
    }

    /// A stream covers the epochs up to `covered`. What this site has sealed there and is not agreed on waits for the next epoch again.
    pub(super) fn take_back_lost(&mut self, id: StreamId, covered: Epoch, cx: &mut Context<'_>) {
        let desk = &mut self.desks[usize::from(id.number())];
        let later = desk.sealed.split_off(&covered.plus(1));
        for (epoch, lost) in std::mem::replace(&mut desk.sealed, later).into_iter().rev() {
            cx.fx.count("catenae.lost_batch");
            self.ended.remove(&epoch);
            desk.reads.extend(lost.reads);
            desk.orders.extend(lost.orders);
            lost.asked.into_values().rev().for_each(|asked| desk.queue.push_front(asked));
        }
    }

    /// All up to `epoch` is settled: how long did what this site sealed take?
    pub(super) fn measure_settling(&mut self, epoch: Epoch, now: Time) {
        let later = self.ended.split_off(&epoch.plus(1));
        for ended in std::mem::replace(&mut self.ended, later).into_values() {
            self.settling.add(now.since(ended));
        }
    }

    /// Tells clients that have waited since `deadline` what is known; those whose transaction is not sealed, at once if this site
    /// `only_stands_by`: what was not sealed while it led never will be.
    pub(super) fn expire(&mut self, deadline: u64, only_stands_by: bool, cx: &mut Context<'_>) {
        let deadline_unsealed = if only_stands_by { cx.ticks } else { deadline };
        for desk in &mut self.desks {
            while let Some(asked) = desk.queue.pop_if(|asked| asked.since <= deadline_unsealed) {
                let why = "this region could not agree with the others on an epoch in time; nothing was committed";
                asked.fail(TxnError::Unavailable(why.into()), cx);
            }
        }
        for desk in &mut self.desks {
            reads::give_up(&mut desk.reads, deadline_unsealed, cx);
        }
        for (epoch, sealed) in self.desks.iter_mut().flat_map(|desk| &mut desk.sealed) {
            work::add(1 + sealed.asked.len() + sealed.reads.len());
            for (_, asked) in sealed.asked.extract_if(.., |_, asked| asked.since <= deadline) {
                asked.fail(TxnError::Unknown("the other regions have not confirmed it in time".into()), cx);
            }
            reads::give_up(&mut sealed.reads, deadline, cx);
            if sealed.asked.is_empty() && sealed.reads.is_empty() {
                self.ended.remove(epoch);
            }
        }
    }
}

#[cfg(test)]
mod tests;
