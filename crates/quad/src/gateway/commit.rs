//! A transaction ends: in one round if it only read, in two if it writes.
//!
//! Invariants: those of the gateway ([`super`]).
//!
//! Source: section II-B.

use super::{Decided, Doing, Gateway, Open, no_quorum, over};
use crate::config::{TXN_BYTES_MAX, TXN_ROWS_MAX};
use crate::context::Context;
use crate::message::{Note, TRANSACTION};
use crate::planted::Planted;
use crate::records::{DECISIONS, DecisionRecord, txn_key};
use crate::request::Answer;
use rhumb_commit::transaction::{Committed, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::record::encode;
use rhumb_core::{Batch, Key, SiteId, Timestamp, TxnId, Value};
use std::collections::BTreeSet;

impl Gateway {
    pub(super) fn commit(&mut self, id: RequestId, txn: TxnId, writes: Vec<(Key, Option<Value>)>, cx: &mut Context<'_>) {
        if let Some(error) = too_large(&writes) {
            return self.fail(txn, Some(id), error, cx);
        }
        let Some(open) = self.go_on(id, txn, cx) else { return };
        open.trips += 1;
        if writes.is_empty() {
            for (site, session) in &open.sessions {
                cx.send(*site, Note::Confirm { txn, session: *session });
            }
            let missing: BTreeSet<SiteId> = open.sessions.keys().copied().collect();
            open.doing = Doing::Confirming { id, missing };
            return self.end_if_confirmed(txn, cx);
        }
        let Some(writers) = cx.configuration.quorums.write(cx.me, &cx.up(), open.turn) else {
            return self.fail(txn, Some(id), no_quorum("write"), cx);
        };
        let writers = match writers.last().copied().filter(|_| writers.len() > 1 && cx.rules.breaks(Planted::QuorumTooSmall)) {
            Some(last) => writers.into_iter().filter(|site| *site != last).collect(),
            None => writers,
        };
        let all: BTreeSet<SiteId> = writers.iter().chain(open.sessions.keys()).copied().collect();
        for site in &all {
            let writes = if writers.contains(site) { writes.clone() } else { Vec::new() };
            cx.send(*site, Note::Prepare { txn, session: open.sessions.get(site).copied(), writes });
        }
        open.doing = Doing::Preparing { id, writers, missing: all.clone(), all };
    }

    pub(crate) fn on_confirmed(&mut self, from: SiteId, txn: TxnId, cx: &mut Context<'_>) {
        let Some(Open { doing: Doing::Confirming { missing, .. }, .. }) = self.open.get_mut(&txn) else { return };
        missing.remove(&from);
        self.end_if_confirmed(txn, cx);
    }

    fn end_if_confirmed(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let Some(Open { doing: Doing::Confirming { id, missing }, trips, .. }) = self.open.get(&txn) else { return };
        if missing.is_empty() {
            let at = cx.timestamp();
            cx.fx.answer(*id, Answer::Committed(Committed { at, trips: *trips }));
            self.commits.reads += 1;
            self.open.remove(&txn);
        }
    }

    pub(crate) fn on_prepared(&mut self, from: SiteId, txn: TxnId, clock: Timestamp, cx: &mut Context<'_>) {
        let clock = if cx.rules.breaks(Planted::ClocksIgnored) { Timestamp::ZERO } else { clock };
        cx.clock.observe(clock);
        let Some(Open { doing: Doing::Preparing { missing, .. }, .. }) = self.open.get_mut(&txn) else { return };
        missing.remove(&from);
        if missing.is_empty() {
            self.decide(txn, cx);
        }
    }

    /// All are prepared: the transaction commits, above all that it conflicts with.
    fn decide(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let open = self.open.remove(&txn).expect("it prepared");
        let Doing::Preparing { id, writers, all, .. } = open.doing else { unreachable!("it prepared") };
        self.commits.writes += 1;
        let at = cx.timestamp();
        let record = DecisionRecord { txn, at, participants: all.iter().copied().collect() };
        let mut batch = Batch::new();
        batch.put_record(DECISIONS, txn_key(txn), encode(&record));
        let (trips, missing, since) = (open.trips + 1, all.clone(), cx.ticks);
        let mut decided = Decided { at, trips, id: Some(id), participants: all, writers, missing, since, told: since };
        cx.promise_each(batch, &decided.participants, &decided.commit(txn));
        if cx.rules.breaks(Planted::AnsweredAfterFirstRound) {
            decided.id = None;
            cx.fx.answer(id, Answer::Committed(Committed { at, trips }));
        }
        self.decided.insert(txn, decided);
    }

    pub(crate) fn on_committed(&mut self, from: SiteId, txn: TxnId, cx: &mut Context<'_>) {
        let Some(decided) = self.decided.get_mut(&txn) else { return };
        decided.missing.remove(&from);
        decided.writers.remove(&from);
        if decided.writers.is_empty()
            && let Some(id) = decided.id.take()
        {
            cx.fx.agree(TRANSACTION, txn, &Some(decided.at));
            cx.fx.answer(id, Answer::Committed(Committed { at: decided.at, trips: decided.trips }));
        }
        if decided.missing.is_empty() {
            self.decided.remove(&txn);
            let mut batch = Batch::new();
            batch.delete_record(DECISIONS, txn_key(txn));
            cx.fx.persist(batch);
        }
    }

    pub(crate) fn on_refused(&mut self, from: SiteId, txn: TxnId, session: Option<Timestamp>, cx: &mut Context<'_>) {
        let Some(open) = self.open.get_mut(&txn) else { return };
        let other = open.sessions.get(&from).is_some_and(|known| session.is_some_and(|session| session != *known));
        match &open.doing {
            // Not of the session in which it reads: what a message that came twice has begun.
            _ if other => {}
            Doing::Idle | Doing::Lost => open.doing = Doing::Lost,
            Doing::Reading { id, .. } | Doing::Confirming { id, .. } | Doing::Preparing { id, .. } => {
                let id = *id;
                self.fail(txn, Some(id), over(), cx);
            }
        }
    }

    pub(crate) fn on_inquire(&mut self, from: SiteId, txn: TxnId, committed: bool, cx: &mut Context<'_>) {
        match self.decided.get(&txn) {
            Some(decided) if committed && decided.writers.is_empty() => cx.send(from, Note::Settled { txn }),
            Some(decided) => cx.promise(Batch::new(), from, decided.commit(txn)),
            None if self.open.contains_key(&txn) => {}
            // A decision is forgotten only once all have confirmed it.
            None if committed => cx.send(from, Note::Settled { txn }),
            None => cx.send(from, Note::Abort { txn }),
        }
    }
}

/// Why so much cannot be written at once, if it cannot: it goes to each site in one message.
fn too_large(writes: &[(Key, Option<Value>)]) -> Option<TxnError> {
    let bytes: usize = writes.iter().map(|(key, value)| key.0.len() + value.as_ref().map_or(0, |value| value.0.len())).sum();
    let rows = writes.len();
    let why = if rows > TXN_ROWS_MAX {
        format!("the transaction writes {rows} rows; at most {TXN_ROWS_MAX} are possible: split it into several")
    } else if bytes > TXN_BYTES_MAX {
        format!("the transaction writes {bytes} bytes; at most {TXN_BYTES_MAX} are possible: split it into several")
    } else {
        return None;
    };
    Some(TxnError::TooLarge(why.into()))
}
