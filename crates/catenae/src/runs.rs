//! Runs: transactions whose place is known and that wait for nothing any more read their rows, change them and are settled.
//!
//! What runs hold of rows is bounded: by [`RUN_LOADS_MAX`] loads under way, and by [`RUN_BYTES_MAX`] bytes of rows. Beyond that runs
//! wait in their order, those that have begun before the others; one always goes on, so that it ends and makes room. Beyond
//! the bound comes only what loads under way bring, and what that one run reads. When a run is made changes nothing about what it
//! reads or writes: it reads as of its own timestamp.

use super::config::{RUN_BYTES_MAX, RUN_LOADS_MAX};
use super::fetch::Fetch;
use super::message::{Answer, Identifier};
use super::site::{Job, Site};
use rhumb_commit::one_shot::execution::{self, Outcome, Rejection};
use rhumb_core::actor::Token;
use rhumb_core::{Batch, Effects, Loaded, Table, Timestamp, work};
use std::collections::VecDeque;

/// A transaction that is being run.
#[derive(Debug)]
pub(super) struct Run {
    identifier: Identifier,
    depth: u64,
    at: Timestamp,
    fetch: Fetch,
}

/// The runs under way.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// Have begun, and wait for room to read more.
    waiting: VecDeque<Run>,
    /// Loads under way.
    loading: usize,
    /// Bytes of the rows that runs under way have read.
    bytes: usize,
}

impl Runs {
    /// Lists what runs.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("runs.loading", self.loading, RUN_LOADS_MAX));
        visit(Table::new("runs.waiting", self.waiting.len(), RUN_LOADS_MAX));
    }

    fn have_room(&self) -> bool {
        self.loading == 0 || (self.loading < RUN_LOADS_MAX && self.bytes < RUN_BYTES_MAX)
    }
}

impl Site {
    /// Runs what waits for nothing any more, as far as there is room.
    pub(super) fn run_ready(&mut self, fx: &mut Effects<Site>) {
        while self.runs.have_room() {
            let Some(run) = self.runs.waiting.pop_front().or_else(|| self.next_ready()) else { return };
            self.go_on_running(run, fx);
        }
    }

    fn next_ready(&mut self) -> Option<Run> {
        let (identifier, depth, transaction) = self.ledger.take_ready()?;
        let at = identifier.epoch.timestamp(self.config.epoch, depth);
        Some(Run { identifier, depth, at, fetch: Fetch::of(transaction, at.previous()) })
    }

    fn go_on_running(&mut self, mut run: Run, fx: &mut Effects<Site>) {
        match run.fetch.next_load() {
            Some(load) => {
                self.runs.loading += 1;
                let token: Token = self.job(Job::Run(run));
                fx.load(token, load);
            }
            None => self.finish_run(run, fx),
        }
    }

    /// Rows of a transaction that is being run.
    pub(super) fn on_run_loaded(&mut self, mut run: Run, loaded: Loaded, fx: &mut Effects<Site>) {
        let before = run.fetch.bytes();
        run.fetch.take(loaded);
        self.runs.loading -= 1;
        self.runs.bytes += run.fetch.bytes() - before;
        match run.fetch.is_complete() {
            true => self.finish_run(run, fx),
            false => self.runs.waiting.push_front(run),
        }
        self.run_ready(fx);
        self.settle(fx);
    }

    fn finish_run(&mut self, run: Run, fx: &mut Effects<Site>) {
        let Run { identifier, depth, at, fetch } = run;
        self.runs.bytes -= fetch.bytes();
        let transaction = self.ledger.settle(identifier, depth);
        self.epochs.backlog.remove(&transaction);
        let exceeds = fetch.exceeds();
        let (rows, scans) = fetch.finish();
        work::add(rows.len() + transaction.operations.len());
        let rows = rows.into_iter().map(|row| (row.key.clone(), row)).collect();
        let (outcome, writes) = match exceeds {
            true => (Outcome::Rejected(Rejection::TooMuchRead), Vec::new()),
            false => execution::evaluate(&transaction, rows, scans),
        };
        fx.agree("transaction", identifier, &(at, &writes));
        if !writes.is_empty() {
            let mut batch = Batch::new();
            writes.into_iter().for_each(|(key, value)| batch.put_version(key, at, value));
            fx.persist(batch);
        }
        fx.trace(|| format!("{identifier} runs at {at}"));
        if let Some(id) = self.take_request(identifier) {
            fx.answer(id, Answer::Ran { at, outcome });
        }
    }
}

#[cfg(test)]
mod tests;
