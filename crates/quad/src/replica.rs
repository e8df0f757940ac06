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

use super::config::{ROWS_BYTES_MAX, SESSIONS_MAX};
use super::configuration::{Carried, Cause, Goal};
use super::message::{Note, Promise, Query, TRANSACTION};
use super::planted::Planted;
use super::reconcile::fitting;
use super::records::{CommitRecord, PREPARED, PreparedRecord, put_ceiling, put_versions, txn_key};
use super::site::{Loading, Site};
use rhumb_commit::wound_wait::{Lock, Mode, Outcome, Phase, WoundWait, one_key};
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::record::encode;
use rhumb_core::{Batch, Effects, Key, Row, SiteId, Table, Time, Timestamp, TxnId, Value, work};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

/// What a site holds for others.
#[derive(Debug, Default)]
pub(super) struct Replica {
    table: WoundWait,
    sessions: BTreeMap<TxnId, Session>,
    prepared: BTreeMap<TxnId, Prepared>,
}

/// A transaction that holds locks here, or waits for some, and is not prepared.
#[derive(Debug)]
struct Session {
    name: Timestamp,
    /// The tick at which it was last heard of.
    seen: u64,
    /// The number of its last read; what has none above was sent before.
    number: u32,
    /// What it asked for and has not got yet.
    asked: Option<Asked>,
}

#[derive(Debug)]
struct Asked {
    missing: BTreeSet<Lock>,
    what: What,
}

#[derive(Debug)]
enum What {
    Read { number: u32, query: Query },
    Prepare { writes: Vec<(Key, Option<Value>)> },
}

/// A transaction that is prepared here.
#[derive(Debug)]
struct Prepared {
    record: PreparedRecord,
    /// The tick at which it last asked for its outcome, or heard that it commits.
    since: u64,
    /// The tick of this life since which it keeps its locks.
    began: u64,
    /// All who are prepared; none before the commit has come.
    participants: BTreeSet<SiteId>,
    /// Those who have the commit on disk, as far as they have said so in this life.
    confirmed: BTreeSet<SiteId>,
}

impl Prepared {
    fn new(record: PreparedRecord, tick: u64) -> Prepared {
        Prepared { record, since: tick, began: tick, participants: BTreeSet::new(), confirmed: BTreeSet::new() }
    }

    /// True if the commit is known to stand at all who are prepared.
    fn is_settled(&self) -> bool {
        !self.participants.is_empty() && self.participants.is_subset(&self.confirmed)
    }
}

impl Replica {
    /// True if it holds something for the transaction, or is about to.
    pub(super) fn works_for(&self, txn: TxnId) -> bool {
        self.sessions.contains_key(&txn) || self.prepared.contains_key(&txn)
    }

    /// Lists its tables.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("replica.sessions", self.sessions.len(), SESSIONS_MAX));
        visit(Table::new("replica.prepared", self.prepared.len(), SESSIONS_MAX));
        self.table.tables(SESSIONS_MAX, visit);
    }

    /// How many transactions are prepared here.
    pub(super) fn prepared(&self) -> usize {
        self.prepared.len()
    }

    /// The transactions whose commit stands here and is not settled.
    pub(super) fn unsettled(&self) -> Vec<Carried> {
        let carried = |prepared: &Prepared| prepared.record.committed.map(|at| Carried { txn: prepared.record.txn, at });
        work::add(self.prepared.len());
        self.prepared.values().filter_map(carried).collect()
    }

    /// The same with what they wrote, after `last`.
    pub(super) fn commits(&self, last: Option<TxnId>) -> impl Iterator<Item = CommitRecord> + '_ {
        let after = last.map_or(Bound::Unbounded, Bound::Excluded);
        let commit = |prepared: &Prepared| {
            let PreparedRecord { txn, writes, committed, .. } = &prepared.record;
            committed.map(|at| CommitRecord { txn: *txn, at, writes: writes.clone() })
        };
        self.prepared.range((after, Bound::Unbounded)).filter_map(move |(_, prepared)| commit(prepared))
    }

    /// True if a commit stands here that is not settled.
    pub(super) fn has_commits(&self) -> bool {
        self.prepared.values().any(|prepared| prepared.record.committed.is_some())
    }

    /// True if the commit of the transaction stands here and is not settled.
    pub(super) fn has_commit(&self, txn: TxnId) -> bool {
        self.prepared.get(&txn).is_some_and(|prepared| prepared.record.committed.is_some())
    }

    /// True if the transaction is prepared here, and whether it commits has not been heard.
    pub(super) fn is_in_doubt(&self, txn: TxnId) -> bool {
        self.prepared.get(&txn).is_some_and(|prepared| prepared.record.committed.is_none())
    }

    /// What a transaction wrote whose commit stands here and is not settled.
    pub(super) fn take_commit(&mut self, txn: TxnId) -> Option<Vec<(Key, Option<Value>)>> {
        let committed = self.has_commit(txn);
        self.prepared.remove(&txn).filter(|_| committed).map(|prepared| prepared.record.writes)
    }

    /// Everybody who is prepared here.
    pub(super) fn prepared_transactions(&self) -> impl Iterator<Item = TxnId> + '_ {
        self.prepared.keys().copied()
    }

    /// A prepared transaction that was found on disk.
    pub(super) fn restore(&mut self, record: PreparedRecord) {
        for lock in record.locks() {
            work::add(1);
            let granted = self.table.request(record.txn, lock, Phase::Growing);
            assert!(granted.is_ok_and(|outcomes| outcomes.len() == 1), "prepared transactions do not stand in each other's way");
        }
        self.table.prepare(record.txn);
        self.prepared.insert(record.txn, Prepared::new(record, 0));
    }
}

impl Site {
    pub(super) fn on_read(&mut self, now: Time, txn: TxnId, number: u32, query: Query, fx: &mut Effects<Site>) {
        let old = |session: &Session| number <= session.number;
        if self.replica.prepared.contains_key(&txn) || self.replica.sessions.get(&txn).is_some_and(old) {
            return;
        }
        let locks: BTreeSet<Lock> = match &query {
            Query::Keys(keys) => keys.iter().map(|key| Lock { range: one_key(key), mode: Mode::Shared }).collect(),
            Query::Range { range, .. } => BTreeSet::from([Lock { range: range.clone(), mode: Mode::Shared }]),
        };
        self.ask(now, txn, locks, What::Read { number, query }, Phase::Growing, fx);
    }

    pub(super) fn on_prepare(
        &mut self,
        now: Time,
        (txn, session): (TxnId, Option<Timestamp>),
        writes: Vec<(Key, Option<Value>)>,
        fx: &mut Effects<Site>,
    ) {
        if self.replica.prepared.contains_key(&txn) {
            return self.promise_prepared(now, txn, Batch::new(), fx);
        }
        let held = self.replica.sessions.get(&txn);
        if held.is_some_and(|held| matches!(held.asked, Some(Asked { what: What::Prepare { .. }, .. }))) {
            return;
        }
        let is_other = held.map(|held| held.name) != session;
        let is_other = is_other && !self.rules.breaks(Planted::SessionsIgnored);
        if is_other {
            return self.refuse(now, txn, fx);
        }
        let locks = writes.iter().map(|(key, _)| Lock { range: one_key(key), mode: Mode::Exclusive }).collect();
        self.ask(now, txn, locks, What::Prepare { writes }, Phase::Preparing, fx);
    }

    /// Asks the table for `locks`, and goes on with `what` once it has them.
    fn ask(&mut self, now: Time, txn: TxnId, locks: BTreeSet<Lock>, what: What, phase: Phase, fx: &mut Effects<Site>) {
        if !self.replica.sessions.contains_key(&txn) {
            if self.replica.sessions.len() + self.replica.prepared.len() >= SESSIONS_MAX || !self.may_issue(now, fx) {
                return fx.send(txn.gateway, self.configuration.epoch.says(Note::Refused { txn, session: None }));
            }
            let name = self.clock.issue(now).expect("it may issue one");
            self.replica.sessions.insert(txn, Session { name, seen: self.ticks, number: 0, asked: None });
        }
        let session = self.replica.sessions.get_mut(&txn).expect("it was just made sure");
        session.seen = self.ticks;
        if let What::Read { number, .. } = what {
            session.number = number;
        }
        session.asked = Some(Asked { missing: locks.clone(), what });
        if locks.is_empty() {
            return self.has_all(now, txn, fx);
        }
        work::add(locks.len());
        for lock in locks {
            if self.rules.breaks(Planted::LocksWalked) {
                work::add(self.replica.table.held(txn).filter(|held| *held == lock).count());
            }
            match self.replica.table.request(txn, lock, phase) {
                Ok(outcomes) => self.carry_on(now, outcomes, fx),
                Err(refused) => {
                    fx.trace(|| format!("{txn}: {refused}"));
                    fx.count("quad.refused");
                    return self.refuse(now, txn, fx);
                }
            }
        }
    }

    /// Does what the table's outcomes ask for, and what those lead to.
    fn carry_on(&mut self, now: Time, outcomes: Vec<Outcome>, fx: &mut Effects<Site>) {
        let mut outcomes = VecDeque::from(outcomes);
        while let Some(outcome) = outcomes.pop_front() {
            match outcome {
                Outcome::Wounded(txn) => {
                    fx.count("quad.wounded");
                    outcomes.extend(self.drop_session(txn, fx));
                }
                Outcome::Granted(txn, lock) => {
                    let Some(session) = self.replica.sessions.get_mut(&txn) else { continue };
                    let Some(asked) = &mut session.asked else { continue };
                    if asked.missing.remove(&lock) && asked.missing.is_empty() {
                        self.has_all(now, txn, fx);
                    }
                }
            }
        }
    }

    /// All locks asked for are held.
    fn has_all(&mut self, now: Time, txn: TxnId, fx: &mut Effects<Site>) {
        let session = self.replica.sessions.get_mut(&txn).expect("only a session asks");
        let asked = session.asked.take().expect("something was asked for");
        match asked.what {
            What::Read { number, query } => {
                let load = match &query {
                    Query::Keys(keys) => Load::Get { keys: keys.clone(), at: Timestamp::MAX, bytes: ROWS_BYTES_MAX },
                    Query::Range { range, limit, reverse } => Load::Scan {
                        range: range.clone(),
                        at: Timestamp::MAX,
                        limit: *limit as usize,
                        bytes: ROWS_BYTES_MAX,
                        reverse: *reverse,
                    },
                };
                let loading = Loading::Read { txn, number, session: session.name };
                self.load(loading, load, fx);
            }
            What::Prepare { writes } => {
                self.replica.sessions.remove(&txn);
                let shared = self.replica.table.held(txn).filter(|lock| lock.mode == Mode::Shared);
                let reads = shared.map(|lock| lock.range).collect();
                let record = PreparedRecord { txn, reads, writes, committed: None };
                self.replica.table.prepare(txn);
                let mut batch = Batch::new();
                batch.put_record(PREPARED, txn_key(txn), encode(&record));
                self.replica.prepared.insert(txn, Prepared::new(record, self.ticks));
                self.promise_prepared(now, txn, batch, fx);
            }
        }
    }

    fn promise_prepared(&mut self, now: Time, txn: TxnId, batch: Batch, fx: &mut Effects<Site>) {
        let clock = self.clock.now(now);
        fx.persist(batch).send(txn.gateway, self.configuration.epoch.says(Promise::Prepared { txn, clock }));
    }

    pub(super) fn on_read_loaded(&mut self, txn: TxnId, number: u32, session: Timestamp, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Rows { mut rows, more } = loaded else { unreachable!("rows were asked for") };
        let fit = fitting(rows.iter().map(Row::bytes), ROWS_BYTES_MAX);
        let more = more || fit < rows.len();
        work::add(rows.len());
        rows.truncate(fit);
        // What was loaded is as of the lock; it counts only if the lock is still held.
        if self.replica.sessions.get(&txn).is_some_and(|held| held.name == session) {
            fx.send(txn.gateway, self.configuration.epoch.says(Note::Rows { txn, number, session, rows, more }));
        }
    }

    pub(super) fn on_confirm(&mut self, now: Time, txn: TxnId, session: Timestamp, fx: &mut Effects<Site>) {
        if self.replica.sessions.get(&txn).is_some_and(|held| held.name == session) {
            fx.send(txn.gateway, self.configuration.epoch.says(Note::Confirmed { txn }));
            self.release(now, txn, fx);
        } else {
            fx.send(txn.gateway, self.configuration.epoch.says(Note::Refused { txn, session: Some(session) }));
        }
    }

    /// The second round. The commit is on disk before it is confirmed; it is shown to others once it is settled: known to
    /// stand at the whole write quorum, so that every reconfiguration finds it. All who are prepared hear the confirmation, and not the
    /// gateway alone: replicas near each other need not wait for the word of a gateway that is far.
    pub(super) fn on_commit(&mut self, now: Time, (txn, at): (TxnId, Timestamp), participants: BTreeSet<SiteId>, fx: &mut Effects<Site>) {
        let told: BTreeSet<SiteId> = participants.iter().copied().chain([txn.gateway]).collect();
        let mut batch = Batch::new();
        self.observe(at, &mut batch);
        if let Some(prepared) = self.replica.prepared.get_mut(&txn) {
            prepared.record.committed = Some(at);
            prepared.participants = participants;
            prepared.since = self.ticks;
            batch.put_record(PREPARED, txn_key(txn), encode(&prepared.record));
        }
        let mut persist = fx.persist(batch);
        for site in told {
            persist = persist.send(site, self.configuration.epoch.says(Promise::Committed { txn }));
        }
        let shows_nothing = self.replica.prepared.get(&txn).is_some_and(|prepared| prepared.record.writes.is_empty());
        let shows_nothing = shows_nothing || self.rules.breaks(Planted::ShownUnsettled);
        if shows_nothing {
            self.on_settled(now, txn, fx);
        }
    }

    /// The commit stands at `from`.
    pub(super) fn on_confirmed_commit(&mut self, now: Time, from: SiteId, txn: TxnId, fx: &mut Effects<Site>) {
        let Some(prepared) = self.replica.prepared.get_mut(&txn) else { return };
        prepared.confirmed.insert(from);
        if prepared.is_settled() {
            self.on_settled(now, txn, fx);
        }
    }

    pub(super) fn on_settled(&mut self, now: Time, txn: TxnId, fx: &mut Effects<Site>) {
        if !self.replica.has_commit(txn) {
            return;
        }
        let prepared = self.replica.prepared.remove(&txn).expect("it is committed here");
        let mut batch = Batch::new();
        batch.delete_record(PREPARED, txn_key(txn));
        let at = prepared.record.committed.expect("it is committed here");
        fx.agree(TRANSACTION, txn, &Some(at));
        work::add(prepared.record.writes.len());
        self.monitor.written += prepared.record.writes.len() as u64;
        put_versions(&mut batch, self.configuration.epoch, at, prepared.record.writes);
        fx.persist(batch);
        self.release(now, txn, fx);
    }

    pub(super) fn on_abort(&mut self, now: Time, txn: TxnId, fx: &mut Effects<Site>) {
        if let Some(prepared) = self.replica.prepared.get(&txn) {
            if prepared.record.committed.is_some() {
                return;
            }
            self.replica.prepared.remove(&txn);
            let mut batch = Batch::new();
            batch.delete_record(PREPARED, txn_key(txn));
            fx.persist(batch);
        }
        self.release(now, txn, fx);
    }

    /// Those who are in doubt ask; those who were not heard of lose their locks.
    pub(super) fn tick_replica(&mut self, now: Time, fx: &mut Effects<Site>) {
        work::add(self.replica.prepared.len() + self.replica.sessions.len());
        let epoch = self.configuration.epoch;
        for (txn, prepared) in &mut self.replica.prepared {
            if self.ticks >= prepared.since + self.config.doubt_ticks {
                prepared.since = self.ticks;
                if self.rules.breaks(Planted::DoubtEndsInAbort) {
                    fx.send(self.me, epoch.says(Note::Abort { txn: *txn }));
                    continue;
                }
                let committed = prepared.record.committed.is_some();
                fx.send(txn.gateway, epoch.says(Note::Inquire { txn: *txn, committed }));
            }
        }
        let idle = |session: &Session| self.ticks >= session.seen + self.config.idle_ticks;
        let idle: Vec<TxnId> = self.replica.sessions.iter().filter(|(_, session)| idle(session)).map(|(txn, _)| *txn).collect();
        for txn in idle {
            let outcomes = self.drop_session(txn, fx);
            self.carry_on(now, outcomes, fx);
        }
    }

    /// Ends the epoch if a gateway is down that alone knows what comes of what is prepared here: nobody else may say so, and the locks
    /// would stay until it is back. The seal carries on what has committed, and ends the rest.
    pub(super) fn tick_orphans(&mut self, fx: &mut Effects<Site>) {
        let ticks = self.ticks;
        let is_late = |prepared: &Prepared, patience: u64| ticks >= prepared.began + patience;
        work::add(self.replica.prepared.len());
        if !self.replica.prepared.values().any(|prepared| is_late(prepared, self.config.orphaned_ticks)) {
            return;
        }
        let up = self.up();
        let patience = self.config.orphaned_ticks + up.iter().take_while(|site| **site < self.me).count() as u64;
        let is_orphan = |(txn, prepared): &(&TxnId, &Prepared)| !up.contains(&txn.gateway) && is_late(prepared, patience);
        let Some(gateway) = self.replica.prepared.iter().find(is_orphan).map(|(txn, _)| txn.gateway) else { return };
        let why = format!("{gateway} is silent, and transactions that it had prepared keep their locks");
        let (quorums, members) = (self.configuration.quorums.clone(), self.configuration.members());
        self.change(Goal { quorums, members, lost: BTreeSet::new(), cores: None, cause: Cause::Orphans, why }, None, fx);
    }

    /// Takes all from a transaction that is not prepared, and tells its gateway.
    fn drop_session(&mut self, txn: TxnId, fx: &mut Effects<Site>) -> Vec<Outcome> {
        let session = self.replica.sessions.remove(&txn).map(|session| session.name);
        fx.send(txn.gateway, self.configuration.epoch.says(Note::Refused { txn, session }));
        self.replica.table.release(txn)
    }

    fn refuse(&mut self, now: Time, txn: TxnId, fx: &mut Effects<Site>) {
        let outcomes = self.drop_session(txn, fx);
        self.carry_on(now, outcomes, fx);
    }

    fn release(&mut self, now: Time, txn: TxnId, fx: &mut Effects<Site>) {
        self.replica.sessions.remove(&txn);
        let outcomes = self.replica.table.release(txn);
        self.carry_on(now, outcomes, fx);
    }

    /// Later timestamps lie above `at`, also those of a later life.
    pub(super) fn observe(&mut self, at: Timestamp, batch: &mut Batch) {
        self.clock.observe(at);
        if let Some(bound) = self.clock.cover(at) {
            put_ceiling(batch, bound);
        }
    }
}
