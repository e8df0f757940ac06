//! What the coordinator, forwarding and chains see of the streams and epochs of their site, and the flow control that follows from both:
//! how much may be agreed on and not settled.
//!
//! An epoch is run once the entries of all streams are there. If one stands still, all that the others say meanwhile waits, at every
//! site, and for as long as nobody may take that stream over. So each site holds its own clients back beyond a bound, and seals epochs
//! without transactions; and beyond a number of entries that wait so, it seals none. The stream that all wait for is never held back by
//! that. Together the sites hold no more than that, and what was under way in every region when they noticed. A site that is slower than
//! the others does not listen to what it has no room for, and asks for it later: it falls behind, and its memory stays bounded.

use super::config::{AHEAD_MAX, FLOODED_FACTOR};
use super::context::Shared;
use super::epoch::Epoch;
use super::epochs::Epochs;
use super::stream_id::StreamId;
use super::streams::Streams;
use rhumb_core::RegionId;

/// What other roles see of streams and epochs.
pub(super) struct Near<'a> {
    pub(super) streams: &'a Streams,
    pub(super) epochs: &'a Epochs,
}

impl Near<'_> {
    /// True if so much waits that this site takes no more of its clients.
    pub(super) fn holds_clients_back(&self, cx: &Shared) -> bool {
        self.epochs.backlog().is_full() || self.is_far_ahead(cx.own())
    }

    /// True if so much that is said in a stream waits for others that no more is said in it.
    pub(super) fn is_far_ahead(&self, stream: StreamId) -> bool {
        self.streams.view(stream).is_ahead_of(self.epochs.execution(), AHEAD_MAX)
    }

    /// True if there is no room for what is said in a stream, which nothing here waits for.
    pub(super) fn is_flooded(&self, stream: StreamId) -> bool {
        let (said, execution) = (self.streams.view(stream), self.epochs.execution());
        let is_full = self.epochs.backlog().has(FLOODED_FACTOR) || said.is_ahead_of(execution, FLOODED_FACTOR as u64 * AHEAD_MAX);
        is_full && said.covered() > execution
    }

    /// What a client is told that asks for more than is taken.
    pub(super) fn why_too_much_waits(&self, cx: &Shared) -> String {
        let (waiting, execution) = (self.epochs.backlog().len(), self.epochs.execution());
        let stands_still = |id: &StreamId| self.streams.view(*id).covered() <= execution;
        let of = cx.streams().find(stands_still).map_or("a region", |id| cx.topology.name(id.region()));
        format!(
            "{waiting} transactions are agreed on and wait to be run; the epochs of {of} are known up to {execution} only. Try again later"
        )
    }

    /// True if a stream is to be asked for what is missing here. While too much waits, only those that all the others wait for.
    pub(super) fn takes_more(&self, stream: StreamId) -> bool {
        !self.epochs.backlog().is_full() || self.streams.view(stream).covered() <= self.epochs.execution()
    }

    /// True if somebody else speaks for `region`: one of its streams has spoken of epochs far after `ending`.
    pub(super) fn is_passed_over(&self, region: RegionId, ending: Epoch, cx: &Shared) -> bool {
        let far = ending.plus(cx.config.window_epochs);
        cx.streams().any(|id| id.region() == region && self.streams.view(id).covered() > far)
    }
}
