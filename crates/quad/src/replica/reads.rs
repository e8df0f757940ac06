//! Reads under shared locks, and the end of a transaction that only read.
//!
//! Invariant: rows leave only under a shared lock.

use super::Replica;
use super::session::{Session, What};
use crate::config::ROWS_BYTES_MAX;
use crate::context::{Context, Job};
use crate::message::{Note, Query, Rows, fitting};
use rhumb_commit::wound_wait::{Lock, Mode, Phase, one_key};
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::{Row, Timestamp, TxnId, work};
use std::collections::BTreeSet;

impl Replica {
    pub(crate) fn on_read(&mut self, txn: TxnId, number: u32, query: Query, cx: &mut Context<'_>) {
        let old = |session: &Session| number <= session.number;
        if self.prepared.contains_key(&txn) || self.sessions.get(&txn).is_some_and(old) {
            return;
        }
        let locks: BTreeSet<Lock> = match &query {
            Query::Keys(keys) => keys.iter().map(|key| Lock { range: one_key(key), mode: Mode::Shared }).collect(),
            Query::Range { range, .. } => BTreeSet::from([Lock { range: range.clone(), mode: Mode::Shared }]),
        };
        self.ask(txn, locks, What::Read { number, query }, Phase::Growing, cx);
    }

    pub(crate) fn on_read_loaded(&mut self, txn: TxnId, number: u32, session: Timestamp, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Rows { mut rows, more } = loaded else { unreachable!("rows were asked for") };
        let fit = fitting(rows.iter().map(Row::bytes), ROWS_BYTES_MAX);
        let more = more || fit < rows.len();
        work::add(rows.len());
        rows.truncate(fit);
        // What was loaded is as of the lock; it counts only if the lock is still held.
        if self.sessions.get(&txn).is_some_and(|held| held.name == session) {
            cx.send(txn.gateway, Note::Rows(Rows { txn, number, session, rows, more }));
        }
    }

    pub(crate) fn on_confirm(&mut self, txn: TxnId, session: Timestamp, cx: &mut Context<'_>) {
        if self.sessions.get(&txn).is_some_and(|held| held.name == session) {
            cx.send(txn.gateway, Note::Confirmed { txn });
            self.release(txn, cx);
        } else {
            cx.send(txn.gateway, Note::Refused { txn, session: Some(session) });
        }
    }
}

/// Loads the rows of a read that has its locks.
pub(super) fn load_rows(job: Job, query: Query, cx: &mut Context<'_>) {
    let load = match query {
        Query::Keys(keys) => Load::Get { keys, at: Timestamp::MAX, bytes: ROWS_BYTES_MAX },
        Query::Range { range, limit, reverse } => {
            Load::Scan { range, at: Timestamp::MAX, limit: limit as usize, bytes: ROWS_BYTES_MAX, reverse }
        }
    };
    cx.load(job, load);
}
