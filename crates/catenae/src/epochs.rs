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
//!
//! Invariants: an epoch is scheduled once, when all batches of it and of those before are here; it is settled once all its transactions, and
//! those of the epochs before, have run; a place once given never changes.
//!
//! Source: sections VI.A and VI.D. `Streams::complete` finds the epochs whose batches are all here.

use super::context::{Context, Shared};
use super::epoch::Epoch;
use super::ledger::Ledger;
use super::message::{Entry, Identifier};
use super::planted::{Planted, local_order};
use super::speculation::Conflicts;
use super::stream_id::StreamId;
use super::streams::Streams;
use super::validation::{Execution, Verdict, Votes};
use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_core::{RegionId, Table, work};
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
}

/// The conflicting transactions of an epoch whose batches are all here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scheduled<'a> {
    pub(super) conflicts: &'a Conflicts,
    pub(super) footprints: &'a BTreeMap<Identifier, Footprint>,
}

/// The place of a transaction: after exactly these of its epoch that conflict with it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) identifier: Identifier,
    pub(super) predecessors: BTreeSet<Identifier>,
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

    /// True if nothing is known of an epoch that is not settled.
    pub(super) fn are_idle(&self) -> bool {
        self.contents.is_empty()
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
        self.undecided.iter().inspect(|_| work::add(1)).copied()
    }

    /// Lists its table.
    pub(super) fn tables(&self, epochs_max: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("epochs", self.contents.len(), epochs_max));
    }

    /// An earlier incarnation had settled all up to `settled`.
    pub(super) fn resume(&mut self, settled: Epoch) {
        (self.settled, self.execution) = (settled, settled);
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

    /// Takes the batches of an epoch, which are all here: its transactions in the order of their identifiers.
    pub(super) fn take_batches(&mut self, epoch: Epoch) -> Vec<(Identifier, Transaction)> {
        let content = self.contents.get_mut(&epoch).expect("it was just listed");
        let mut transactions = Vec::new();
        for (&stream, batch) in &mut content.batches {
            let named = (0..).zip(std::mem::take(batch)).map(|(place, transaction)| (Identifier { epoch, stream, place }, transaction));
            transactions.extend(named);
        }
        work::add(transactions.len());
        transactions
    }

    /// The transactions of an epoch are registered, of which these conflict with one another.
    pub(super) fn schedule(&mut self, epoch: Epoch, conflicts: Conflicts, ledger: &Ledger, cx: &mut Context<'_>) {
        let content = self.contents.get_mut(&epoch).expect("it was just listed");
        if !conflicts.is_empty() {
            cx.fx.count("catenae.conflicting_epoch");
            self.undecided.insert(epoch);
        }
        let footprint = |identifier: &Identifier| {
            let footprint = ledger.footprint(*identifier).expect("what conflicts is not settled");
            (*identifier, footprint.clone())
        };
        content.footprints = conflicts.keys().map(footprint).collect();
        content.conflicts = Some(conflicts);
    }

    /// The places that votes have decided on and that transactions do not have yet.
    pub(super) fn judge(&mut self, streams: &Streams, ledger: &Ledger, cx: &mut Context<'_>) -> Vec<Place> {
        self.close_votes(streams, cx);
        // What votes decide changes with another vote only.
        let has_more = |epoch: &&Epoch| self.contents.get(*epoch).is_some_and(|content| content.judged < content.votes.count());
        let open: Vec<Epoch> = self.undecided.iter().inspect(|_| work::add(1)).filter(has_more).copied().collect();
        open.into_iter().flat_map(|epoch| self.judge_epoch(epoch, ledger, cx)).collect()
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

    fn judge_epoch(&mut self, epoch: Epoch, ledger: &Ledger, cx: &mut Context<'_>) -> Vec<Place> {
        let content = self.contents.get_mut(&epoch).expect("what is undecided is not settled");
        content.judged = content.votes.count();
        let conflicts = content.conflicts.as_ref().expect("it is scheduled");
        let (me, regions) = (cx.me.region, cx.topology.region_count());
        let verdicts = match cx.rules.breaks(Planted::DirectDependencies) {
            true => content.votes.verdicts_by(conflicts, regions, Execution::of_direct),
            false => content.votes.verdicts(conflicts, regions),
        };
        let open = conflicts.keys().filter(|identifier| !ledger.is_placed(**identifier)).count();
        let mut places = Vec::new();
        for (&identifier, verdict) in verdicts.iter().filter(|(identifier, _)| !ledger.is_placed(**identifier)) {
            let comes_before = |other: Identifier| match cx.rules.breaks(Planted::FailedInLocalOrder) {
                true => local_order(other, identifier, me, regions).is_lt(),
                false => other < identifier,
            };
            if let Some(predecessors) = verdict.predecessors(&conflicts[&identifier], &verdicts, comes_before) {
                cx.fx.count(if *verdict == Verdict::Failed { "catenae.failed_speculation" } else { "catenae.chosen" });
                places.push(Place { identifier, predecessors });
            }
        }
        work::add(verdicts.len() + conflicts.len());
        if places.len() == open {
            self.undecided.remove(&epoch);
        }
        places
    }

    /// Moves on what is settled: all before `first_unsettled`. Returns the last epoch that is, if that is news.
    pub(super) fn settle(&mut self, first_unsettled: Option<Epoch>) -> Option<Epoch> {
        let settled = self.execution.min(first_unsettled.map_or(Epoch(u64::MAX), Epoch::previous));
        if settled <= self.settled {
            return None;
        }
        self.settled = settled;
        self.contents = self.contents.split_off(&settled.plus(1));
        self.undecided = self.undecided.split_off(&settled.plus(1));
        Some(settled)
    }

    /// All transactions that are agreed on and not scheduled.
    pub(super) fn unscheduled(&self) -> impl Iterator<Item = &Transaction> {
        self.contents.values().flat_map(|content| content.batches.values().flatten())
    }
}

#[cfg(test)]
mod tests;
