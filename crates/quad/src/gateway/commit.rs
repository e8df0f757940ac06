//! A transaction ends: in one round if it only read, in two if it writes.
//!
//! Invariants: those of the gateway ([`super`]).

use super::{Decided, Doing, Open, no_quorum, over};
use crate::config::{TXN_BYTES_MAX, TXN_ROWS_MAX};
use crate::message::Answer;
use crate::message::{Note, Promise, TRANSACTION};
use crate::planted::Planted;
use crate::records::{DECISIONS, DecisionRecord, txn_key};
use crate::site::Site;
use rhumb_commit::transaction::{Committed, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::record::encode;
use rhumb_core::{Batch, Effects, Key, SiteId, Time, Timestamp, TxnId, Value};
use std::collections::BTreeSet;

impl Site {
    pub(super) fn commit(&mut self, now: Time, id: RequestId, txn: TxnId, writes: Vec<(Key, Option<Value>)>, fx: &mut Effects<Site>) {
        if let Some(error) = too_large(&writes) {
            return self.fail(txn, Some(id), error, fx);
        }
        let (up, me, epoch) = (self.up(), self.me, self.configuration.epoch);
        let Some(open) = self.go_on(id, txn, fx) else { return };
        open.trips += 1;
        if writes.is_empty() {
            for (site, session) in &open.sessions {
                fx.send(*site, epoch.says(Note::Confirm { txn, session: *session }));
            }
            let missing: BTreeSet<SiteId> = open.sessions.keys().copied().collect();
            open.doing = Doing::Confirming { id, missing };
            return self.end_if_confirmed(now, txn, fx);
        }
        let turn = open.turn;
        let Some(writers) = self.configuration.quorums.write(me, &up, turn) else {
            return self.fail(txn, Some(id), no_quorum("write"), fx);
        };
        let writers = match writers.last().copied().filter(|_| writers.len() > 1 && self.rules.breaks(Planted::QuorumTooSmall)) {
            Some(last) => writers.into_iter().filter(|site| *site != last).collect(),
            None => writers,
        };
        let open = self.gateway.open.get_mut(&txn).expect("it goes on");
        let all: BTreeSet<SiteId> = writers.iter().chain(open.sessions.keys()).copied().collect();
        for site in &all {
            let writes = if writers.contains(site) { writes.clone() } else { Vec::new() };
            fx.send(*site, epoch.says(Note::Prepare { txn, session: open.sessions.get(site).copied(), writes }));
        }
        open.doing = Doing::Preparing { id, writers, missing: all.clone(), all };
    }

    pub(crate) fn on_confirmed(&mut self, now: Time, from: SiteId, txn: TxnId, fx: &mut Effects<Site>) {
        let Some(Open { doing: Doing::Confirming { missing, .. }, .. }) = self.gateway.open.get_mut(&txn) else { return };
        missing.remove(&from);
        self.end_if_confirmed(now, txn, fx);
    }

    fn end_if_confirmed(&mut self, now: Time, txn: TxnId, fx: &mut Effects<Site>) {
        let Some(Open { doing: Doing::Confirming { id, missing }, trips, .. }) = self.gateway.open.get(&txn) else { return };
        if missing.is_empty() {
            fx.answer(*id, Answer::Committed(Committed { at: self.clock.now(now), trips: *trips }));
            self.monitor.commits(false);
            self.gateway.open.remove(&txn);
        }
    }

    pub(crate) fn on_prepared(&mut self, now: Time, from: SiteId, txn: TxnId, clock: Timestamp, fx: &mut Effects<Site>) {
        let clock = if self.rules.breaks(Planted::ClocksIgnored) { Timestamp::ZERO } else { clock };
        self.clock.observe(clock);
        let Some(Open { doing: Doing::Preparing { missing, .. }, .. }) = self.gateway.open.get_mut(&txn) else { return };
        missing.remove(&from);
        if missing.is_empty() {
            self.decide(now, txn, fx);
        }
    }

    /// All are prepared: the transaction commits, above all that it conflicts with.
    fn decide(&mut self, now: Time, txn: TxnId, fx: &mut Effects<Site>) {
        let open = self.gateway.open.remove(&txn).expect("it prepared");
        let Doing::Preparing { id, writers, all, .. } = open.doing else { unreachable!("it prepared") };
        self.monitor.commits(true);
        let at = self.clock.now(now);
        let record = DecisionRecord { txn, at, participants: all.iter().copied().collect() };
        let mut batch = Batch::new();
        batch.put_record(DECISIONS, txn_key(txn), encode(&record));
        let mut persist = fx.persist(batch);
        for site in &all {
            persist = persist.send(*site, self.configuration.epoch.says(Promise::Commit { txn, at, participants: all.clone() }));
        }
        let trips = open.trips + 1;
        let id = Some(id);
        let id = id.filter(|id| {
            let early = self.rules.breaks(Planted::AnsweredAfterFirstRound);
            if early {
                fx.answer(*id, Answer::Committed(Committed { at, trips }));
            }
            !early
        });
        let (missing, since) = (all.clone(), self.ticks);
        self.gateway.decided.insert(txn, Decided { at, trips, id, participants: all, writers, missing, since, told: since });
    }

    pub(crate) fn on_committed(&mut self, from: SiteId, txn: TxnId, fx: &mut Effects<Site>) {
        let Some(decided) = self.gateway.decided.get_mut(&txn) else { return };
        decided.missing.remove(&from);
        decided.writers.remove(&from);
        if decided.writers.is_empty()
            && let Some(id) = decided.id.take()
        {
            fx.agree(TRANSACTION, txn, &Some(decided.at));
            fx.answer(id, Answer::Committed(Committed { at: decided.at, trips: decided.trips }));
        }
        if decided.missing.is_empty() {
            self.gateway.decided.remove(&txn);
            let mut batch = Batch::new();
            batch.delete_record(DECISIONS, txn_key(txn));
            fx.persist(batch);
        }
    }

    pub(crate) fn on_refused(&mut self, from: SiteId, txn: TxnId, session: Option<Timestamp>, fx: &mut Effects<Site>) {
        let Some(open) = self.gateway.open.get_mut(&txn) else { return };
        let other = open.sessions.get(&from).is_some_and(|known| session.is_some_and(|session| session != *known));
        match &open.doing {
            // Not of the session in which it reads: what a message that came twice has begun.
            _ if other => {}
            Doing::Idle | Doing::Lost => open.doing = Doing::Lost,
            Doing::Reading { id, .. } | Doing::Confirming { id, .. } | Doing::Preparing { id, .. } => {
                let id = *id;
                self.fail(txn, Some(id), over(), fx);
            }
        }
    }

    pub(crate) fn on_inquire(&mut self, from: SiteId, txn: TxnId, committed: bool, fx: &mut Effects<Site>) {
        let epoch = self.configuration.epoch;
        match self.gateway.decided.get(&txn) {
            Some(decided) if committed && decided.writers.is_empty() => fx.send(from, epoch.says(Note::Settled { txn })),
            Some(decided) => {
                let Decided { at, participants, .. } = decided;
                let commit = Promise::Commit { txn, at: *at, participants: participants.clone() };
                fx.persist(Batch::new()).send(from, epoch.says(commit));
            }
            None if self.gateway.open.contains_key(&txn) => {}
            // A decision is forgotten only once all have confirmed it.
            None if committed => fx.send(from, epoch.says(Note::Settled { txn })),
            None => fx.send(from, epoch.says(Note::Abort { txn })),
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
    Some(TxnError::TooLarge(why))
}
