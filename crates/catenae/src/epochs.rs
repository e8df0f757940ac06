//! From agreed batches to settled epochs: scheduling, speculation, votes, execution.
//!
//! ```text
//!   batches of all streams here ─▶ scheduled ─▶ no conflict ───────────────────────────────▶ placed ─▶ run ─▶ settled
//!                                      └─▶ conflict ─▶ chains ─▶ vote ─▶ votes of a majority ───┘
//! ```
//!
//! All that is decided here follows from the streams alone: which transactions an epoch holds, which of them conflict, whose vote
//! counts (it stands in an entry at most `window_epochs` later), and so every place and every value. Hence all regions settle
//! the same, and a site that restarts may simply do it again: it reads as of the transaction's timestamp, and writes the
//! same versions.

use super::backlog::Backlog;
use super::chains::EpochChains;
use super::config::Config;
use super::epoch::Epoch;
use super::message::{Entry, Identifier};
use super::planted::{Planted, local_order};
use super::site::Site;
use super::speculation::Conflicts;
use super::stream_id::StreamId;
use super::validation::{Execution, Verdict, Votes};
use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_core::{Effects, work};
use std::collections::{BTreeMap, BTreeSet};

/// What is agreed on of an epoch.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) batches: BTreeMap<StreamId, Vec<Transaction>>,
    pub(super) votes: Votes,
    /// Once all batches are here: the transactions that conflict, and what they touch.
    pub(super) conflicts: Option<Conflicts>,
    pub(super) footprints: BTreeMap<Identifier, Footprint>,
    pub(super) chains: EpochChains,
    /// So many votes have been judged.
    judged: usize,
    /// All of them have their place.
    is_placed: bool,
}

impl Content {
    /// True while the votes have to give its conflicting transactions their places.
    pub(super) fn is_judged(&self) -> bool {
        self.conflicts.is_some() && !self.is_placed
    }
}

/// The epochs that are not settled.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    pub(super) contents: BTreeMap<Epoch, Content>,
    /// All up to it are scheduled.
    scheduled: Epoch,
    /// Those of them whose conflicting transactions have not all their places.
    undecided: BTreeSet<Epoch>,
    /// The execution epoch: the batches of all up to it are here.
    pub(super) execution: Epoch,
    /// All up to it is settled.
    pub(super) settled: Epoch,
    pub(super) backlog: Backlog,
}

impl Epochs {
    /// True if nothing is known of an epoch that is not settled.
    pub(super) fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }
}

impl Site {
    /// An entry is chosen, and counts.
    pub(super) fn take_entry(&mut self, id: StreamId, entry: Entry) {
        let Config { window_epochs, .. } = self.config;
        if !entry.is_empty() {
            self.stay_awake();
        }
        let epochs = &mut self.epochs;
        for order in entry.orders {
            let counts = order.epoch < entry.epoch && entry.epoch <= order.epoch.plus(window_epochs);
            let counts = counts || self.rules.breaks(Planted::LateVoteCounts);
            if counts && id.is_first() && order.epoch > epochs.settled {
                epochs.contents.entry(order.epoch).or_default().votes.cast(id.region(), order);
            }
        }
        if !entry.batch.is_empty() && entry.epoch > epochs.settled {
            epochs.backlog.add(&entry.batch);
            epochs.contents.entry(entry.epoch).or_default().batches.insert(id, entry.batch);
        }
    }

    /// Takes the epochs as far as what is agreed on allows.
    pub(super) fn execute(&mut self, fx: &mut Effects<Site>) {
        let complete = self.streams.iter().map(|stream| stream.view().covered()).min().unwrap_or_default();
        let complete = if self.rules.breaks(Planted::AbandonedByTimer) { self.complete_by_timer() } else { complete };
        self.epochs.execution = self.epochs.execution.max(complete);
        // What came in since: looking at all that is not settled for each message would make a site that is behind fall back further.
        let scheduled = self.epochs.scheduled;
        if scheduled < complete {
            let due: Vec<Epoch> = self.epochs.contents.range(scheduled.plus(1)..=complete).map(|(epoch, _)| *epoch).collect();
            work::add(due.len());
            self.epochs.scheduled = complete;
            due.into_iter().for_each(|epoch| self.schedule(epoch, fx));
        }
        self.close_votes();
        // What votes decide changes with another vote only.
        let Epochs { contents, undecided, .. } = &self.epochs;
        let has_more = |epoch: &&Epoch| contents.get(*epoch).is_some_and(|content| content.judged < content.votes.count());
        let open: Vec<Epoch> = undecided.iter().inspect(|_| work::add(1)).filter(has_more).copied().collect();
        open.into_iter().for_each(|epoch| self.judge(epoch, fx));
        self.run_ready(fx);
        self.settle(fx);
    }

    /// All batches of an epoch are here: registers its transactions and sends those that conflict on their chains.
    fn schedule(&mut self, epoch: Epoch, fx: &mut Effects<Site>) {
        let content = self.epochs.contents.get_mut(&epoch).expect("it was just listed");
        let mut transactions = Vec::new();
        for (&stream, batch) in &mut content.batches {
            let named = (0..).zip(std::mem::take(batch)).map(|(place, transaction)| (Identifier { epoch, stream, place }, transaction));
            transactions.extend(named);
        }
        work::add(transactions.len());
        let conflicts = self.ledger.register(transactions);
        let content = self.epochs.contents.get_mut(&epoch).expect("it was just listed");
        if !conflicts.is_empty() {
            fx.count("catenae.conflicting_epoch");
        }
        let footprint = |identifier: &Identifier| {
            let footprint = self.ledger.footprint(*identifier).expect("what conflicts is not settled");
            (*identifier, footprint.clone())
        };
        content.footprints = conflicts.keys().map(footprint).collect();
        content.is_placed = conflicts.is_empty();
        if !content.is_placed {
            self.epochs.undecided.insert(epoch);
        }
        content.conflicts = Some(conflicts);
        self.begin_chains(epoch, fx);
        self.take_early_visits(epoch, fx);
    }

    /// A region whose first stream has passed the window of an epoch has no vote on it any more.
    fn close_votes(&mut self) {
        let Epochs { contents, undecided, .. } = &mut self.epochs;
        for region in self.topology.regions() {
            let covered = self.streams[StreamId::first(region)].view().covered();
            for epoch in undecided.iter().take_while(|epoch| epoch.plus(self.config.window_epochs) <= covered) {
                work::add(1);
                contents.get_mut(epoch).expect("what is undecided is not settled").votes.close(region);
            }
        }
    }

    /// Gives their place to those transactions of an epoch on which the votes have decided.
    fn judge(&mut self, epoch: Epoch, fx: &mut Effects<Site>) {
        let content = self.epochs.contents.get_mut(&epoch).expect("it was just listed");
        content.judged = content.votes.count();
        let conflicts = content.conflicts.as_ref().expect("it is scheduled");
        let (me, regions) = (self.me.region, self.topology.region_count());
        let verdicts = match self.rules.breaks(Planted::DirectDependencies) {
            true => content.votes.verdicts_by(conflicts, regions, Execution::of_direct),
            false => content.votes.verdicts(conflicts, regions),
        };
        for (&identifier, verdict) in &verdicts {
            if self.ledger.is_placed(identifier) {
                continue;
            }
            let comes_before = |other: Identifier| match self.rules.breaks(Planted::FailedInLocalOrder) {
                true => local_order(other, identifier, me, regions).is_lt(),
                false => other < identifier,
            };
            if let Some(predecessors) = verdict.predecessors(&conflicts[&identifier], &verdicts, comes_before) {
                fx.count(if *verdict == Verdict::Failed { "catenae.failed_speculation" } else { "catenae.chosen" });
                self.ledger.place(identifier, predecessors);
            }
        }
        work::add(verdicts.len() + conflicts.len());
        content.is_placed = conflicts.keys().all(|identifier| self.ledger.is_placed(*identifier));
        if content.is_placed {
            self.epochs.undecided.remove(&epoch);
        }
    }

    /// Moves on what is settled, and serves the reads that waited for it.
    pub(super) fn settle(&mut self, fx: &mut Effects<Site>) {
        let first = self.ledger.first_unsettled().map_or(Epoch(u64::MAX), Epoch::previous);
        let settled = self.epochs.execution.min(first);
        if settled > self.epochs.settled {
            self.epochs.settled = settled;
            self.epochs.contents = self.epochs.contents.split_off(&settled.plus(1));
            self.epochs.undecided = self.epochs.undecided.split_off(&settled.plus(1));
            self.ledger.forget(settled);
            self.measure_settling(settled);
            self.serve_reads(fx);
        }
    }
}
