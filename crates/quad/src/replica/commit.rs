//! The two rounds of a commit, at a replica.
//!
//! Invariants: those of the replica ([`super`]).

use super::Replica;
use super::prepared::Prepared;
use super::session::{Asked, What};
use crate::context::Context;
use crate::message::{Promise, TRANSACTION};
use crate::planted::Planted;
use crate::records::{PREPARED, PreparedRecord, put_versions, txn_key};
use rhumb_commit::wound_wait::{Lock, Mode, Phase, one_key};
use rhumb_core::record::encode;
use rhumb_core::{Batch, Key, SiteId, Timestamp, TxnId, Value, work};
use std::collections::BTreeSet;

impl Replica {
    pub(crate) fn on_prepare(&mut self, txn: TxnId, session: Option<Timestamp>, writes: Vec<(Key, Option<Value>)>, cx: &mut Context<'_>) {
        if self.prepared.contains_key(&txn) {
            return self.promise_prepared(txn, Batch::new(), cx);
        }
        let held = self.sessions.get(&txn);
        if held.is_some_and(|held| matches!(held.asked, Some(Asked { what: What::Prepare { .. }, .. }))) {
            return;
        }
        if held.map(|held| held.name) != session && !cx.rules.breaks(Planted::SessionsIgnored) {
            return self.refuse(txn, cx);
        }
        let locks = writes.iter().map(|(key, _)| Lock { range: one_key(key), mode: Mode::Exclusive }).collect();
        self.ask(txn, locks, What::Prepare { writes }, Phase::Preparing, cx);
    }

    /// The transaction has all its locks, and keeps them until its outcome.
    pub(super) fn prepare(&mut self, txn: TxnId, writes: Vec<(Key, Option<Value>)>, cx: &mut Context<'_>) {
        self.sessions.remove(&txn);
        let shared = self.table.held(txn).filter(|lock| lock.mode == Mode::Shared);
        let reads = shared.map(|lock| lock.range).collect();
        let record = PreparedRecord { txn, reads, writes, committed: None };
        self.table.prepare(txn);
        let mut batch = Batch::new();
        batch.put_record(PREPARED, txn_key(txn), encode(&record));
        self.prepared.insert(txn, Prepared::new(record, cx.ticks));
        self.promise_prepared(txn, batch, cx);
    }

    fn promise_prepared(&mut self, txn: TxnId, batch: Batch, cx: &mut Context<'_>) {
        let clock = cx.timestamp();
        cx.promise(batch, txn.gateway, Promise::Prepared { txn, clock });
    }

    /// The second round. The commit is on disk before it is confirmed; it is shown to others once it is settled: known to
    /// stand at the whole write quorum, so that every reconfiguration finds it. The confirmation goes to all sites that are prepared, not to the
    /// gateway alone, so that replicas near each other need not wait for a message from a distant gateway.
    pub(crate) fn on_commit(&mut self, txn: TxnId, at: Timestamp, participants: BTreeSet<SiteId>, cx: &mut Context<'_>) {
        let told: BTreeSet<SiteId> = participants.iter().copied().chain([txn.gateway]).collect();
        let mut batch = Batch::new();
        cx.observe(at, &mut batch);
        if let Some(prepared) = self.prepared.get_mut(&txn) {
            prepared.record.committed = Some(at);
            prepared.participants = participants;
            prepared.since = cx.ticks;
            batch.put_record(PREPARED, txn_key(txn), encode(&prepared.record));
        }
        cx.promise_each(batch, &told, &Promise::Committed { txn });
        let shows_nothing = self.prepared.get(&txn).is_some_and(|prepared| prepared.record.writes.is_empty());
        if shows_nothing || cx.rules.breaks(Planted::ShownUnsettled) {
            self.on_settled(txn, cx);
        }
    }

    /// The commit stands at `from`.
    pub(crate) fn on_confirmed_commit(&mut self, from: SiteId, txn: TxnId, cx: &mut Context<'_>) {
        let Some(prepared) = self.prepared.get_mut(&txn) else { return };
        prepared.confirmed.insert(from);
        if prepared.is_settled() {
            self.on_settled(txn, cx);
        }
    }

    pub(crate) fn on_settled(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        if !self.has_commit(txn) {
            return;
        }
        let prepared = self.prepared.remove(&txn).expect("it is committed here");
        let mut batch = Batch::new();
        batch.delete_record(PREPARED, txn_key(txn));
        let at = prepared.record.committed.expect("it is committed here");
        cx.fx.agree(TRANSACTION, txn, &Some(at));
        work::add(prepared.record.writes.len());
        self.written += prepared.record.writes.len() as u64;
        put_versions(&mut batch, cx.configuration.epoch, at, prepared.record.writes);
        cx.fx.persist(batch);
        self.release(txn, cx);
    }

    pub(crate) fn on_abort(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        if let Some(prepared) = self.prepared.get(&txn) {
            if prepared.record.committed.is_some() {
                return;
            }
            self.prepared.remove(&txn);
            let mut batch = Batch::new();
            batch.delete_record(PREPARED, txn_key(txn));
            cx.fx.persist(batch);
        }
        self.release(txn, cx);
    }
}
