//! A site as a gateway: its clients' transactions, from the first read to the second round.
//!
//! Invariants: a decision to commit is on disk before anybody hears of it, and stays there until all who prepared know; what is not
//! decided did not happen, so that a gateway without a decision answers *abort*; a client is told *committed* once the whole write
//! quorum has the commit on disk.

use super::config::{OPEN_MAX, ROWS_MAX, SCAN_MAX, TXN_BYTES_MAX, TXN_ROWS_MAX, WAITING_MAX};
use super::configuration::Configuration;
use super::message::{Note, Promise, Query};
#[cfg(feature = "planted")]
use super::planted::Planted;
use super::records::{DECISIONS, DecisionRecord, txn_key};
use super::site::Site;
use crate::replicated_commit::{Answer, Request};
use crate::transaction::{Committed, ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::record::encode;
use rhumb_core::{Batch, Effects, Key, KeyRange, Row, SiteId, Time, Timestamp, TxnId, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The transactions of a site's clients.
#[derive(Debug, Default)]
pub(super) struct Gateway {
    open: BTreeMap<TxnId, Open>,
    decided: BTreeMap<TxnId, Decided>,
    /// Counts transactions, for systems whose quorums take turns.
    turn: u64,
}

/// A request that waits for the next configuration.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: RequestId,
    pub(super) request: Request,
    /// The tick since which it waits.
    since: u64,
}

/// A transaction that is not decided.
#[derive(Debug)]
struct Open {
    /// Its number among those of this site.
    turn: u64,
    /// Its read quorum, once it has read.
    quorum: BTreeSet<SiteId>,
    /// The session at each site that it has read from.
    sessions: BTreeMap<SiteId, Timestamp>,
    /// How often it has read.
    number: u32,
    /// Rounds over the wide area.
    trips: u32,
    /// The tick since which it does what it does.
    since: u64,
    doing: Doing,
}

#[derive(Debug)]
enum Doing {
    /// Its client thinks.
    Idle,
    /// Its client thinks, and will hear that it cannot go on.
    Lost,
    /// `found`: the first of the rows asked for by key, where there was too much to tell at once; `query` asks for the rest.
    Reading {
        id: RequestId,
        query: Query,
        found: Vec<Row>,
        answers: BTreeMap<SiteId, (Vec<Row>, bool)>,
    },
    Confirming {
        id: RequestId,
        missing: BTreeSet<SiteId>,
    },
    Preparing {
        id: RequestId,
        writers: BTreeSet<SiteId>,
        all: BTreeSet<SiteId>,
        missing: BTreeSet<SiteId>,
    },
}

/// A transaction that commits.
#[derive(Debug)]
struct Decided {
    at: Timestamp,
    trips: u32,
    /// The client that waits.
    id: Option<RequestId>,
    /// All who are prepared.
    participants: BTreeSet<SiteId>,
    /// Those of the write quorum that have not confirmed; none: the transaction is settled. Its replicas may know that before.
    writers: BTreeSet<SiteId>,
    /// All who have not confirmed.
    missing: BTreeSet<SiteId>,
    /// The tick at which it was decided.
    since: u64,
    /// The tick at which it was last told.
    told: u64,
}

fn over() -> TxnError {
    TxnError::Conflict("an older transaction took locks of this one over, a site lost them, or the quorums changed".into())
}

fn moved() -> TxnError {
    TxnError::Conflict("the configuration of quorums changed; nothing was committed".into())
}

fn no_quorum(of: &str) -> TxnError {
    TxnError::Unavailable(format!(
        "so few sites are in reach that no {of} quorum is left; nothing was committed (rhumb.quorums shows who is silent)"
    ))
}

impl Gateway {
    /// A decision that was found on disk.
    pub(super) fn restore(&mut self, record: DecisionRecord) {
        let participants: BTreeSet<SiteId> = record.participants.into_iter().collect();
        let (writers, missing) = (participants.clone(), participants.clone());
        let decided = Decided { at: record.at, trips: 0, id: None, participants, writers, missing, since: 0, told: 0 };
        self.decided.insert(record.txn, decided);
    }

    /// How many transactions are in progress, as far as their clients know.
    pub(super) fn in_progress(&self) -> usize {
        self.open.len() + self.decided.values().filter(|decided| decided.id.is_some()).count()
    }

    /// How many transactions are decided and not known to all who prepared.
    pub(super) fn undelivered(&self) -> usize {
        self.decided.len()
    }
}

impl Site {
    pub(super) fn on_request(&mut self, now: Time, id: RequestId, request: Request, fx: &mut Effects<Site>) {
        if !self.is_member() {
            return fx.answer(id, Answer::Failed(TxnError::Unavailable(self.stranger())));
        }
        if self.sealed.is_some() && self.waits(&request) {
            return self.waiting.push_back(Waiting { id, request, since: self.ticks });
        }
        let answer = match request {
            Request::Begin { mode: ReadMode::Stale(_) } => {
                Err(TxnError::Unsupported("AS OF SYSTEM TIME cannot be used in a database of protocol quad; leave it out".into()))
            }
            Request::Begin { .. } => self.begin(now),
            Request::Get { expect, .. } | Request::Scan { expect, .. } | Request::Commit { expect, .. } if !expect.is_empty() => {
                Err(TxnError::Invalid("QuAD reads what it depends on under locks; it takes no versions read elsewhere".into()))
            }
            Request::Get { keys, .. } if keys.len() > ROWS_MAX => {
                let why = format!("{} rows are read at once; at most {ROWS_MAX} can be: read them in parts", keys.len());
                Err(TxnError::TooLarge(why))
            }
            Request::Get { txn, keys, .. } => return self.read(id, txn, Query::Keys(keys), fx),
            Request::Scan { txn, range, limit, reverse, .. } => {
                let limit = limit.min(SCAN_MAX as u32);
                return self.read(id, txn, Query::Range { range, limit, reverse }, fx);
            }
            Request::Commit { txn, writes, .. } => return self.commit(now, id, txn, writes, fx),
            Request::Rollback { txn } => {
                self.fail(txn, None, over(), fx);
                Ok(Answer::Done)
            }
            Request::Status => Err(TxnError::Invalid("QuAD has no such status".into())),
        };
        fx.answer(id, answer.unwrap_or_else(Answer::Failed));
    }

    /// True if a request is to wait for the next configuration: the first of a transaction. It keeps its age.
    fn waits(&self, request: &Request) -> bool {
        let Some(txn) = transaction_of(request) else { return false };
        let fresh = |open: &Open| matches!(open.doing, Doing::Idle) && open.number == 0;
        self.waiting.len() < WAITING_MAX && self.gateway.open.get(&txn).is_some_and(fresh)
    }

    /// Who waits for too long for the next configuration is told so, and may run its transaction again.
    pub(super) fn tick_waiting(&mut self, fx: &mut Effects<Site>) {
        let late = |waiting: &Waiting, ticks: u64, patience: u64| ticks >= waiting.since + patience;
        while self.waiting.front().is_some_and(|first| late(first, self.ticks, self.config.waiting_ticks)) {
            let Waiting { id, request, .. } = self.waiting.pop_front().expect("it is there");
            let txn = transaction_of(&request).expect("only requests of a transaction wait");
            let error = TxnError::Conflict("the configuration of quorums is being changed for long; nothing was committed".into());
            fx.count("quad.waited_for_nothing");
            self.fail(txn, Some(id), error, fx);
        }
    }

    /// The epoch is sealed here: transactions that have read, or prepare, cannot go on. What is decided is decided.
    pub(super) fn interrupt(&mut self, fx: &mut Effects<Site>) {
        let fresh = |open: &Open| matches!(open.doing, Doing::Idle) && open.number == 0;
        let begun: Vec<TxnId> = self.gateway.open.iter().filter(|(_, open)| !fresh(open)).map(|(txn, _)| *txn).collect();
        for txn in begun {
            fx.count("quad.interrupted");
            self.fail(txn, None, moved(), fx);
        }
    }

    /// The epoch is over: `next` says what of its decisions counts.
    pub(super) fn end_epoch(&mut self, next: &Configuration, batch: &mut Batch, fx: &mut Effects<Site>) {
        self.interrupt(fx);
        for (txn, decided) in std::mem::take(&mut self.gateway.decided) {
            batch.delete_record(DECISIONS, txn_key(txn));
            let Some(id) = decided.id else { continue };
            // Had anybody been shown it, the commit would stand at all who are prepared.
            let nobody_saw = self.replica.is_in_doubt(txn);
            fx.answer(
                id,
                if next.carried.iter().any(|carried| carried.txn == txn) {
                    Answer::Committed(Committed { at: decided.at, trips: decided.trips })
                } else if next.epoch == self.configuration.epoch.next() && nobody_saw {
                    Answer::Failed(moved())
                } else {
                    Answer::Failed(TxnError::Unknown("the configuration changed without this site while it committed".into()))
                },
            );
        }
    }

    fn begin(&mut self, now: Time) -> Result<Answer, TxnError> {
        if self.gateway.open.len() + self.gateway.decided.len() >= OPEN_MAX || !self.may_issue(now) {
            return Err(TxnError::Unavailable(
                "this site has as many open transactions as it can; end some, or connect to another site".into(),
            ));
        }
        let txn = TxnId { began: self.clock.now(now), gateway: self.me };
        self.gateway.turn += 1;
        let (turn, since) = (self.gateway.turn, self.ticks);
        let (quorum, sessions) = (BTreeSet::new(), BTreeMap::new());
        self.gateway.open.insert(txn, Open { turn, quorum, sessions, number: 0, trips: 0, since, doing: Doing::Idle });
        Ok(Answer::Began { txn })
    }

    /// The transaction, if its client may go on with it; else the client is told.
    fn go_on(&mut self, id: RequestId, txn: TxnId, fx: &mut Effects<Site>) -> Option<&mut Open> {
        let is_idle = self.gateway.open.get(&txn).is_some_and(|open| matches!(open.doing, Doing::Idle));
        if !is_idle {
            self.fail(txn, Some(id), over(), fx);
            return None;
        }
        let ticks = self.ticks;
        let open = self.gateway.open.get_mut(&txn).expect("it is idle");
        open.since = ticks;
        Some(open)
    }

    fn read(&mut self, id: RequestId, txn: TxnId, query: Query, fx: &mut Effects<Site>) {
        let (up, epoch) = (self.up(), self.configuration.epoch);
        let Some(open) = self.go_on(id, txn, fx) else { return };
        let (turn, mut quorum) = (open.turn, open.quorum.clone());
        if quorum.is_empty() {
            let Some(found) = self.configuration.quorums.read(self.me, &up, turn) else {
                return self.fail(txn, Some(id), no_quorum("read"), fx);
            };
            quorum = found;
        }
        let open = self.gateway.open.get_mut(&txn).expect("it goes on");
        open.number += 1;
        open.trips += 1;
        for site in &quorum {
            fx.send(*site, epoch.says(Note::Read { txn, number: open.number, query: query.clone() }));
        }
        open.quorum = quorum;
        open.doing = Doing::Reading { id, query, found: Vec::new(), answers: BTreeMap::new() };
    }

    pub(super) fn on_rows(
        &mut self,
        from: SiteId,
        (txn, number, session): (TxnId, u32, Timestamp),
        (rows, more): (Vec<Row>, bool),
        fx: &mut Effects<Site>,
    ) {
        let Some(open) = self.gateway.open.get_mut(&txn) else { return };
        let Doing::Reading { id, query, found, answers } = &mut open.doing else { return };
        if number != open.number || !open.quorum.contains(&from) {
            return;
        }
        let id = *id;
        if *open.sessions.entry(from).or_insert(session) != session {
            return self.fail(txn, Some(id), over(), fx);
        }
        answers.insert(from, (rows, more));
        if answers.len() < open.quorum.len() {
            return;
        }
        let answers: Vec<(Vec<Row>, bool)> = std::mem::take(answers).into_values().collect();
        for row in answers.iter().flat_map(|(rows, _)| rows) {
            self.clock.observe(row.version);
        }
        let answer = match query {
            #[cfg(feature = "planted")]
            Query::Keys(_) if self.planted == Some(Planted::FirstForNewest) => {
                Answer::Rows { rows: answers[answers.len() - 1].0.clone(), covered: None, more: false, trips: open.trips }
            }
            Query::Keys(keys) => {
                let reached = answers.iter().map(|(rows, _)| rows.len()).min().expect("a quorum is not empty");
                let rest = keys.split_off(reached.min(keys.len()));
                found.extend(newest(keys, &answers));
                if !rest.is_empty() {
                    *keys = rest;
                    (open.number, open.trips, open.since) = (open.number + 1, open.trips + 1, self.ticks);
                    for site in &open.quorum {
                        let note = Note::Read { txn, number: open.number, query: query.clone() };
                        fx.send(*site, self.configuration.epoch.says(note));
                    }
                    return;
                }
                Answer::Rows { rows: std::mem::take(found), covered: None, more: false, trips: open.trips }
            }
            Query::Range { range, limit, reverse } => {
                let (rows, covered) = merge(range, *limit as usize, *reverse, &answers);
                let more = covered != *range;
                Answer::Rows { rows, covered: Some(covered), more, trips: open.trips }
            }
        };
        open.doing = Doing::Idle;
        open.since = self.ticks;
        fx.answer(id, answer);
    }

    fn commit(&mut self, now: Time, id: RequestId, txn: TxnId, writes: Vec<(Key, Option<Value>)>, fx: &mut Effects<Site>) {
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
        #[cfg(feature = "planted")]
        let writers = match writers.last().copied().filter(|_| writers.len() > 1 && self.has_planted(Planted::QuorumTooSmall)) {
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

    pub(super) fn on_confirmed(&mut self, now: Time, from: SiteId, txn: TxnId, fx: &mut Effects<Site>) {
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

    pub(super) fn on_prepared(&mut self, now: Time, from: SiteId, txn: TxnId, clock: Timestamp, fx: &mut Effects<Site>) {
        #[cfg(feature = "planted")]
        let clock = if self.has_planted(Planted::ClocksIgnored) { Timestamp::ZERO } else { clock };
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
        #[cfg(feature = "planted")]
        let id = id.filter(|id| {
            let early = self.has_planted(Planted::AnsweredAfterFirstRound);
            if early {
                fx.answer(*id, Answer::Committed(Committed { at, trips }));
            }
            !early
        });
        let (missing, since) = (all.clone(), self.ticks);
        self.gateway.decided.insert(txn, Decided { at, trips, id, participants: all, writers, missing, since, told: since });
    }

    pub(super) fn on_committed(&mut self, from: SiteId, txn: TxnId, fx: &mut Effects<Site>) {
        let Some(decided) = self.gateway.decided.get_mut(&txn) else { return };
        decided.missing.remove(&from);
        decided.writers.remove(&from);
        if decided.writers.is_empty()
            && let Some(id) = decided.id.take()
        {
            fx.answer(id, Answer::Committed(Committed { at: decided.at, trips: decided.trips }));
        }
        if decided.missing.is_empty() {
            self.gateway.decided.remove(&txn);
            let mut batch = Batch::new();
            batch.delete_record(DECISIONS, txn_key(txn));
            fx.persist(batch);
        }
    }

    pub(super) fn on_refused(&mut self, from: SiteId, txn: TxnId, session: Option<Timestamp>, fx: &mut Effects<Site>) {
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

    pub(super) fn on_inquire(&mut self, from: SiteId, txn: TxnId, committed: bool, fx: &mut Effects<Site>) {
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

    pub(super) fn tick_gateway(&mut self, fx: &mut Effects<Site>) {
        let (ticks, config, epoch) = (self.ticks, self.config.clone(), self.configuration.epoch);
        let mut late = Vec::new();
        for (txn, open) in &self.gateway.open {
            let (patience, id) = match open.doing {
                Doing::Idle | Doing::Lost => (config.abandoned_ticks, None),
                Doing::Reading { id, .. } | Doing::Confirming { id, .. } | Doing::Preparing { id, .. } => (config.patience_ticks, Some(id)),
            };
            if ticks >= open.since + patience {
                late.push((*txn, id));
            }
        }
        for (txn, id) in late {
            let error = TxnError::Unavailable(
                "a lock was not granted, or a site of the quorum did not answer, in time; nothing was committed".into(),
            );
            self.fail(txn, id, error, fx);
        }
        for (txn, decided) in &mut self.gateway.decided {
            if ticks >= decided.since + config.unknown_ticks
                && let Some(id) = decided.id.take()
            {
                let error = TxnError::Unknown("it was decided to commit, but not all sites of the quorum have confirmed that".into());
                fx.answer(id, Answer::Failed(error));
            }
            if ticks >= decided.told + config.doubt_ticks {
                decided.told = ticks;
                let mut persist = fx.persist(Batch::new());
                for site in &decided.missing {
                    let commit = Promise::Commit { txn: *txn, at: decided.at, participants: decided.participants.clone() };
                    persist = persist.send(*site, epoch.says(commit));
                }
            }
        }
    }

    /// The transaction ends without a commit. Whoever waits for it is told why: `id`, and a request of it that was under way.
    fn fail(&mut self, txn: TxnId, id: Option<RequestId>, error: TxnError, fx: &mut Effects<Site>) {
        let mut waiting = BTreeSet::from_iter(id);
        if let Some(open) = self.gateway.open.remove(&txn) {
            let mut touched = open.quorum;
            match open.doing {
                Doing::Idle | Doing::Lost => {}
                Doing::Reading { id, .. } | Doing::Confirming { id, .. } => drop(waiting.insert(id)),
                Doing::Preparing { id, all, .. } => {
                    waiting.insert(id);
                    touched.extend(all);
                }
            }
            for site in touched {
                fx.send(site, self.configuration.epoch.says(Note::Abort { txn }));
            }
        }
        for id in waiting {
            fx.answer(id, Answer::Failed(error.clone()));
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

/// The transaction that a request goes on with, if it does.
fn transaction_of(request: &Request) -> Option<TxnId> {
    match request {
        Request::Get { txn, .. } | Request::Scan { txn, .. } | Request::Commit { txn, .. } => Some(*txn),
        _ => None,
    }
}

/// Of each key the newest row among the answers, which have one for each.
fn newest(keys: &[Key], answers: &[(Vec<Row>, bool)]) -> Vec<Row> {
    let of = |place: usize| answers.iter().map(|(rows, _)| &rows[place]).max_by_key(|row| row.version).expect("a quorum is not empty");
    (0..keys.len()).map(|place| of(place).clone()).collect()
}

/// The live rows of a range among the answers, and for which part of the range they speak: as far as every answer reached, and
/// no more than `limit` rows.
fn merge(range: &KeyRange, limit: usize, reverse: bool, answers: &[(Vec<Row>, bool)]) -> (Vec<Row>, KeyRange) {
    let mut covered = range.clone();
    for (rows, _) in answers.iter().filter(|(_, more)| *more) {
        match rows.last() {
            Some(last) if reverse => covered.start = covered.start.max(last.key.clone()),
            Some(last) => covered.end = covered.end.min(last.key.successor()),
            None => covered.end = covered.start.clone(),
        }
    }
    let mut found: BTreeMap<&Key, &Row> = BTreeMap::new();
    for row in answers.iter().flat_map(|(rows, _)| rows).filter(|row| covered.contains(&row.key)) {
        let newest = found.entry(&row.key).or_insert(row);
        if row.version > newest.version {
            *newest = row;
        }
    }
    let live = found.into_values().filter(|row| row.value.is_some()).cloned();
    let mut rows: Vec<Row> = if reverse { live.rev().collect() } else { live.collect() };
    if rows.len() >= limit
        && let Some(last) = rows.get(limit.max(1) - 1)
    {
        match reverse {
            true => covered.start = last.key.clone(),
            false => covered.end = last.key.successor(),
        }
        rows.truncate(limit);
    }
    (rows, covered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, version: u64, value: Option<&str>) -> Row {
        Row { key: key.into(), version: Timestamp::from_bits(version), value: value.map(Value::from) }
    }

    fn range() -> KeyRange {
        KeyRange::new("a".into(), "z".into())
    }

    #[test]
    fn of_each_key_the_newest_row_counts_a_deletion_too() {
        let answers = [
            (vec![row("a", 3, Some("old")), row("b", 9, None)], false),
            (vec![row("a", 5, Some("new")), row("b", 2, Some("gone"))], false),
        ];
        assert_eq!(newest(&["a".into(), "b".into()], &answers), [row("a", 5, Some("new")), row("b", 9, None)]);
    }

    #[test]
    fn a_scan_speaks_for_as_much_as_every_answer_reached() {
        let cut = (vec![row("b", 1, Some("b")), row("d", 1, Some("d"))], true);
        let whole = (vec![row("c", 1, Some("c")), row("d", 2, None), row("e", 1, Some("e"))], false);
        let (rows, covered) = merge(&range(), 10, false, &[cut, whole]);
        assert_eq!(rows, [row("b", 1, Some("b")), row("c", 1, Some("c"))], "d is deleted, e lies beyond");
        assert_eq!(covered, KeyRange::new("a".into(), Key::from("d").successor()));
    }

    #[test]
    fn a_scan_from_the_end_is_cut_at_its_start() {
        let cut = (vec![row("e", 1, Some("e")), row("c", 1, Some("c"))], true);
        let whole = (vec![row("d", 1, Some("d")), row("b", 1, Some("b"))], false);
        let (rows, covered) = merge(&range(), 2, true, &[cut, whole]);
        assert_eq!(rows, [row("e", 1, Some("e")), row("d", 1, Some("d"))]);
        assert_eq!(covered, KeyRange::new("d".into(), "z".into()), "the limit cuts off more than the answers did");
        let nothing = merge(&range(), 0, false, &[(vec![], true), (vec![row("b", 1, Some("b"))], false)]);
        assert_eq!(nothing, (vec![], KeyRange::new("a".into(), "a".into())));
    }
}
