//! Several coordinators in a region: a transaction is carried in the stream of its namespace, whichever site its client is connected to.
//!
//! ```text
//!   client        its site                          coordinator of the namespace
//!     │  run         │                                          │
//!     ├─────────────▶├── Forward (until, transaction) ─────────▶│
//!     │              │◀───────────────── Sealed (index, place) ─┤  end of the epoch: sync
//!     │              │◀──────────────────── Epoch (the batch) ──┤
//!     │  ran         │  chosen; all batches of the epoch here   │
//!     │◀─────────────┤  it runs here as everywhere: answered    │
//! ```
//!
//! The client's own site answers: it runs every transaction, and need only know which one is its client's. Nothing that is said here
//! has to arrive, for the stream itself tells what became of a transaction. It may be sealed up to the epoch `until`. Once
//! the stream covers that, and no entry of that coordinator that counts held such a transaction since, it never runs by that name: it is
//! *taken back*: its own site carries it then, and forwards it no more. If an entry did, and the coordinator did not say that it was
//! this one, its outcome is unknown.
//!
//! Invariants:
//!
//! 1. By one name a transaction is sealed in one entry that counts, at the most. A message that comes twice in one life of a coordinator is
//!    known by its name, until no epoch is left to it. One that was sealed in an earlier life, in epoch `e`, is refused: `until`
//!    is at most `e + FORWARD_EPOCHS_MAX` then, and the new life has `e` on its disk.
//! 2. It runs by one name, at the most: it is taken back only when the one before can run no more.
//! 3. No two transactions of a site have one name, in all its lives: a life is called by the first entry of its own that counted, and has
//!    forwarded nothing before that.
//!
//! Whom a transaction is forwarded to hangs on the stream's ballot; whoever it is, no promise hangs on it. If another region leads the
//! stream, the client's site carries the transaction itself.

use super::away::{Away, Aways, Way};
use super::config::{FORWARD_EPOCHS, FORWARD_EPOCHS_MAX, FORWARDED_BYTES_MAX, FORWARDED_MAX, QUEUE_MAX};
use super::desk::{Asked, Asker};
use super::epoch::Epoch;
use super::message::{Answer, Forward, Forwarded, Note};
use super::planted::Planted;
use super::site::Site;
use super::stream::Found;
use super::stream_id::{StreamId, coordinator_of};
use rhumb_commit::transaction::TxnError;
use rhumb_core::{Effects, SiteId, Table, work};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A site's part in it, for its own clients and for other sites.
#[derive(Debug, Default)]
pub(super) struct Forwarding {
    /// How this life is called, once it may forward.
    life: Option<Epoch>,
    last: u64,
    away: Aways,
    /// Taken from others, until which epoch each.
    taken: BTreeMap<(StreamId, SiteId, Forwarded), Epoch>,
}

impl Forwarding {
    /// Lists its tables.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("forwarding.away", self.away.len(), FORWARDED_MAX));
        visit(Table::new("forwarding.seen", self.away.seen(), usize::MAX));
        // Where it is quiet, no epoch comes that would end them.
        visit(Table::new("forwarding.taken", self.taken.len(), QUEUE_MAX).stays());
    }

    /// True if nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.away.is_empty()
    }

    /// An entry that this life of the site has sealed counts.
    pub(super) fn has_spoken(&mut self, epoch: Epoch) {
        self.life.get_or_insert(epoch);
    }

    fn name(&mut self) -> Option<Forwarded> {
        let has_room = self.away.len() < FORWARDED_MAX && self.away.bytes() < FORWARDED_BYTES_MAX;
        let life = self.life.filter(|_| has_room)?;
        self.last += 1;
        Some(Forwarded { life, number: self.last })
    }
}

impl Site {
    /// Brings what a client asks to the desk of its namespace's stream, here or at another coordinator of the region. `first`: before
    /// what waits there already.
    pub(super) fn direct(&mut self, asked: Asked, first: bool, fx: &mut Effects<Site>) {
        let stream = StreamId::new(self.me.region, coordinator_of(&asked.transaction, self.config.coordinators));
        let leader = self.streams[stream].view().promised().leader;
        let elsewhere = stream != self.own() && leader.region == self.me.region && leader != self.me;
        if let Asker::Client(id) = asked.by
            && elsewhere
            && !asked.stays
            && let Some(name) = self.forwarding.name()
        {
            let Asked { transaction, since, .. } = asked;
            let until = self.ending().max(self.streams[stream].view().last_epoch()).plus(FORWARD_EPOCHS);
            fx.count("catenae.forwarded");
            fx.send(leader, Note::Forward(Forward { stream, name, until, transaction: transaction.clone() }));
            let way = Way { stream, to: leader, until, after: self.streams[stream].view().chosen() };
            self.forwarding.away.insert(name, Away::new(id, transaction, since, way));
            return;
        }
        let here = if self.streams[stream].leads() { stream } else { self.own() };
        let queue = &mut self.coordinator.desk(here).queue;
        if first { queue.push_front(asked) } else { queue.push_back(asked) }
    }

    /// Another site of the region forwards a transaction.
    pub(super) fn on_forward(&mut self, site: SiteId, forward: Forward, fx: &mut Effects<Site>) {
        let Forward { stream, name, until, transaction } = forward;
        let covered = self.streams[stream].view().covered();
        let is_new = !self.forwarding.taken.contains_key(&(stream, site, name));
        let is_new = is_new || self.rules.breaks(Planted::ForwardedTwice);
        let leads = self.streams[stream].leads();
        let (ticks, has_room) = (self.ticks, self.forwarding.taken.len() < QUEUE_MAX);
        let desk = self.coordinator.desk(stream);
        let in_time = until > desk.epoch.max(covered) && until > desk.resumed.plus(FORWARD_EPOCHS_MAX);
        if !(is_new && leads && has_room && in_time) || desk.queue.is_full() {
            return fx.count("catenae.not_taken");
        }
        desk.queue.push_back(Asked { by: Asker::Site { site, name, until }, transaction, since: ticks, stays: true });
        self.forwarding.taken.insert((stream, site, name), until);
        self.stay_awake();
    }

    /// A coordinator has sealed what this site forwarded to it.
    pub(super) fn on_sealed(&mut self, by: SiteId, name: Forwarded, index: u64, place: u16, fx: &mut Effects<Site>) {
        self.forwarding.away.say(by, name, index, place);
        self.find_one(name, fx);
    }

    /// An entry of a stream of this region is chosen: does it have what this site forwarded?
    pub(super) fn find_forwarded(&mut self, stream: StreamId, found: &Found, fx: &mut Effects<Site>) {
        let Found { index, entry, void, .. } = found;
        if !*void {
            let said = self.forwarding.away.see(stream, *index, entry);
            said.into_iter().for_each(|name| self.find_one(name, fx));
        }
    }

    /// If it is known where a forwarded transaction stands, it is answered once it runs. If that is heard too late, what came of it is
    /// gone: what it returned is kept for nobody else.
    fn find_one(&mut self, name: Forwarded, fx: &mut Effects<Site>) {
        let Some((Away { id, since, .. }, identifier)) = self.forwarding.away.find(name) else { return };
        if identifier.epoch <= self.epochs.execution && self.ledger.footprint(identifier).is_none() {
            fx.count("catenae.sealed_late");
            let why = "it ran before its coordinator had said that it would";
            return fx.answer(id, Answer::Failed(TxnError::Unknown(why.into())));
        }
        self.coordinator.runs(identifier, id, since);
    }

    /// At the end of an epoch: takes back what can run no more by its name; forgets names that no epoch is left to; and where this site
    /// leads a stream of another coordinator no more, its clients' transactions go there.
    pub(super) fn look_after_forwarded(&mut self, fx: &mut Effects<Site>) {
        work::add(self.forwarding.taken.len());
        let streams = &self.streams;
        self.forwarding.taken.retain(|(stream, ..), until| *until > streams[*stream].view().covered());
        let (region, own) = (self.me.region, self.own());
        for stream in self.stream_ids().filter(|id| id.region() == region && *id != own) {
            self.take_back_forwarded(stream, fx);
            if !self.streams[stream].leads() {
                let mut queue = std::mem::take(&mut self.coordinator.desk(stream).queue);
                let of_clients = std::iter::from_fn(|| queue.pop()).filter(|asked| matches!(asked.by, Asker::Client(_)));
                of_clients.for_each(|asked| self.direct(asked, false, fx));
            }
        }
    }

    /// Takes back what was forwarded and can run no more by its name.
    fn take_back_forwarded(&mut self, stream: StreamId, fx: &mut Effects<Site>) {
        let covered = self.streams[stream].view().covered();
        let (by_timer, ticks) = (self.rules.breaks(Planted::TakenBackByTimer), self.ticks);
        let is_over = |away: &Away| away.way.until <= covered;
        let is_over = |away: &Away| is_over(away) || by_timer && ticks > away.since + 4;
        let back = self.forwarding.away.remove_if(|away| away.way.stream == stream && is_over(away));
        for (Away { id, transaction, since, .. }, may_run) in back.into_iter().rev() {
            if may_run {
                fx.answer(id, Answer::Failed(TxnError::Unknown("the coordinator that had it was lost".into())));
            } else {
                fx.count("catenae.taken_back");
                let transaction = Arc::unwrap_or_clone(transaction);
                self.direct(Asked { by: Asker::Client(id), transaction, since, stays: true }, true, fx);
            }
        }
    }

    /// Tells clients that have waited since `deadline` that the outcome is unknown.
    pub(super) fn expire_forwarded(&mut self, deadline: u64, fx: &mut Effects<Site>) {
        for (away, _) in self.forwarding.away.remove_if(|away| away.since <= deadline) {
            let why = "the coordinator that it was forwarded to has not confirmed it in time";
            fx.answer(away.id, Answer::Failed(TxnError::Unknown(why.into())));
        }
    }
}

#[cfg(test)]
mod tests;
