//! Runs: transactions whose place is known and that wait for nothing any more read their rows, change them and are settled; clients that
//! asked for them are answered.
//!
//! ```text
//!   agreed on ──▶ registered in the ledger ──▶ ready ──▶ loads its rows, page by page ──▶ writes, and the answer ──▶ settled
//! ```
//!
//! What runs hold of rows is bounded: by [`RUN_LOADS_MAX`] loads under way, and by [`RUN_BYTES_MAX`] bytes of rows. Beyond that runs
//! wait in their order, those that have begun before the others; one always goes on, so that it ends and makes room. Beyond
//! the bound comes only what loads under way bring, and what that one run reads. When a run is made changes nothing about what it
//! reads or writes: it reads as of its own timestamp.
//!
//! Invariants: a transaction runs once, after all that come before it; whoever asked for it here is answered once, when it has run or when it
//! has waited too long.
//!
//! Source: section VI.E. Its commit and its catch-up are this one run, as nothing runs before its place is settled; nothing is aborted.

use super::asked::Agreed;
use super::backlog::Backlog;
use super::config::{RUN_BYTES_MAX, RUN_LOADS_MAX};
use super::context::{Context, Job};
use super::epoch::Epoch;
use super::epochs::{Epochs, Place};
use super::fetch::Fetch;
use super::ledger::Ledger;
use super::message::{Answer, Entry, Identifier};
use super::speculation::Conflicts;
use super::stream_id::StreamId;
use rhumb_commit::one_shot::execution::{self, Outcome, Rejection};
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::Token;
use rhumb_core::{Batch, Loaded, Table, Timestamp, work};
use std::collections::{BTreeMap, VecDeque};

/// A transaction that is being run.
#[derive(Debug)]
struct Run {
    identifier: Identifier,
    depth: u64,
    at: Timestamp,
    fetch: Fetch,
}

/// A transaction that is answered before its place is known, as only a broken rule has it.
#[derive(Debug)]
struct Early {
    identifier: Identifier,
    transaction: Transaction,
    fetch: Fetch,
}

/// What is agreed on and not settled, and the runs under way.
#[derive(Debug, Default)]
pub(super) struct Runs {
    backlog: Backlog,
    ledger: Ledger,
    /// Of clients of this site, who wait for them to be run.
    awaited: BTreeMap<Identifier, Agreed>,
    /// Have begun, and wait for room to read more.
    waiting: VecDeque<Run>,
    loading: BTreeMap<Token, Run>,
    /// Bytes of the rows that runs under way have read.
    bytes: usize,
    early: BTreeMap<Token, Early>,
}

impl Runs {
    /// What is agreed on and not settled, counted.
    pub(super) fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    /// The same, to be changed by tests.
    #[cfg(test)]
    pub(super) fn backlog_mut(&mut self) -> &mut Backlog {
        &mut self.backlog
    }

    /// What waits for what.
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// True if all that is registered is settled, and no client waits.
    pub(super) fn are_idle(&self) -> bool {
        self.ledger.is_empty() && self.awaited.is_empty()
    }

    /// Lists its tables; `transactions_max` at the most are agreed on and not settled.
    pub(super) fn tables(&self, transactions_max: usize, visit: &mut dyn FnMut(Table)) {
        self.ledger.tables(transactions_max, visit);
        visit(Table::new("runs.loading", self.loading.len(), RUN_LOADS_MAX));
        visit(Table::new("runs.waiting", self.waiting.len(), RUN_LOADS_MAX));
    }

    /// A batch is agreed on.
    pub(super) fn agree(&mut self, batch: &[Transaction]) {
        self.backlog.add(batch);
    }

    /// Transactions of clients are agreed on.
    pub(super) fn await_runs(&mut self, agreed: impl IntoIterator<Item = Agreed>) {
        self.awaited.extend(agreed.into_iter().map(|agreed| (agreed.identifier, agreed)));
    }

    /// How many of them have not run.
    pub(super) fn awaited(&self) -> usize {
        self.awaited.len()
    }

    /// Takes the transactions of the next epoch, see [`Ledger::register`].
    pub(super) fn register(&mut self, transactions: Vec<(Identifier, Transaction)>) -> Conflicts {
        self.ledger.register(transactions)
    }

    /// Gives a transaction its place.
    pub(super) fn place(&mut self, Place { identifier, predecessors }: Place) {
        self.ledger.place(identifier, predecessors);
    }

    /// All up to `epoch` is settled.
    pub(super) fn forget(&mut self, epoch: Epoch) {
        self.ledger.forget(epoch);
    }

    fn have_room(&self) -> bool {
        self.loading.is_empty() || (self.loading.len() < RUN_LOADS_MAX && self.bytes < RUN_BYTES_MAX)
    }

    /// Runs what waits for nothing any more, as far as there is room.
    pub(super) fn run_ready(&mut self, cx: &mut Context<'_>) {
        while self.have_room() {
            let Some(run) = self.waiting.pop_front().or_else(|| self.next_ready(cx)) else { return };
            self.go_on(run, cx);
        }
    }

    fn next_ready(&mut self, cx: &Context<'_>) -> Option<Run> {
        let (identifier, depth, transaction) = self.ledger.take_ready()?;
        let at = identifier.epoch.timestamp(cx.config.epoch, depth);
        Some(Run { identifier, depth, at, fetch: Fetch::of(transaction, at.previous()) })
    }

    fn go_on(&mut self, mut run: Run, cx: &mut Context<'_>) {
        match run.fetch.next_load() {
            Some(load) => drop(self.loading.insert(cx.load(Job::Run, load), run)),
            None => self.finish(run, cx),
        }
    }

    /// Rows of a transaction that is being run.
    pub(super) fn on_loaded(&mut self, token: Token, loaded: Loaded, cx: &mut Context<'_>) {
        let mut run = self.loading.remove(&token).expect("it is being run");
        let before = run.fetch.bytes();
        run.fetch.take(loaded);
        self.bytes += run.fetch.bytes() - before;
        match run.fetch.is_complete() {
            true => self.finish(run, cx),
            false => self.waiting.push_front(run),
        }
        self.run_ready(cx);
    }

    fn finish(&mut self, run: Run, cx: &mut Context<'_>) {
        let Run { identifier, depth, at, fetch } = run;
        self.bytes -= fetch.bytes();
        let transaction = self.ledger.settle(identifier, depth);
        self.backlog.remove(&transaction);
        let exceeds = fetch.exceeds();
        let (rows, scans) = fetch.finish();
        work::add(rows.len() + transaction.operations.len());
        let rows = rows.into_iter().map(|row| (row.key.clone(), row)).collect();
        let (outcome, writes) = match exceeds {
            true => (Outcome::Rejected(Rejection::TooMuchRead), Vec::new()),
            false => execution::evaluate(&transaction, rows, scans),
        };
        cx.fx.agree("transaction", identifier, &(at, &writes));
        if !writes.is_empty() {
            let mut batch = Batch::new();
            writes.into_iter().for_each(|(key, value)| batch.put_version(key, at, value));
            cx.fx.persist(batch);
        }
        cx.fx.trace(|| format!("{identifier} runs at {at}"));
        if let Some(Agreed { client, .. }) = self.awaited.remove(&identifier) {
            cx.fx.answer(client, Answer::Ran { at, outcome });
        }
    }

    /// Tells clients that have waited since `deadline` that their transactions are agreed on and not run.
    pub(super) fn expire(&mut self, deadline: u64, cx: &mut Context<'_>) {
        work::add(self.awaited.len());
        for (_, late) in self.awaited.extract_if(.., |_, agreed| agreed.since <= deadline) {
            cx.fx.answer(late.client, Answer::Failed(TxnError::Unknown("it is agreed on, but not settled in time".into())));
        }
    }

    /// A broken rule: runs those transactions of an own entry that nothing known here conflicts with, whatever is still to come.
    pub(super) fn run_early(&mut self, stream: StreamId, entry: &Entry, epochs: &Epochs, cx: &mut Context<'_>) {
        for (place, transaction) in (0..).zip(&entry.batch) {
            let footprint = transaction.footprint();
            let alone = !epochs.unscheduled().any(|other| other != transaction && other.footprint().conflicts(&footprint));
            if !alone || !footprint.ranges.is_empty() || !self.ledger.is_free(&footprint) {
                continue;
            }
            let identifier = Identifier { epoch: entry.epoch, stream, place };
            let at = entry.epoch.timestamp(cx.config.epoch, 0);
            let mut fetch = Fetch::new(at.previous(), footprint.keys.into_keys().collect(), []);
            if let Some(load) = fetch.next_load() {
                self.early.insert(cx.load(Job::Early, load), Early { identifier, transaction: transaction.clone(), fetch });
            }
        }
    }

    /// A broken rule: answers it.
    pub(super) fn on_early_loaded(&mut self, token: Token, loaded: Loaded, cx: &mut Context<'_>) {
        let Early { identifier, transaction, mut fetch } = self.early.remove(&token).expect("it is being run");
        fetch.take(loaded);
        let rows = fetch.finish().0.into_iter().map(|row| (row.key.clone(), row)).collect();
        if let Some(Agreed { client, .. }) = self.awaited.remove(&identifier) {
            let at = identifier.epoch.timestamp(cx.config.epoch, 0);
            cx.fx.answer(client, Answer::Ran { at, outcome: execution::evaluate(&transaction, rows, vec![]).0 });
        }
    }
}

#[cfg(test)]
mod tests;
