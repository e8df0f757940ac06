//! A site as a replica: locks, reads under locks, and its part in the two rounds of a commit.
//!
//! ```text
//!   (nothing) ── Read ──▶ session ── Confirm ──▶ released
//!                            │
//!                            └── Prepare ──▶ waits for exclusive locks ──▶ prepared, on disk ── Abort ──▶ released
//!                                                                              │
//!                                                                              └── Commit ──▶ committed, on disk ── so are all ──▶ shown, released
//! ```
//!
//! Invariants: rows leave only under a shared lock; a `Prepared` leaves only once locks and writes are on disk, and they stay until
//! the gateway's outcome is known; a transaction prepares only in the session in which it read.
//!
//! | file | what |
//! |---|---|
//! | `session.rs`, `locks.rs` | transactions that are not prepared, and what waits for locks |
//! | `reads.rs` | rows under locks |
//! | `commit.rs`, `prepared.rs` | the two rounds, and what a transaction has here between them |
//! | `doubt.rs` | what nobody was heard of for long |
//!
//! Source: section II-B.

mod commit;
mod doubt;
mod locks;
mod prepared;
mod reads;
mod session;
#[cfg(test)]
mod tests;

use self::prepared::Prepared;
use self::session::Session;
use super::config::SESSIONS_MAX;
use super::configuration::Carried;
use super::records::{CommitRecord, PREPARED, PreparedRecord, txn_key};
use rhumb_commit::wound_wait::{Phase, WoundWait};
use rhumb_core::{Batch, Key, Table, TxnId, Value, work};
use std::collections::BTreeMap;
use std::ops::Bound;

/// What a site holds for others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replica {
    table: WoundWait,
    sessions: BTreeMap<TxnId, Session>,
    prepared: BTreeMap<TxnId, Prepared>,
    /// Rows written in this epoch, some of them twice.
    written: u64,
}

impl Replica {
    /// True if it holds something for the transaction, or is about to.
    pub(crate) fn works_for(&self, txn: TxnId) -> bool {
        self.sessions.contains_key(&txn) || self.prepared.contains_key(&txn)
    }

    /// Lists its tables.
    pub(crate) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("replica.sessions", self.sessions.len(), SESSIONS_MAX));
        visit(Table::new("replica.prepared", self.prepared.len(), SESSIONS_MAX));
        self.table.tables(SESSIONS_MAX, usize::MAX, visit);
    }

    /// How many transactions are prepared here.
    pub(crate) fn prepared(&self) -> usize {
        self.prepared.len()
    }

    /// The transactions whose commit stands here and is not settled.
    pub(crate) fn unsettled(&self) -> Vec<Carried> {
        let carried = |prepared: &Prepared| prepared.record.committed.map(|at| Carried { txn: prepared.record.txn, at });
        work::add(self.prepared.len());
        self.prepared.values().filter_map(carried).collect()
    }

    /// The same with what they wrote, after `last`.
    pub(crate) fn commits(&self, last: Option<TxnId>) -> impl Iterator<Item = CommitRecord> + '_ {
        let after = last.map_or(Bound::Unbounded, Bound::Excluded);
        let commit = |prepared: &Prepared| {
            let PreparedRecord { txn, writes, committed, .. } = &prepared.record;
            committed.map(|at| CommitRecord { txn: *txn, at, writes: writes.clone() })
        };
        self.prepared.range((after, Bound::Unbounded)).filter_map(move |(_, prepared)| commit(prepared))
    }

    /// True if a commit stands here that is not settled.
    pub(crate) fn has_commits(&self) -> bool {
        self.prepared.values().any(|prepared| prepared.record.committed.is_some())
    }

    /// True if the commit of the transaction stands here and is not settled.
    pub(crate) fn has_commit(&self, txn: TxnId) -> bool {
        self.prepared.get(&txn).is_some_and(|prepared| prepared.record.committed.is_some())
    }

    /// True if the transaction is prepared here, and whether it commits has not been heard.
    pub(crate) fn is_in_doubt(&self, txn: TxnId) -> bool {
        self.prepared.get(&txn).is_some_and(|prepared| prepared.record.committed.is_none())
    }

    /// What a transaction wrote whose commit stands here and is not settled.
    pub(crate) fn take_commit(&mut self, txn: TxnId) -> Option<Vec<(Key, Option<Value>)>> {
        let committed = self.has_commit(txn);
        self.prepared.remove(&txn).filter(|_| committed).map(|prepared| prepared.record.writes)
    }

    /// Adds to `batch` that nobody is prepared here any more.
    pub(crate) fn delete_prepared(&self, batch: &mut Batch) {
        self.prepared.keys().for_each(|txn| batch.delete_record(PREPARED, txn_key(*txn)));
    }

    /// How many rows were written in this epoch.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// A prepared transaction that was found on disk.
    pub(crate) fn restore(&mut self, record: PreparedRecord) {
        for lock in record.locks() {
            work::add(1);
            let granted = self.table.request(record.txn, lock, Phase::Growing);
            assert!(granted.is_ok_and(|outcomes| outcomes.len() == 1), "prepared transactions do not stand in each other's way");
        }
        self.table.prepare(record.txn);
        self.prepared.insert(record.txn, Prepared::new(record, 0));
    }
}
