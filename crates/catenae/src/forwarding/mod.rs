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
//! The client's own site answers: it runs every transaction, and need only know which one is its client's. None of these messages has to arrive,
//! because the stream itself shows what became of a transaction. It may be sealed up to the epoch `until`. Once the stream covers that, and no entry
//! of that coordinator that counts held such a transaction since, it never runs by that name: it is
//! *taken back*: its own site carries it then, and forwards it no more. If an entry did, and the coordinator did not say that it was
//! this one, its outcome is unknown.
//!
//! Invariants:
//!
//! 1. By one name a transaction is sealed in one entry that counts, at the most. A message that comes twice in one incarnation of a coordinator is
//!    known by its name, until no epoch is left to it. One that was sealed in an earlier incarnation, in epoch `e`, is refused: `until`
//!    is at most `e + FORWARD_EPOCHS_MAX` then, and the new incarnation has `e` on its disk.
//! 2. It runs by one name, at the most: it is taken back only when the one before can run no more.
//! 3. No two transactions of a site have one name, in all its incarnations: an incarnation is called by the first entry of its own that counted,
//!    and has forwarded nothing before that.
//!
//! The stream's ballot says to whom a transaction is forwarded, but no promise depends on that choice. If another region leads the stream, the
//! client's site carries the transaction itself.
//!
//! Source: section IV: coordinators share a region by namespace.

mod away;

use super::asked::{Agreed, Asked, Asker};
use super::config::{FORWARD_EPOCHS, FORWARDED_BYTES_MAX, FORWARDED_MAX, QUEUE_MAX};
use super::context::Context;
use super::coordinator::Coordinator;
use super::epoch::Epoch;
use super::log::Log;
use super::message::{Answer, Entry, Forward, Forwarded, Note};
use super::planted::Planted;
use super::stream_id::StreamId;
use away::{Away, Aways, Left, Way};
use rhumb_commit::transaction::TxnError;
use rhumb_core::{SiteId, Table, work};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A site's part in it, for its own clients and for other sites.
#[derive(Debug, Default)]
pub(super) struct Forwarding {
    /// The name of this incarnation, once it may forward.
    incarnation: Option<Epoch>,
    last: u64,
    away: Aways,
    /// Taken from others, until which epoch each.
    taken: BTreeMap<Taken, Epoch>,
}

/// A transaction that another site has forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Taken {
    stream: StreamId,
    site: SiteId,
    name: Forwarded,
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

    /// An entry that this incarnation of the site has sealed counts.
    pub(super) fn has_spoken(&mut self, epoch: Epoch) {
        self.incarnation.get_or_insert(epoch);
    }

    fn name(&mut self) -> Option<Forwarded> {
        let has_room = self.away.len() < FORWARDED_MAX && self.away.bytes() < FORWARDED_BYTES_MAX;
        let incarnation = self.incarnation.filter(|_| has_room)?;
        self.last += 1;
        Some(Forwarded { incarnation, number: self.last })
    }

    /// Sends what a client asks to the coordinator of its namespace, if that is at another site of the region. Returns it if this
    /// site is to carry it. The present epoch is `ending`.
    pub(super) fn forward(&mut self, asked: Asked, log: &Log, ending: Epoch, cx: &mut Context<'_>) -> Option<Asked> {
        let stream = cx.stream_of(&asked.transaction);
        let view = log.streams.view(stream);
        let to = view.promised().leader;
        let is_elsewhere = stream != cx.own() && to.region == cx.me.region && to != cx.me;
        let (Asker::Client(id), true) = (asked.by, is_elsewhere && !asked.stays) else { return Some(asked) };
        let Some(name) = self.name() else { return Some(asked) };
        let Asked { transaction, since, .. } = asked;
        let until = ending.max(view.last_epoch()).plus(FORWARD_EPOCHS);
        cx.fx.count("catenae.forwarded");
        cx.fx.send(to, Note::Forward(Forward { stream, name, until, transaction: transaction.clone() }));
        self.away.insert(name, Away::new(id, transaction, since, Way { stream, to, until, after: view.chosen() }));
        None
    }

    /// Another site of the region forwards a transaction. Returns it if this site takes it.
    pub(super) fn on_forward(
        &mut self,
        site: SiteId,
        forward: Forward,
        log: &Log,
        coordinator: &Coordinator,
        cx: &mut Context<'_>,
    ) -> Option<Asked> {
        let Forward { stream, name, until, transaction } = forward;
        let taken = Taken { stream, site, name };
        let is_new = !self.taken.contains_key(&taken) || cx.rules.breaks(Planted::ForwardedTwice);
        let may_seal = log.streams.leads(stream) && coordinator.stream(stream).takes_forwarded(until, log.streams.view(stream).covered());
        if !(is_new && may_seal && self.taken.len() < QUEUE_MAX) {
            cx.fx.count("catenae.not_taken");
            return None;
        }
        self.taken.insert(taken, until);
        cx.stay_awake();
        Some(Asked { by: Asker::Site { site, name, until }, transaction, since: cx.ticks, stays: true })
    }

    /// A coordinator has sealed what this site forwarded to it, in its entry at place `index`. Returns the transaction if it is agreed on.
    pub(super) fn on_sealed(
        &mut self,
        by: SiteId,
        name: Forwarded,
        index: u64,
        place: u16,
        log: &Log,
        cx: &mut Context<'_>,
    ) -> Option<Agreed> {
        self.away.say(by, name, index, place);
        self.find(name, log, cx)
    }

    /// An entry of a stream of this region is chosen and counts. Returns the transactions in it that this site has forwarded and that are
    /// known to stand there.
    pub(super) fn on_chosen(&mut self, stream: StreamId, index: u64, entry: &Entry, log: &Log, cx: &mut Context<'_>) -> Vec<Agreed> {
        let said = self.away.see(stream, index, entry);
        said.into_iter().filter_map(|name| self.find(name, log, cx)).collect()
    }

    /// If it is known where a forwarded transaction stands, it is answered once it runs. If that is heard too late, what came of it is
    /// gone: what it returned is kept for nobody else.
    fn find(&mut self, name: Forwarded, log: &Log, cx: &mut Context<'_>) -> Option<Agreed> {
        let (Away { id, since, .. }, identifier) = self.away.find(name)?;
        if log.has_run(identifier) {
            cx.fx.count("catenae.sealed_late");
            let why = "it ran before its coordinator had said that it would";
            cx.fx.answer(id, Answer::Failed(TxnError::Unknown(why.into())));
            return None;
        }
        Some(Agreed { identifier, client: id, since })
    }

    /// At the end of an epoch: forgets the names of transactions of others that no epoch is left to.
    pub(super) fn forget_past(&mut self, log: &Log) {
        work::add(self.taken.len());
        self.taken.retain(|taken, until| *until > log.streams.view(taken.stream).covered());
    }

    /// Takes back what was forwarded and can run no more by its name, as `stream` covers all epochs that were left to it: the last that went
    /// first. This site carries it then.
    pub(super) fn take_back(&mut self, stream: StreamId, log: &Log, cx: &mut Context<'_>) -> Vec<Asked> {
        let covered = log.streams.view(stream).covered();
        let by_timer = cx.rules.breaks(Planted::TakenBackByTimer);
        let ticks = cx.ticks;
        let is_over = |away: &Away| away.way.until <= covered || by_timer && ticks > away.since + 4;
        let over = self.away.remove_if(|away| away.way.stream == stream && is_over(away));
        let back = over.into_iter().rev().filter_map(|left| match left {
            Left::MayRun(Away { id, .. }) => {
                cx.fx.answer(id, Answer::Failed(TxnError::Unknown("the coordinator that had it was lost".into())));
                None
            }
            Left::NeverRuns(Away { id, transaction, since, .. }) => {
                cx.fx.count("catenae.taken_back");
                Some(Asked { by: Asker::Client(id), transaction: Arc::unwrap_or_clone(transaction), since, stays: true })
            }
        });
        back.collect()
    }

    /// Tells clients that have waited since `deadline` that the outcome is unknown.
    pub(super) fn expire(&mut self, deadline: u64, cx: &mut Context<'_>) {
        for Left::MayRun(away) | Left::NeverRuns(away) in self.away.remove_if(|away| away.since <= deadline) {
            let why = "the coordinator that it was forwarded to has not confirmed it in time";
            cx.fx.answer(away.id, Answer::Failed(TxnError::Unknown(why.into())));
        }
    }
}

#[cfg(test)]
mod tests;
