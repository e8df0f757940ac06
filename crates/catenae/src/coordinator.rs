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

use super::agreement::{self, Event};
use super::config::{
    AHEAD_MAX, BATCH_BYTES_MAX, BATCH_MAX, FORWARDED_MAX, MEASURED_MAX, QUEUE_MAX, STUCK_TICKS, UNCHOSEN_BYTES_MAX, UNCHOSEN_MAX,
    WAITING_READS_MAX,
};
use super::desk::{Asked, Asker, Desk, Sealed};
use super::epoch::Epoch;
use super::message::{Answer, Entry, Identifier, Order, Settling};
use super::planted::Planted;
use super::reads::Read;
use super::site::Site;
use super::stream::Found;
use super::stream_id::StreamId;
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::RequestId;
use rhumb_core::{Effects, Table, Time, work};
use std::collections::BTreeMap;

/// Requests on their way.
#[derive(Debug, Default)]
pub(super) struct Coordinator {
    /// By stream of the region.
    desks: Vec<Desk>,
    /// When this site sealed epochs that clients wait for and that are not settled.
    ended: BTreeMap<Epoch, Time>,
    /// How long such took until they were.
    pub(super) settling: Settling,
    /// Agreed on, with the tick in which they came.
    running: BTreeMap<Identifier, (RequestId, u64)>,
    /// The highest epoch that another coordinator has sealed.
    heard: Epoch,
    /// The tick until which it is not quiet.
    awake_until: u64,
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
        if self.coordinator.desks.iter().any(|desk| desk.queue.is_full()) {
            fx.count("catenae.queue_full");
            let full = "too many transactions wait for the end of an epoch already. Try again later".into();
            return fx.answer(id, Answer::Failed(TxnError::Unavailable(full)));
        }
        if self.holds_clients_back() {
            fx.count("catenae.backlog_full");
            return fx.answer(id, Answer::Failed(TxnError::Unavailable(self.why_too_much_waits())));
        }
        self.stay_awake();
        self.direct(Asked { by: Asker::Client(id), transaction, since: self.ticks, stays: false }, false, fx);
    }

    /// True for a secondary coordinator that has nothing to say.
    pub(super) fn only_stands_by(&self) -> bool {
        self.me.shard >= self.config.coordinators && !self.streams[self.own()].leads()
    }

    /// Sends a client to the coordinator, which is asked what is new: should it not answer, this site is to take over.
    pub(super) fn refuse(&mut self, id: RequestId, fx: &mut Effects<Site>) {
        self.stay_awake();
        let stream = self.streams[self.own()].view();
        let coordinator = stream.promised().leader;
        self.tell_stream(self.own(), Event::Ask(coordinator), fx);
        let region = self.topology.name(coordinator.region);
        let why = format!("this site stands by; connect to site {region}/{}, which coordinates its region", coordinator.shard);
        fx.answer(id, Answer::Failed(TxnError::Unavailable(why)));
    }

    /// A read that must see all that ended before it: it waits for an epoch that this site seals from now on.
    pub(super) fn read_strictly(&mut self, read: Read) {
        let own = self.own();
        self.coordinator.desk(own).reads.push(read);
    }

    /// This region's vote, to be sent with the next epoch.
    pub(super) fn vote(&mut self, order: Order) {
        self.coordinator.desk(StreamId::first(self.me.region)).orders.push(order);
    }

    /// Drops votes that are not sent: another site speaks for the region.
    pub(super) fn forget_votes(&mut self) {
        self.coordinator.desk(StreamId::first(self.me.region)).orders.clear();
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
            && self.forwarding.is_idle()
            && self.no_read_waits()
            && self.ledger.is_empty()
            && self.epochs.is_empty()
            && self.streams.iter().all(|stream| stream.view().says_nothing_new())
    }

    /// The epoch that ends now, by this site's clock or those of the others; by those of the others alone if it is quiet.
    pub(super) fn ending(&self) -> Epoch {
        if self.is_quiet() {
            return self.coordinator.heard;
        }
        Epoch::ended_by(self.now, self.config.epoch).max(self.coordinator.heard)
    }

    /// The epoch up to which a stream should have spoken. Who only stands by seals nothing, so that nobody can keep pace with its
    /// clock: it goes by the epochs of others, save for the coordinator whose place it is to take.
    pub(super) fn due(&self, stream: StreamId) -> Epoch {
        if self.only_stands_by() && stream.region() != self.me.region { self.coordinator.heard } else { self.ending() }
    }

    /// Seals the epoch that ends now in a stream that this site leads, if there is a new one and not too many are under way.
    pub(super) fn seal(&mut self, id: StreamId, fx: &mut Effects<Site>) -> Option<agreement::Sealed> {
        let last = self.streams[id].view().last_epoch().max(self.coordinator.desk(id).epoch);
        let mut epoch = self.ending();
        if epoch <= last && self.is_quiet() {
            return None;
        }
        if epoch <= last {
            // Not long ahead of this clock: it will come. Far ahead, a clock was wrong: on, at a slower pace. What others have sealed says
            // nothing about that, for theirs may have been just as wrong, or they may be quiet.
            let desk = self.coordinator.desk(id);
            desk.stuck += 1;
            let by_clock = Epoch::ended_by(self.now, self.config.epoch);
            if last.0.saturating_sub(by_clock.0) <= 2 * self.config.ahead_epochs || desk.stuck < STUCK_TICKS {
                return None;
            }
            fx.count("catenae.clock_behind");
            epoch = last.plus(1);
        }
        let desk = self.coordinator.desk(id);
        desk.stuck = 0;
        let stream = self.streams[id].view();
        let is_unheard = stream.end() - stream.chosen() >= UNCHOSEN_MAX || stream.unchosen_bytes() >= UNCHOSEN_BYTES_MAX;
        if is_unheard || self.is_far_ahead(id) {
            fx.count("catenae.too_far_ahead");
            return None;
        }
        let is_full = self.epochs.backlog.is_full();
        let room = if is_full { 0 } else { BATCH_BYTES_MAX };
        let room = if self.rules.breaks(Planted::BatchUnbounded) { usize::MAX } else { room };
        let desk = self.coordinator.desk(id);
        let asked: Vec<(u16, Asked)> = (0..).zip(desk.take_batch(epoch, room)).collect();
        let window = self.config.window_epochs;
        let reads = std::mem::take(&mut desk.reads);
        let window = if self.rules.breaks(Planted::LateVoteCounts) { u64::MAX } else { window };
        let orders = self.coordinator.desk(id).take_orders(|order| epoch <= order.epoch.plus(window));
        let batch = asked.iter().map(|(_, asked)| asked.transaction.clone()).collect();
        let entry = Entry { author: self.me, epoch, batch, orders: orders.clone() };
        if (!asked.is_empty() || !reads.is_empty()) && self.coordinator.ended.len() < MEASURED_MAX {
            self.coordinator.ended.insert(epoch, self.now);
        }
        let forwarded = asked.iter().filter_map(|(place, asked)| match asked.by {
            Asker::Client(_) => None,
            Asker::Site { site, name, .. } => Some((site, name, *place)),
        });
        let forwarded = forwarded.collect();
        let desk = self.coordinator.desk(id);
        desk.sealed.insert(epoch, Sealed { asked, reads, orders });
        desk.epoch = epoch;
        Some(agreement::Sealed { entry, forwarded })
    }

    /// An entry of a stream of this region is chosen: what became of that which this site has sealed?
    pub(super) fn resolve_sealed(&mut self, id: StreamId, found: &Found, fx: &mut Effects<Site>) {
        let Found { entry, covered, void, .. } = found;
        let is_own = id == self.own();
        if !*void
            && entry.author == self.me
            && let Some(sealed) = self.coordinator.desk(id).sealed.remove(&entry.epoch)
        {
            if is_own {
                self.forwarding.has_spoken(entry.epoch);
            }
            for (place, asked) in sealed.asked {
                if let Asker::Client(request) = asked.by {
                    self.coordinator.runs(Identifier { epoch: entry.epoch, stream: id, place }, request, asked.since);
                }
            }
            sealed.reads.into_iter().for_each(|read| self.read_once_settled(entry.epoch, read, fx));
        }
        let Coordinator { desks, ended, .. } = &mut self.coordinator;
        let desk = &mut desks[usize::from(id.number())];
        let later = desk.sealed.split_off(&covered.plus(1));
        for (epoch, lost) in std::mem::replace(&mut desk.sealed, later).into_iter().rev() {
            fx.count("catenae.lost_batch");
            ended.remove(&epoch);
            desk.reads.extend(lost.reads);
            desk.orders.extend(lost.orders);
            lost.asked.into_iter().rev().for_each(|(_, asked)| desk.queue.push_front(asked));
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
        self.expire_forwarded(deadline, fx);
        if self.only_stands_by() {
            // What was not sealed while it led never will be.
            deadline = self.ticks;
        }
        let mut reads = Vec::new();
        for desk in &mut self.coordinator.desks {
            reads.append(&mut desk.reads);
            while let Some(asked) = desk.queue.pop_if(|asked| asked.since <= deadline) {
                let why = "this region could not agree with the others on an epoch in time; nothing was committed";
                asked.fail(TxnError::Unavailable(why.into()), fx);
            }
        }
        self.reads.give_up(&mut reads, deadline, fx);
        let own = self.own();
        self.coordinator.desk(own).reads = reads;
        let deadline = self.ticks - self.config.deadline_epochs;
        let Coordinator { desks, ended, .. } = &mut self.coordinator;
        for (epoch, sealed) in desks.iter_mut().flat_map(|desk| &mut desk.sealed) {
            work::add(1 + sealed.asked.len() + sealed.reads.len());
            for (_, asked) in sealed.asked.extract_if(.., |(_, asked)| asked.since <= deadline) {
                asked.fail(TxnError::Unknown("the other regions have not confirmed it in time".into()), fx);
            }
            self.reads.give_up(&mut sealed.reads, deadline, fx);
            if sealed.asked.is_empty() && sealed.reads.is_empty() {
                ended.remove(epoch);
            }
        }
        work::add(self.coordinator.running.len());
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
    /// In a region of so many coordinators.
    pub(super) fn new(coordinators: u16) -> Coordinator {
        Coordinator { desks: (0..coordinators).map(|_| Desk::default()).collect(), ..Coordinator::default() }
    }

    /// Lists its tables; `transactions_max` at the most are agreed on and not settled.
    pub(super) fn tables(&self, transactions_max: usize, visit: &mut dyn FnMut(Table)) {
        for desk in &self.desks {
            visit(Table::new("desk.queue", desk.queue.len(), QUEUE_MAX + FORWARDED_MAX + UNCHOSEN_MAX as usize * BATCH_MAX));
            visit(Table::new("desk.reads", desk.reads.len(), WAITING_READS_MAX));
            visit(Table::new("desk.orders", desk.orders.len(), 2 * AHEAD_MAX as usize));
            // Where it is not quiet, an empty epoch is on its way all the time.
            visit(Table::new("desk.sealed", desk.sealed.len(), UNCHOSEN_MAX as usize).stays());
        }
        visit(Table::new("coordinator.ended", self.ended.len(), MEASURED_MAX));
        visit(Table::new("coordinator.running", self.running.len(), transactions_max));
    }

    /// What this site has in hand for a stream of its region.
    pub(super) fn desk(&mut self, stream: StreamId) -> &mut Desk {
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

    /// What a client asked for in tick `since` is agreed on.
    pub(super) fn runs(&mut self, identifier: Identifier, id: RequestId, since: u64) {
        self.running.insert(identifier, (id, since));
    }

    /// True if nothing is on its way but empty epochs.
    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.desks.iter().all(Desk::is_idle)
    }
}

#[cfg(test)]
mod tests;
