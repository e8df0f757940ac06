//! The log of a site: what is agreed on in its streams, and how far that is scheduled and run. Other roles see it and change nothing in it.
//! It also decides the flow control: how much may be agreed on and not settled.
//!
//! An epoch is run once the entries of all streams are there. If one stream stands still, the entries of the others wait at every site until somebody
//! may take that stream over. So beyond a bound of waiting transactions a site holds its own clients back and seals epochs without transactions, and
//! beyond a bound of waiting entries it seals none. The stream that all wait for is never held back. All sites together hold no more than these
//! bounds, and what was under way in every region when they noticed. A site that is slower than the others drops entries for which it has no room and
//! asks for them later: it falls behind, and its memory stays bounded.

use super::config::{AHEAD_MAX, FLOODED_FACTOR};
use super::context::{Context, Shared};
use super::epoch::Epoch;
use super::epochs::Epochs;
use super::message::{Entry, Identifier};
use super::runs::Runs;
use super::stream_id::StreamId;
use super::streams::Streams;
use rhumb_commit::one_shot::operation::Transaction;

/// Streams, epochs and runs.
pub(super) struct Log {
    pub(super) streams: Streams,
    pub(super) epochs: Epochs,
    pub(super) runs: Runs,
}

impl Log {
    /// True if too much waits for this site to take more transactions of its clients.
    pub(super) fn holds_clients_back(&self, cx: &Shared) -> bool {
        self.runs.backlog().is_full() || self.is_far_ahead(cx.own())
    }

    /// True if too many entries of the stream wait for other streams to add more to it.
    pub(super) fn is_far_ahead(&self, stream: StreamId) -> bool {
        self.streams.view(stream).is_ahead_of(self.epochs.execution(), AHEAD_MAX)
    }

    /// True if there is no room for more entries of a stream for which nothing here waits.
    pub(super) fn is_flooded(&self, stream: StreamId) -> bool {
        let (said, execution) = (self.streams.view(stream), self.epochs.execution());
        let is_full = self.runs.backlog().has(FLOODED_FACTOR) || said.is_ahead_of(execution, FLOODED_FACTOR as u64 * AHEAD_MAX);
        is_full && said.covered() > execution
    }

    /// The error for a client whose transaction is not taken because too much waits.
    pub(super) fn why_too_much_waits(&self, cx: &Shared) -> String {
        let (waiting, execution) = (self.runs.backlog().len(), self.epochs.execution());
        let stands_still = |id: &StreamId| self.streams.view(*id).covered() <= execution;
        let of = cx.streams().find(stands_still).map_or("a region", |id| cx.topology.name(id.region()));
        format!(
            "{waiting} transactions are agreed on and wait to be run; the epochs of {of} are known up to {execution} only. Try again later"
        )
    }

    /// True if a stream is to be asked for what is missing here. While too much waits, only those that all the others wait for.
    pub(super) fn takes_more(&self, stream: StreamId) -> bool {
        !self.runs.backlog().is_full() || self.streams.view(stream).covered() <= self.epochs.execution()
    }

    /// True if nothing is under way in it but empty epochs.
    pub(super) fn is_idle(&self) -> bool {
        self.epochs.are_idle() && self.runs.are_idle() && self.streams.say_nothing_new()
    }

    /// True if a transaction has run.
    pub(super) fn has_run(&self, identifier: Identifier) -> bool {
        identifier.epoch <= self.epochs.execution() && self.runs.ledger().footprint(identifier).is_none()
    }

    /// The stream in which this site carries a transaction: that of its namespace if it leads that, or its own.
    pub(super) fn carrier(&self, transaction: &Transaction, cx: &Shared) -> StreamId {
        let stream = cx.stream_of(transaction);
        if self.streams.leads(stream) { stream } else { cx.own() }
    }

    /// An entry is chosen, and counts.
    pub(super) fn take_entry(&mut self, id: StreamId, entry: Entry, cx: &mut Context<'_>) {
        if entry.epoch > self.epochs.settled() {
            self.runs.agree(&entry.batch);
        }
        self.epochs.take_entry(id, entry, cx);
    }

    /// The epochs whose batches are all here now, to be scheduled. This site has sealed those up to `sealed`.
    pub(super) fn complete(&mut self, sealed: Epoch, cx: &Shared) -> Vec<Epoch> {
        self.epochs.complete(self.streams.complete(sealed, cx))
    }

    /// All batches of an epoch are here: registers its transactions, and finds those that conflict.
    pub(super) fn schedule(&mut self, epoch: Epoch, cx: &mut Context<'_>) {
        let conflicts = self.runs.register(self.epochs.take_batches(epoch));
        self.epochs.schedule(epoch, conflicts, self.runs.ledger(), cx);
    }

    /// Gives transactions their places as far as votes have decided.
    pub(super) fn judge(&mut self, cx: &mut Context<'_>) {
        let places = self.epochs.judge(&self.streams, self.runs.ledger(), cx);
        places.into_iter().for_each(|place| self.runs.place(place));
    }

    /// Moves on what is settled. Returns the last epoch that is, if that is news.
    pub(super) fn settle(&mut self) -> Option<Epoch> {
        let settled = self.epochs.settle(self.runs.ledger().first_unsettled())?;
        self.runs.forget(settled);
        Some(settled)
    }
}
