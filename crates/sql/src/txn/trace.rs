//! The rounds of a transaction as it waits for them: reads, and the commit.
//!
//! A traced transaction does what it would do anyway. Statements are traced for `EXPLAIN (ANALYZE)` and `EXPLAIN (WAN)`.

use crate::context::environment::Environment;
use async_trait::async_trait;
use rhumb_commit::one_shot::operation::Operation;
use rhumb_commit::transaction::{CommitOptions, Committed, Operated, ReadMode, Savepoint, Scanned, Transaction, TxnError};
use rhumb_core::{Key, KeyRange, Row, Span, Timestamp, Value};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The rounds that are kept apart; those beyond count with the last.
const ROUNDS_MAX: usize = 64;

/// What a round was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows by their keys.
    Keys,
    /// Rows of a range.
    Range,
    /// The commit.
    Commit,
    /// The commit, which carried out operations.
    Operations,
}

/// Rounds of one kind, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// What for.
    pub kind: Kind,
    /// How the transaction read.
    pub mode: ReadMode,
    /// How many there were.
    pub count: usize,
    /// Keys asked for, or operations.
    pub keys: usize,
    /// Rows that were found.
    pub rows: usize,
    /// Bytes of these, keys included; of a commit, those of the rows that it wrote.
    pub bytes: usize,
    /// Wide-area round trips that they waited for.
    pub trips: u32,
    /// How long they took.
    pub took: Duration,
}

/// The rounds of the transactions that a statement ran in.
#[derive(Clone, Debug)]
pub struct Trace {
    rounds: Arc<Mutex<Vec<Round>>>,
    environment: Arc<dyn Environment>,
}

impl Trace {
    /// A trace without rounds.
    pub fn new(environment: Arc<dyn Environment>) -> Trace {
        Trace { rounds: Arc::default(), environment }
    }

    /// The rounds so far.
    pub fn rounds(&self) -> Vec<Round> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same transaction, its rounds noted here.
    pub fn of(&self, txn: Box<dyn Transaction>) -> Box<dyn Transaction> {
        Box::new(Traced { txn, trace: self.clone(), written: 0 })
    }

    fn note(&self, round: Round) {
        let mut rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = rounds.len() == ROUNDS_MAX;
        match rounds.last_mut() {
            Some(last) if is_full || (last.kind == round.kind && last.kind == Kind::Range && last.mode == round.mode) => {
                last.count += round.count;
                last.keys += round.keys;
                last.rows += round.rows;
                last.bytes += round.bytes;
                last.trips += round.trips;
                last.took += round.took;
            }
            _ => rounds.push(round),
        }
    }
}

/// A transaction whose rounds are noted.
struct Traced {
    txn: Box<dyn Transaction>,
    trace: Trace,
    /// Bytes written.
    written: usize,
}

impl Traced {
    fn read(&self, kind: Kind, keys: usize, found: Option<&[Row]>, before: u32, since: Duration) {
        let rows = found.unwrap_or_default().iter().filter(|row| row.value.is_some());
        let (count, bytes) = rows
            .fold((0, 0), |(count, bytes), row| (count + 1, bytes + row.key.0.len() + row.value.as_ref().map_or(0, |value| value.0.len())));
        let took = self.trace.environment.elapsed() - since;
        let trips = self.txn.trips() - before;
        self.trace.note(Round { kind, mode: self.txn.mode(), count: 1, keys, rows: count, bytes, trips, took });
    }
}

#[async_trait]
impl Transaction for Traced {
    async fn get_some(&mut self, keys: &[Key]) -> Result<Vec<Row>, TxnError> {
        let (before, since) = (self.txn.trips(), self.trace.environment.elapsed());
        let found = self.txn.get_some(keys).await;
        self.read(Kind::Keys, keys.len(), found.as_deref().ok(), before, since);
        found
    }

    async fn scan(&mut self, range: KeyRange, limit: usize, reverse: bool) -> Result<Scanned, TxnError> {
        let (before, since) = (self.txn.trips(), self.trace.environment.elapsed());
        let found = self.txn.scan(range, limit, reverse).await;
        self.read(Kind::Range, 0, found.as_ref().ok().map(|found| found.rows.as_slice()), before, since);
        found
    }

    fn expect(&mut self, key: Key, version: Timestamp) {
        self.txn.expect(key, version);
    }

    fn follow(&mut self, commit: Timestamp) {
        self.txn.follow(commit);
    }

    fn bound_waits(&mut self, longest: Option<Span>) {
        self.txn.bound_waits(longest);
    }

    fn put(&mut self, key: Key, value: Value) -> Result<(), TxnError> {
        self.written += key.0.len() + value.0.len();
        self.txn.put(key, value)
    }

    fn delete(&mut self, key: Key) -> Result<(), TxnError> {
        self.written += key.0.len();
        self.txn.delete(key)
    }

    fn may_write(&mut self) {
        self.txn.may_write();
    }

    fn savepoint(&mut self) -> Savepoint {
        self.txn.savepoint()
    }

    fn roll_back_to(&mut self, savepoint: Savepoint) {
        self.txn.roll_back_to(savepoint);
    }

    fn forget_writes(&mut self) {
        self.txn.forget_writes();
    }

    fn set_mode(&mut self, mode: ReadMode) -> Result<(), TxnError> {
        self.txn.set_mode(mode)
    }

    fn set_commit(&mut self, options: CommitOptions) {
        self.txn.set_commit(options);
    }

    fn mode(&self) -> ReadMode {
        self.txn.mode()
    }

    fn is_of_one_moment(&self) -> bool {
        self.txn.is_of_one_moment()
    }

    fn trips(&self) -> u32 {
        self.txn.trips()
    }

    async fn commit(self: Box<Self>) -> Result<Committed, TxnError> {
        let Traced { txn, trace, written } = *self;
        let (mode, before, since) = (txn.mode(), txn.trips(), trace.environment.elapsed());
        let committed = txn.commit().await;
        let trips = committed.as_ref().map_or(0, |committed| committed.trips - before);
        let took = trace.environment.elapsed() - since;
        trace.note(Round { kind: Kind::Commit, mode, count: 1, keys: 0, rows: 0, bytes: written, trips, took });
        committed
    }

    async fn operate(self: Box<Self>, operations: Vec<Operation>) -> Result<Operated, TxnError> {
        let Traced { txn, trace, .. } = *self;
        let (mode, before, since, keys) = (txn.mode(), txn.trips(), trace.environment.elapsed(), operations.len());
        let operated = txn.operate(operations).await;
        let trips = if let Ok(Operated::Done(committed, _)) = &operated { committed.trips - before } else { 0 };
        let took = trace.environment.elapsed() - since;
        trace.note(Round { kind: Kind::Operations, mode, count: 1, keys, rows: 0, bytes: 0, trips, took });
        operated
    }

    async fn rollback(self: Box<Self>) {
        self.txn.rollback().await;
    }
}
