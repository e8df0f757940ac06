//! The rules that a test may break, most of them as the paper has it printed, and what is done instead: the simulator must catch each. In
//! the product all [rules](rhumb_core::rules) hold.

use super::agreement::Agreement;
use super::epoch::Epoch;
use super::fetch::Fetch;
use super::message::{Answer, Entry, Identifier};
use super::site::{Job, Site};
use super::stream_id::StreamId;
use rhumb_commit::one_shot::execution;
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_core::{Effects, Loaded, RegionId, Rules};
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

impl Site {
    /// The same site by other rules.
    pub fn with_rules(mut self, rules: Rules<Planted>) -> Site {
        self.rules = rules;
        if rules.breaks(Planted::AnsweredAtHome) {
            let own = self.own();
            self.streams[own] = Agreement::new(own, 1);
        }
        self
    }

    /// Answers those transactions of an own entry that nothing known here conflicts with, whatever is still to come.
    pub(super) fn answer_by_timing(&mut self, stream: StreamId, entry: &Entry, fx: &mut Effects<Site>) {
        for (place, transaction) in (0..).zip(&entry.batch) {
            let identifier = Identifier { epoch: entry.epoch, stream, place };
            let footprint = transaction.footprint();
            let alone = !self.known_batches().any(|other| other != transaction && other.footprint().conflicts(&footprint));
            if alone && footprint.ranges.is_empty() && self.ledger.is_free(&footprint) {
                let at = entry.epoch.timestamp(self.config.epoch, 0);
                self.go_on_early(identifier, transaction.clone(), Fetch::new(at.previous(), footprint.keys.into_keys().collect(), []), fx);
            }
        }
    }

    /// All transactions that are agreed on and not scheduled.
    fn known_batches(&self) -> impl Iterator<Item = &Transaction> {
        self.epochs.contents.values().flat_map(|content| content.batches.values().flatten())
    }

    /// Runs a transaction before its place is known.
    fn go_on_early(&mut self, identifier: Identifier, transaction: Transaction, mut fetch: Fetch, fx: &mut Effects<Site>) {
        let Some(load) = fetch.next_load() else { return };
        let token = self.job(Job::Early { identifier, transaction, fetch });
        fx.load(token, load);
    }

    /// Answers it.
    pub(super) fn on_early_loaded(
        &mut self,
        identifier: Identifier,
        transaction: &Transaction,
        mut fetch: Fetch,
        loaded: Loaded,
        fx: &mut Effects<Site>,
    ) {
        fetch.take(loaded);
        let rows = fetch.finish().0.into_iter().map(|row| (row.key.clone(), row)).collect();
        if let Some(id) = self.take_request(identifier) {
            let at = identifier.epoch.timestamp(self.config.epoch, 0);
            fx.answer(id, Answer::Ran { at, outcome: execution::evaluate(transaction, rows, vec![]).0 });
        }
    }

    /// The last epoch of which all batches are here, but for those of regions that have been silent for long.
    pub(super) fn complete_by_timer(&self) -> Epoch {
        let patient = |stream: &Agreement| {
            let covered = stream.view().covered();
            if stream.silent() > self.config.tolerance_epochs { covered.max(self.coordinator.epoch()) } else { covered }
        };
        self.streams.iter().map(patient).min().unwrap_or_default()
    }
}

/// An order of identifiers that differs from region to region.
pub(super) fn local_order(one: Identifier, other: Identifier, me: RegionId, regions: usize) -> Ordering {
    let turned = |stream: StreamId| ((stream.region().0 + me.0) % regions as u16, stream.number());
    (turned(one.stream), one.place).cmp(&(turned(other.stream), other.place))
}
