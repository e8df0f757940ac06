//! The rules that a test may break, most of them as the paper has it printed: the simulator must catch each. What is done instead stands with
//! the role that enforces the rule. In the product all [rules](rhumb_core::rules) hold.

use super::message::Identifier;
use super::stream_id::StreamId;
use rhumb_core::RegionId;
use std::cmp::Ordering;

/// A way to break a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Planted {
    /// A transaction counts as non-conflicting if no other is in its way when its own region gets to it; it is answered then.
    ConflictByTiming,
    /// Votes are compared by direct dependencies, not by fingerprints of all that came before.
    DirectDependencies,
    /// The region that received a transaction does not wait for others to hold it.
    AnsweredAtHome,
    /// A late batch is abandoned by a timer alone.
    AbandonedByTimer,
    /// An acceptor goes on accepting what a ballot that it has promised forbids.
    PromiseForgotten,
    /// A vote counts however late it comes.
    LateVoteCounts,
    /// Transactions whose speculation failed run in an order of this region's own.
    FailedInLocalOrder,
    /// A read is served at an epoch that is here, but not settled.
    ReadsUnsettled,
    /// A strict read trusts the clock for the epoch of now.
    StrictByClock,
    /// A forwarded transaction is taken back by a timer alone.
    TakenBackByTimer,
    /// A forwarded transaction that comes twice is taken twice.
    ForwardedTwice,
    /// A batch takes whatever waits, however much that is encoded.
    BatchUnbounded,
    /// A site that misses entries of a stream asks nobody for them.
    GapUnasked,
    /// A site that has learnt entries counts itself, after a restart, as holding them at a ballot above all leaders'.
    LearntIsHeld,
    /// A stream that is not asked for is found to be silent.
    SilentUnasked,
    /// A site takes a stream over although it misses what is chosen in it.
    BehindLeads,
    /// Whatever is promised at the ballot of an ask counts as an answer to it.
    PromiseOfBefore,
    /// A coordinator takes its stream back before it has what was said in it.
    ReclaimedAtOnce,
}

impl Planted {
    /// Every planted bug but those of forwarding, and those of replication that cost no promise, only progress: directed tests catch them.
    pub const ALL: [Planted; 9] = [
        Planted::ConflictByTiming,
        Planted::DirectDependencies,
        Planted::AnsweredAtHome,
        Planted::AbandonedByTimer,
        Planted::PromiseForgotten,
        Planted::LateVoteCounts,
        Planted::FailedInLocalOrder,
        Planted::ReadsUnsettled,
        Planted::StrictByClock,
    ];
    /// Those that need several coordinators in a region.
    pub const FORWARDING: [Planted; 2] = [Planted::TakenBackByTimer, Planted::ForwardedTwice];
}

/// An order of identifiers that differs from region to region.
pub(super) fn local_order(one: Identifier, other: Identifier, me: RegionId, regions: usize) -> Ordering {
    let turned = |stream: StreamId| ((stream.region().0 + me.0) % regions as u16, stream.number());
    (turned(one.stream), one.place).cmp(&(turned(other.stream), other.place))
}
