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

use super::asked::Agreed;
use super::backlog::Backlog;
use super::context::{Context, Shared};
use super::epoch::Epoch;
use super::message::{Entry, Identifier};
use super::planted::{Planted, local_order};
use super::runs::Runs;
use super::speculation::Conflicts;
use super::stream_id::StreamId;
use super::streams::Streams;
use super::validation::{Execution, Verdict, Votes};
use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_core::actor::Token;
use rhumb_core::{Loaded, RegionId, Table, work};
use std::collections::{BTreeMap, BTreeSet};

/// What is agreed on of an epoch.
#[derive(Debug, Default)]
struct Content {
    batches: BTreeMap<StreamId, Vec<Transaction>>,
    votes: Votes,
    /// Once all batches are here: the transactions that conflict.
    conflicts: Option<Conflicts>,
    /// What they touch.
    footprints: BTreeMap<Identifier, Footprint>,
    /// So many votes have been judged.
    judged: usize,
    /// All of them have their place.
    is_placed: bool,
}

/// The conflicting transactions of an epoch whose batches are all here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scheduled<'a> {
    pub(super) conflicts: &'a Conflicts,
    pub(super) footprints: &'a BTreeMap<Identifier, Footprint>,
}

/// The epochs that are not settled.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    contents: BTreeMap<Epoch, Content>,
    /// All up to it are scheduled.
    scheduled: Epoch,
    /// Those of them whose conflicting transactions have not all their places.
    undecided: BTreeSet<Epoch>,
    /// The execution epoch: the batches of all up to it are here.
    execution: Epoch,
    /// All up to it is settled.
    settled: Epoch,
    runs: Runs,
}

impl Epochs {
    /// The execution epoch.
    pub(super) fn execution(&self) -> Epoch {
        self.execution
    }

    /// All up to it is settled.
    pub(super) fn settled(&self) -> Epoch {
        self.settled
    }

    /// What is agreed on and not settled.
    pub(super) fn backlog(&self) -> &Backlog {
        self.runs.backlog()
    }

    /// The same, to be changed by tests.
    #[cfg(test)]
    pub(super) fn backlog_mut(&mut self) -> &mut Backlog {
        self.runs.backlog_mut()
    }

    /// Clients whose transactions are agreed on.
    pub(super) fn clients(&self) -> usize {
        self.runs.clients()
    }

    /// True if nothing is known of an epoch that is not settled, and no client waits for a transaction to be run.
    pub(super) fn are_idle(&self) -> bool {
        self.contents.is_empty() && self.runs.are_idle()
    }

    /// True if a transaction has run.
    pub(super) fn has_run(&self, identifier: Identifier) -> bool {
        identifier.epoch <= self.execution && self.runs.ledger().footprint(identifier).is_none()
    }

    /// The conflicting transactions of an epoch, once it is scheduled.
    pub(super) fn scheduled(&self, epoch: Epoch) -> Option<Scheduled<'_>> {
        let Content { conflicts, footprints, .. } = self.contents.get(&epoch)?;
        Some(Scheduled { conflicts: conflicts.as_ref()?, footprints })
    }

    /// True if nothing more is to come from `region` about an epoch.
    pub(super) fn has_vote(&self, epoch: Epoch, region: RegionId) -> bool {
        self.contents.get(&epoch).is_some_and(|content| content.votes.has(region))
    }

    /// The epochs whose conflicting transactions wait for votes.
    pub(super) fn undecided(&self) -> impl Iterator<Item = Epoch> {
        let undecided = |content: &Content| content.conflicts.is_some() && !content.is_placed;
        self.contents.iter().inspect(|_| work::add(1)).filter(move |(_, content)| undecided(content)).map(|(epoch, _)| *epoch)
    }

    /// Lists its tables.
    pub(super) fn tables(&self, epochs_max: usize, transactions_max: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("epochs", self.contents.len(), epochs_max));
        visit(Table::new("backlog", self.backlog().len(), transactions_max));
    }

    /// Lists the tables of what is run.
    pub(super) fn run_tables(&self, transactions_max: usize, visit: &mut dyn FnMut(Table)) {
        self.runs.tables(transactions_max, visit);
    }

    /// An earlier life had settled all up to `settled`.
    pub(super) fn resume(&mut self, settled: Epoch) {
        (self.settled, self.execution) = (settled, settled);
    }

    /// A client's transaction is agreed on.
    pub(super) fn await_run(&mut self, agreed: Agreed) {
        self.runs.await_run(agreed);
    }

    /// An entry is chosen, and counts.
    pub(super) fn take_entry(&mut self, id: StreamId, entry: Entry, cx: &mut Context<'_>) {
        if !entry.is_empty() {
            cx.stay_awake();
        }
        for order in entry.orders {
            let counts = order.epoch < entry.epoch && entry.epoch <= order.epoch.plus(cx.config.window_epochs);
            let counts = counts || cx.rules.breaks(Planted::LateVoteCounts);
            if counts && id.is_first() && order.epoch > self.settled {
                self.contents.entry(order.epoch).or_default().votes.cast(id.region(), order);
            }
        }
        if !entry.batch.is_empty() && entry.epoch > self.settled {
            self.runs.agree(&entry.batch);
            self.contents.entry(entry.epoch).or_default().batches.insert(id, entry.batch);
        }
    }

    /// The batches of all epochs up to `complete` are here. Returns those that are to be scheduled.
    pub(super) fn complete(&mut self, complete: Epoch) -> Vec<Epoch> {
        self.execution = self.execution.max(complete);
        // What came in since: looking at all that is not settled for each message would make a site that is behind fall back further.
        if self.scheduled >= complete {
            return Vec::new();
        }
        let due: Vec<Epoch> = self.contents.range(self.scheduled.plus(1)..=complete).map(|(epoch, _)| *epoch).collect();
        work::add(due.len());
        self.scheduled = complete;
        due
    }

    /// All batches of an epoch are here: registers its transactions, and finds those that conflict.
    pub(super) fn schedule(&mut self, epoch: Epoch, cx: &mut Context<'_>) {
        let content = self.contents.get_mut(&epoch).expect("it was just listed");
        let mut transactions = Vec::new();
        for (&stream, batch) in &mut content.batches {
            let named = (0..).zip(std::mem::take(batch)).map(|(place, transaction)| (Identifier { epoch, stream, place }, transaction));
            transactions.extend(named);
        }
        work::add(transactions.len());
        let conflicts = self.runs.register(transactions);
        if !conflicts.is_empty() {
            cx.fx.count("catenae.conflicting_epoch");
        }
        let footprint = |identifier: &Identifier| {
            let footprint = self.runs.ledger().footprint(*identifier).expect("what conflicts is not settled");
            (*identifier, footprint.clone())
        };
        content.footprints = conflicts.keys().map(footprint).collect();
        content.is_placed = conflicts.is_empty();
        if !content.is_placed {
            self.undecided.insert(epoch);
        }
        content.conflicts = Some(conflicts);
    }

    /// Gives transactions their places as far as votes have decided.
    pub(super) fn judge(&mut self, streams: &Streams, cx: &mut Context<'_>) {
        self.close_votes(streams, cx);
        // What votes decide changes with another vote only.
        let has_more = |epoch: &&Epoch| self.contents.get(*epoch).is_some_and(|content| content.judged < content.votes.count());
        let open: Vec<Epoch> = self.undecided.iter().inspect(|_| work::add(1)).filter(has_more).copied().collect();
        open.into_iter().for_each(|epoch| self.judge_epoch(epoch, cx));
    }

    /// A region whose first stream has passed the window of an epoch has no vote on it any more.
    fn close_votes(&mut self, streams: &Streams, cx: &Shared) {
        for region in cx.topology.regions() {
            let covered = streams.view(StreamId::first(region)).covered();
            for epoch in self.undecided.iter().take_while(|epoch| epoch.plus(cx.config.window_epochs) <= covered) {
                work::add(1);
                self.contents.get_mut(epoch).expect("what is undecided is not settled").votes.close(region);
            }
        }
    }

    /// Gives their place to those transactions of an epoch on which the votes have decided.
    fn judge_epoch(&mut self, epoch: Epoch, cx: &mut Context<'_>) {
        let content = self.contents.get_mut(&epoch).expect("it was just listed");
        content.judged = content.votes.count();
        let conflicts = content.conflicts.as_ref().expect("it is scheduled");
        let (me, regions) = (cx.me.region, cx.topology.region_count());
        let verdicts = match cx.rules.breaks(Planted::DirectDependencies) {
            true => content.votes.verdicts_by(conflicts, regions, Execution::of_direct),
            false => content.votes.verdicts(conflicts, regions),
        };
        for (&identifier, verdict) in &verdicts {
            if self.runs.ledger().is_placed(identifier) {
                continue;
            }
            let comes_before = |other: Identifier| match cx.rules.breaks(Planted::FailedInLocalOrder) {
                true => local_order(other, identifier, me, regions).is_lt(),
                false => other < identifier,
            };
            if let Some(predecessors) = verdict.predecessors(&conflicts[&identifier], &verdicts, comes_before) {
                cx.fx.count(if *verdict == Verdict::Failed { "catenae.failed_speculation" } else { "catenae.chosen" });
                self.runs.place(identifier, predecessors);
            }
        }
        work::add(verdicts.len() + conflicts.len());
        content.is_placed = conflicts.keys().all(|identifier| self.runs.ledger().is_placed(*identifier));
        if content.is_placed {
            self.undecided.remove(&epoch);
        }
    }

    /// Runs what waits for nothing any more, as far as there is room.
    pub(super) fn run(&mut self, cx: &mut Context<'_>) {
        self.runs.run_ready(cx);
    }

    /// Rows of a transaction that is being run.
    pub(super) fn on_run_loaded(&mut self, token: Token, loaded: Loaded, cx: &mut Context<'_>) {
        self.runs.on_loaded(token, loaded, cx);
    }

    /// Moves on what is settled. Returns the last epoch that is, if that is news.
    pub(super) fn settle(&mut self) -> Option<Epoch> {
        let first = self.runs.ledger().first_unsettled().map_or(Epoch(u64::MAX), Epoch::previous);
        let settled = self.execution.min(first);
        if settled <= self.settled {
            return None;
        }
        self.settled = settled;
        self.contents = self.contents.split_off(&settled.plus(1));
        self.undecided = self.undecided.split_off(&settled.plus(1));
        self.runs.forget(settled);
        Some(settled)
    }

    /// Tells clients that have waited since `deadline` that their transactions are agreed on and not run.
    pub(super) fn expire(&mut self, deadline: u64, cx: &mut Context<'_>) {
        self.runs.expire(deadline, cx);
    }

    /// A broken rule: answers those transactions of an own entry that nothing known here conflicts with, whatever is still to come.
    pub(super) fn answer_by_timing(&mut self, stream: StreamId, entry: &Entry, cx: &mut Context<'_>) {
        for (place, transaction) in (0..).zip(&entry.batch) {
            let footprint = transaction.footprint();
            let mut known = self.contents.values().flat_map(|content| content.batches.values().flatten());
            if !known.any(|other| other != transaction && other.footprint().conflicts(&footprint)) {
                self.runs.run_early(Identifier { epoch: entry.epoch, stream, place }, transaction, footprint, cx);
            }
        }
    }

    /// A broken rule: rows of such a transaction.
    pub(super) fn on_early_loaded(&mut self, token: Token, loaded: Loaded, cx: &mut Context<'_>) {
        self.runs.on_early_loaded(token, loaded, cx);
    }
}
