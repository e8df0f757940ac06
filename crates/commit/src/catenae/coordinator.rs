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
//! is executed; an offset beyond the delay tolerance starts a [takeover](super::takeover).

use super::config::{BATCH_BYTES_MAX, BATCH_MAX, QUEUE_MAX, STUCK_TICKS, UNCHOSEN_BYTES_MAX, UNCHOSEN_MAX};
use super::epoch::Epoch;
use super::message::{Answer, Entry, Identifier, Note, Order, Settling};
use super::operation::Transaction;
use super::reads::Read;
use super::site::{Site, is_acceptor};
use super::stream::Stream;
use crate::transaction::TxnError;
use rhumb_core::actor::RequestId;
use rhumb_core::{Effects, RegionId, Time};
use std::collections::{BTreeMap, VecDeque};

/// A client's transaction.
#[derive(Debug)]
struct Asked {
    id: RequestId,
    transaction: Transaction,
    /// The tick in which it came.
    since: u64,
}

/// What a site has sealed and does not know to be chosen or lost.
#[derive(Debug)]
struct Sealed {
    /// Each with its place in the batch.
    asked: Vec<(u16, Asked)>,
    reads: Vec<Read>,
    orders: Vec<Order>,
}

/// Requests on their way.
#[derive(Debug, Default)]
pub(super) struct Coordinator {
    queue: VecDeque<Asked>,
    /// Strict reads that wait for the end of the epoch.
    reads: Vec<Read>,
    /// Votes to send.
    orders: Vec<Order>,
    sealed: BTreeMap<Epoch, Sealed>,
    /// When this site sealed epochs that clients wait for and that are not settled.
    ended: BTreeMap<Epoch, Time>,
    /// How long such took until they were.
    pub(super) settling: Settling,
    /// Agreed on, with the tick in which they came.
    running: BTreeMap<Identifier, (RequestId, u64)>,
    /// The coordinator epoch.
    pub(super) epoch: Epoch,
    /// The highest epoch that another region has sealed.
    heard: Epoch,
    /// The tick until which it is not quiet.
    awake_until: u64,
    /// Ticks in a row in which there was no new epoch to seal.
    stuck: u64,
}

impl Site {
    /// A client's transaction.
    pub(super) fn on_run(&mut self, id: RequestId, transaction: Transaction, fx: &mut Effects<Site>) {
        if let Err(invalid) = transaction.validate() {
            return fx.answer(id, Answer::Failed(invalid.into()));
        }
        if self.only_stands_by() {
            return self.refuse(id, fx);
        }
        if self.coordinator.queue.len() >= QUEUE_MAX {
            fx.count("catenae.queue_full");
            let full = format!("{QUEUE_MAX} transactions wait for the end of an epoch already");
            return fx.answer(id, Answer::Failed(TxnError::Unavailable(full)));
        }
        self.stay_awake();
        self.coordinator.queue.push_back(Asked { id, transaction, since: self.ticks });
    }

    /// True for a secondary coordinator that has nothing to say.
    pub(super) fn only_stands_by(&self) -> bool {
        !is_acceptor(self.me) && self.seats[self.own()].leads_at().is_none()
    }

    /// Sends a client to the coordinator, which is asked what is new: should it not answer, this site is to take over.
    pub(super) fn refuse(&mut self, id: RequestId, fx: &mut Effects<Site>) {
        self.stay_awake();
        let stream = &self.streams[self.own()];
        let (coordinator, after) = (stream.promised().site, stream.chosen());
        fx.send(coordinator, Note::Pull { stream: self.me.region, after });
        let why = format!("{} stands by: the coordinator of its region is {coordinator}", self.me);
        fx.answer(id, Answer::Failed(TxnError::Unavailable(why)));
    }

    /// A read that must see all that ended before it: it waits for an epoch that this site seals from now on.
    pub(super) fn read_strictly(&mut self, read: Read) {
        self.coordinator.reads.push(read);
    }

    /// This region's vote, to be sent with the next epoch.
    pub(super) fn vote(&mut self, order: Order) {
        self.coordinator.orders.push(order);
    }

    /// Drops votes that are not sent: another site speaks for the region.
    pub(super) fn forget_votes(&mut self) {
        self.coordinator.orders.clear();
    }

    /// Another region has sealed `epoch`.
    pub(super) fn heard_of(&mut self, epoch: Epoch) {
        self.coordinator.heard = self.coordinator.heard.max(epoch);
    }

    /// Something was asked or told: this site is not quiet for a while.
    pub(super) fn stay_awake(&mut self) {
        self.coordinator.awake_until = self.ticks.saturating_add(self.config.linger_epochs);
    }

    /// True if nothing has been asked or told for a while, and nothing is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.ticks >= self.coordinator.awake_until
            && self.coordinator.is_idle()
            && self.no_read_waits()
            && self.ledger.is_empty()
            && self.epochs.is_empty()
            && self.streams.iter().all(Stream::says_nothing_new)
    }

    /// The epoch that ends now, by this site's clock or those of the others; by those of the others alone if it is quiet.
    pub(super) fn ending(&self) -> Epoch {
        if self.is_quiet() {
            return self.coordinator.heard;
        }
        Epoch::ended_by(self.now, self.config.epoch).max(self.coordinator.heard)
    }

    /// The epoch up to which `region` should have spoken. Who only stands by seals nothing, so that nobody can keep pace with its
    /// clock: it goes by the epochs of others, save for the coordinator whose place it is to take.
    pub(super) fn due(&self, region: RegionId) -> Epoch {
        if self.only_stands_by() && region != self.me.region { self.coordinator.heard } else { self.ending() }
    }

    /// Seals the epoch that ends now, if there is a new one and not too many are under way.
    pub(super) fn seal(&mut self, fx: &mut Effects<Site>) {
        let stream = &self.streams[self.own()];
        let last = stream.last_epoch().max(self.coordinator.epoch);
        let mut epoch = self.ending();
        if epoch <= last && self.is_quiet() {
            return;
        }
        if epoch <= last {
            // Not long ahead of this clock: it will come. Far ahead, a clock was wrong: on, at a slower pace. What others have sealed says
            // nothing about that, for theirs may have been just as wrong, or they may be quiet.
            self.coordinator.stuck += 1;
            let by_clock = Epoch::ended_by(self.now, self.config.epoch);
            if last.0.saturating_sub(by_clock.0) <= 2 * self.config.ahead_epochs || self.coordinator.stuck < STUCK_TICKS {
                return;
            }
            fx.count("catenae.clock_behind");
            epoch = last.plus(1);
        }
        self.coordinator.stuck = 0;
        if stream.end() - stream.chosen() >= UNCHOSEN_MAX || stream.unchosen_bytes() >= UNCHOSEN_BYTES_MAX {
            return fx.count("catenae.too_far_ahead");
        }
        let asked: Vec<(u16, Asked)> = (0..).zip(self.coordinator.take_batch()).collect();
        let window = self.config.window_epochs;
        let mut orders = std::mem::take(&mut self.coordinator.orders);
        #[cfg(feature = "planted")]
        let window = if self.has_planted(super::planted::Planted::LateVoteCounts) { u64::MAX } else { window };
        orders.retain(|order| epoch <= order.epoch.plus(window));
        let batch = asked.iter().map(|(_, asked)| asked.transaction.clone()).collect();
        let entry = Entry { author: self.me, epoch, batch, orders: orders.clone() };
        let reads = std::mem::take(&mut self.coordinator.reads);
        if !asked.is_empty() || !reads.is_empty() {
            self.coordinator.ended.insert(epoch, self.now);
        }
        self.coordinator.sealed.insert(epoch, Sealed { asked, reads, orders });
        self.coordinator.epoch = epoch;
        self.append(self.me.region, entry, fx);
    }

    /// An entry of this region's stream is chosen: what became of that which this site has sealed?
    pub(super) fn resolve_sealed(&mut self, entry: &Entry, void: bool, fx: &mut Effects<Site>) {
        let covered = self.streams[self.own()].covered();
        if !void
            && entry.author == self.me
            && let Some(sealed) = self.coordinator.sealed.remove(&entry.epoch)
        {
            for (place, asked) in sealed.asked {
                let identifier = Identifier { epoch: entry.epoch, region: self.me.region, place };
                self.coordinator.running.insert(identifier, (asked.id, asked.since));
            }
            sealed.reads.into_iter().for_each(|read| self.read_once_settled(entry.epoch, read, fx));
        }
        let later = self.coordinator.sealed.split_off(&covered.plus(1));
        for (epoch, lost) in std::mem::replace(&mut self.coordinator.sealed, later).into_iter().rev() {
            fx.count("catenae.lost_batch");
            self.coordinator.ended.remove(&epoch);
            self.coordinator.reads.extend(lost.reads);
            self.coordinator.orders.extend(lost.orders);
            lost.asked.into_iter().rev().for_each(|(_, asked)| self.coordinator.queue.push_front(asked));
        }
    }

    /// All up to `epoch` is settled: how long did what this site sealed take?
    pub(super) fn measure_settling(&mut self, epoch: Epoch) {
        let later = self.coordinator.ended.split_off(&epoch.plus(1));
        for ended in std::mem::replace(&mut self.coordinator.ended, later).into_values() {
            self.coordinator.settling.add(self.now.since(ended));
        }
    }

    /// Tells clients that have waited too long what is known.
    pub(super) fn expire(&mut self, fx: &mut Effects<Site>) {
        let Some(mut deadline) = self.ticks.checked_sub(self.config.deadline_epochs) else { return };
        self.expire_reads(deadline, fx);
        if self.only_stands_by() {
            // What was not sealed while it led never will be.
            deadline = self.ticks;
        }
        let reads = std::mem::take(&mut self.coordinator.reads);
        self.coordinator.reads = self.expire_unsealed_reads(reads, deadline, fx);
        while self.coordinator.queue.front().is_some_and(|asked| asked.since <= deadline) {
            let asked = self.coordinator.queue.pop_front().expect("there is a first one");
            let why = "this region could not agree with the others on an epoch in time; nothing was committed";
            fx.answer(asked.id, Answer::Failed(TxnError::Unavailable(why.into())));
        }
        let deadline = self.ticks - self.config.deadline_epochs;
        for sealed in self.coordinator.sealed.values_mut() {
            for (_, asked) in sealed.asked.extract_if(.., |(_, asked)| asked.since <= deadline) {
                fx.answer(asked.id, Answer::Failed(TxnError::Unknown("the other regions have not confirmed it in time".into())));
            }
        }
        self.coordinator.running.retain(|_, (id, since)| {
            let keeps = *since > deadline;
            if !keeps {
                fx.answer(*id, Answer::Failed(TxnError::Unknown("it is agreed on, but not settled in time".into())));
            }
            keeps
        });
    }

    /// The request that a transaction belongs to, if it came from a client of this site that still waits.
    pub(super) fn take_request(&mut self, identifier: Identifier) -> Option<RequestId> {
        self.coordinator.running.remove(&identifier).map(|(id, _)| id)
    }
}

impl Coordinator {
    /// True if nothing is on its way but empty epochs.
    fn is_idle(&self) -> bool {
        let is_empty = |sealed: &Sealed| sealed.asked.is_empty() && sealed.reads.is_empty() && sealed.orders.is_empty();
        let waits = !self.queue.is_empty() || !self.reads.is_empty() || !self.orders.is_empty() || !self.running.is_empty();
        !waits && self.sealed.values().all(is_empty)
    }

    fn take_batch(&mut self) -> Vec<Asked> {
        let mut bytes = 0;
        let fits = self.queue.iter().take(BATCH_MAX).take_while(|asked| {
            bytes += asked.transaction.bytes();
            bytes <= BATCH_BYTES_MAX
        });
        let count = fits.count();
        self.queue.drain(..count).collect()
    }
}
