//! The coordinator of a region: takes its clients' transactions, and seals them as a batch at the end of each epoch.
//!
//! ```text
//!   client ──▶ queue ── end of epoch ──▶ sealed ── chosen ──▶ agreed on ── run ──▶ answered
//!                ▲                          │                        (runs.rs)
//!                └── another entry covers the epoch: lost, for certain ──┘
//! ```
//!
//! A region where nothing has been asked or told for a while is *quiet*: it seals an epoch only once another region has, so that regions that are not
//! quiet need not wait for it. When all are quiet, nothing is sent or written, and the next transaction takes a whole round trip, until all regions
//! have received its batch.
//!
//! Epochs end where the clock says so, or where another region that is ahead says so; a site never seals an epoch twice.
//! The *coordinator epoch* is the last one sealed. The *execution epoch* is the last whose batches are all here
//! ([`Epochs`](super::epochs::Epochs)). The offset between the two grows when messages are delayed and shrinks as the backlog
//! is executed; a stream that stands still for longer than the delay tolerance is [taken over](super::agreement).
//!
//! Invariants: a site seals an epoch of a stream once; a transaction is in a queue, in one sealed batch, or agreed on; it goes back from a
//! sealed batch to its queue only when the stream covers the epoch without that batch.
//!
//! Source: section V for sealing; VIII.B for the two epochs. There a message has its execution epoch by its receipt; here the execution
//! epoch is the last that is complete.

mod stream_state;

pub(super) use stream_state::Confirmed;

use super::agreement::{Moment, Sealed};
use super::config::{BATCH_BYTES_MAX, MEASURED_MAX, UNCHOSEN_BYTES_MAX, UNCHOSEN_MAX};
use super::context::Context;
use super::epoch::Epoch;
use super::log::Log;
use super::message::Settling;
use super::planted::Planted;
use super::stream_id::StreamId;
use rhumb_commit::transaction::TxnError;
use rhumb_core::{Table, Time};
use std::collections::BTreeMap;
use stream_state::StreamState;

/// The coordinator of a site: what its clients ask, until it is agreed on.
#[derive(Debug)]
pub(super) struct Coordinator {
    /// By stream of the region.
    streams: Vec<StreamState>,
    /// When this site sealed epochs that clients wait for and that are not settled.
    ended: BTreeMap<Epoch, Time>,
    /// How long such took until they were.
    settling: Settling,
}

impl Coordinator {
    /// In a region of so many coordinators.
    pub(super) fn new(coordinators: u16) -> Coordinator {
        let streams = (0..coordinators).map(|_| StreamState::default()).collect();
        Coordinator { streams, ended: BTreeMap::new(), settling: Settling::default() }
    }

    /// Lists its tables.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        self.streams.iter().for_each(|state| state.tables(visit));
        visit(Table::new("coordinator.ended", self.ended.len(), MEASURED_MAX));
    }

    /// What this site has in hand for a stream of its region.
    pub(super) fn stream(&self, stream: StreamId) -> &StreamState {
        &self.streams[usize::from(stream.number())]
    }

    /// The same, to be given something.
    pub(super) fn stream_mut(&mut self, stream: StreamId) -> &mut StreamState {
        &mut self.streams[usize::from(stream.number())]
    }

    /// The coordinator epoch.
    pub(super) fn epoch(&self) -> Epoch {
        self.streams.iter().map(StreamState::epoch).max().unwrap_or_default()
    }

    /// How long it took to settle what this site sealed.
    pub(super) fn settling(&self) -> Settling {
        self.settling
    }

    /// True if nothing is on its way but empty epochs.
    pub(super) fn is_idle(&self) -> bool {
        self.streams.iter().all(StreamState::is_idle)
    }

    /// Strict reads whose epoch is not agreed on.
    pub(super) fn reads(&self) -> usize {
        self.streams.iter().map(StreamState::reads).sum()
    }

    /// # Errors
    /// The error that the client receives if its transaction is not taken.
    pub(super) fn check_room(&self, log: &Log, cx: &mut Context<'_>) -> Result<(), TxnError> {
        if self.streams.iter().any(StreamState::is_full) {
            cx.fx.count("catenae.queue_full");
            return Err(TxnError::Unavailable("too many transactions wait for the end of an epoch already. Try again later".into()));
        }
        if log.holds_clients_back(cx) {
            cx.fx.count("catenae.backlog_full");
            return Err(TxnError::Unavailable(log.why_too_much_waits(cx).into()));
        }
        Ok(())
    }

    /// Seals the epoch that ends now in a stream that this site leads, if there is a new one and not too many are under way.
    pub(super) fn seal(&mut self, id: StreamId, moment: &Moment, log: &Log, cx: &mut Context<'_>) -> Option<Sealed> {
        let stream = log.streams.view(id);
        let state = &mut self.streams[usize::from(id.number())];
        let epoch = state.next_epoch(stream.last_epoch(), moment, cx)?;
        let is_unheard = stream.end() - stream.chosen() >= UNCHOSEN_MAX || stream.unchosen_bytes() >= UNCHOSEN_BYTES_MAX;
        if is_unheard || moment.is_far_ahead {
            cx.fx.count("catenae.too_far_ahead");
            return None;
        }
        let room = if log.runs.backlog().is_full() { 0 } else { BATCH_BYTES_MAX };
        let room = if cx.rules.breaks(Planted::BatchUnbounded) { usize::MAX } else { room };
        let sealed = state.seal(epoch, room, cx);
        if state.is_waited_for(epoch) && self.ended.len() < MEASURED_MAX {
            self.ended.insert(epoch, cx.now);
        }
        Some(sealed)
    }

    /// A stream covers the epochs up to `covered`. What this site has sealed there and is not agreed on waits for the next epoch again.
    pub(super) fn take_back_lost(&mut self, id: StreamId, covered: Epoch, cx: &mut Context<'_>) {
        for epoch in self.stream_mut(id).take_back_lost(covered) {
            cx.fx.count("catenae.lost_batch");
            self.ended.remove(&epoch);
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
        let of_unsealed = if only_stands_by { cx.ticks } else { deadline };
        self.streams.iter_mut().for_each(|state| state.expire_queue(of_unsealed, cx));
        self.streams.iter_mut().for_each(|state| state.expire_reads(of_unsealed, cx));
        for epoch in self.streams.iter_mut().flat_map(|state| state.expire_sealed(deadline, cx)) {
            self.ended.remove(&epoch);
        }
    }
}

#[cfg(test)]
mod tests;
