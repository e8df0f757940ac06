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
//! Source: section II-B.

use super::config::{ROWS_BYTES_MAX, SESSIONS_MAX};
use super::configuration::{Carried, Cause, Goal};
use super::context::{Context, Job, Shared};
use super::message::{Note, Promise, Query, Rows, TRANSACTION, fitting};
use super::planted::Planted;
use super::records::{CommitRecord, PREPARED, PreparedRecord, put_versions, txn_key};
use rhumb_commit::reason::Reason;
use rhumb_commit::wound_wait::{Lock, Mode, Outcome, Phase, WoundWait, one_key};
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::record::encode;
use rhumb_core::{Batch, Key, Row, SiteId, Table, Timestamp, TxnId, Value, work};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

/// What a site holds for others.
#[derive(Clone, Debug, Default)]
pub(super) struct Replica {
    table: WoundWait,
    sessions: BTreeMap<TxnId, Session>,
    prepared: BTreeMap<TxnId, Prepared>,
    /// Rows written in this epoch, some of them twice.
    written: u64,
}

/// A transaction that holds locks here, or waits for some, and is not prepared.
#[derive(Clone, Debug)]
struct Session {
    name: Timestamp,
    /// The tick at which it was last heard of.
    seen: u64,
    /// The number of its last read; what has none above was sent before.
    number: u32,
    /// What it asked for and has not got yet.
    asked: Option<Asked>,
}

#[derive(Clone, Debug)]
struct Asked {
    missing: BTreeSet<Lock>,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Read { number: u32, query: Query },
    Prepare { writes: Vec<(Key, Option<Value>)> },
}

/// A transaction that is prepared here.
#[derive(Clone, Debug)]
struct Prepared {
    record: PreparedRecord,
    /// The tick at which it last asked for its outcome, or heard that it commits.
    since: u64,
    /// The tick of this incarnation since which it keeps its locks.
    began: u64,
    /// All who are prepared; none before the commit has come.
    participants: BTreeSet<SiteId>,
    /// Those who have the commit on disk, as far as they have said so in this incarnation.
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

    /// Adds to `batch` that nobody is prepared here any more.
    pub(super) fn delete_prepared(&self, batch: &mut Batch) {
        self.prepared.keys().for_each(|txn| batch.delete_record(PREPARED, txn_key(*txn)));
    }

    /// How many rows were written in this epoch.
    pub(super) fn written(&self) -> u64 {
        self.written
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

    pub(super) fn on_read(&mut self, txn: TxnId, number: u32, query: Query, cx: &mut Context<'_>) {
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

    pub(super) fn on_prepare(&mut self, txn: TxnId, session: Option<Timestamp>, writes: Vec<(Key, Option<Value>)>, cx: &mut Context<'_>) {
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

    /// Asks the table for `locks`, and goes on with `what` once it has them.
    fn ask(&mut self, txn: TxnId, locks: BTreeSet<Lock>, what: What, phase: Phase, cx: &mut Context<'_>) {
        if !self.sessions.contains_key(&txn) {
            if self.sessions.len() + self.prepared.len() >= SESSIONS_MAX || !cx.may_issue() {
                return cx.send(txn.gateway, Note::Refused { txn, session: None });
            }
            let name = cx.issue();
            self.sessions.insert(txn, Session { name, seen: cx.ticks, number: 0, asked: None });
        }
        let session = self.sessions.get_mut(&txn).expect("it was just made sure");
        session.seen = cx.ticks;
        if let What::Read { number, .. } = what {
            session.number = number;
        }
        session.asked = Some(Asked { missing: locks.clone(), what });
        if locks.is_empty() {
            return self.has_all(txn, cx);
        }
        work::add(locks.len());
        for lock in locks {
            if cx.rules.breaks(Planted::LocksWalked) {
                work::add(self.table.held(txn).filter(|held| *held == lock).count());
            }
            match self.table.request(txn, lock, phase) {
                Ok(outcomes) => self.carry_on(outcomes, cx),
                Err(refused) => {
                    cx.fx.trace(|| format!("{txn}: {refused}"));
                    cx.fx.count("quad.refused");
                    return self.refuse(txn, cx);
                }
            }
        }
    }

    /// Does what the table's outcomes ask for, and what those lead to.
    fn carry_on(&mut self, outcomes: Vec<Outcome>, cx: &mut Context<'_>) {
        let mut outcomes = VecDeque::from(outcomes);
        while let Some(outcome) = outcomes.pop_front() {
            match outcome {
                Outcome::Wounded(txn) => {
                    cx.fx.count("quad.wounded");
                    outcomes.extend(self.drop_session(txn, cx));
                }
                Outcome::Granted(txn, lock) => {
                    let Some(session) = self.sessions.get_mut(&txn) else { continue };
                    let Some(asked) = &mut session.asked else { continue };
                    if asked.missing.remove(&lock) && asked.missing.is_empty() {
                        self.has_all(txn, cx);
                    }
                }
            }
        }
    }

    /// All locks asked for are held.
    fn has_all(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let session = self.sessions.get_mut(&txn).expect("only a session asks");
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
                let job = Job::Read { txn, number, session: session.name };
                cx.load(job, load);
            }
            What::Prepare { writes } => {
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
        }
    }

    fn promise_prepared(&mut self, txn: TxnId, batch: Batch, cx: &mut Context<'_>) {
        let clock = cx.timestamp();
        cx.promise(batch, txn.gateway, Promise::Prepared { txn, clock });
    }

    pub(super) fn on_read_loaded(&mut self, txn: TxnId, number: u32, session: Timestamp, loaded: Loaded, cx: &mut Context<'_>) {
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

    pub(super) fn on_confirm(&mut self, txn: TxnId, session: Timestamp, cx: &mut Context<'_>) {
        if self.sessions.get(&txn).is_some_and(|held| held.name == session) {
            cx.send(txn.gateway, Note::Confirmed { txn });
            self.release(txn, cx);
        } else {
            cx.send(txn.gateway, Note::Refused { txn, session: Some(session) });
        }
    }

    /// The second round. The commit is on disk before it is confirmed; it is shown to others once it is settled: known to
    /// stand at the whole write quorum, so that every reconfiguration finds it. The confirmation goes to all sites that are prepared, not to the
    /// gateway alone, so that replicas near each other need not wait for a message from a distant gateway.
    pub(super) fn on_commit(&mut self, txn: TxnId, at: Timestamp, participants: BTreeSet<SiteId>, cx: &mut Context<'_>) {
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
    pub(super) fn on_confirmed_commit(&mut self, from: SiteId, txn: TxnId, cx: &mut Context<'_>) {
        let Some(prepared) = self.prepared.get_mut(&txn) else { return };
        prepared.confirmed.insert(from);
        if prepared.is_settled() {
            self.on_settled(txn, cx);
        }
    }

    pub(super) fn on_settled(&mut self, txn: TxnId, cx: &mut Context<'_>) {
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

    pub(super) fn on_abort(&mut self, txn: TxnId, cx: &mut Context<'_>) {
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

    /// Those who are in doubt ask; those who were not heard of lose their locks.
    pub(super) fn tick(&mut self, cx: &mut Context<'_>) {
        work::add(self.prepared.len() + self.sessions.len());
        for (txn, prepared) in &mut self.prepared {
            if cx.ticks >= prepared.since + cx.config.doubt_ticks {
                prepared.since = cx.ticks;
                if cx.rules.breaks(Planted::DoubtEndsInAbort) {
                    cx.send(cx.me, Note::Abort { txn: *txn });
                    continue;
                }
                let committed = prepared.record.committed.is_some();
                cx.send(txn.gateway, Note::Inquire { txn: *txn, committed });
            }
        }
        let idle = |session: &Session| cx.ticks >= session.seen + cx.config.idle_ticks;
        let idle: Vec<TxnId> = self.sessions.iter().filter(|(_, session)| idle(session)).map(|(txn, _)| *txn).collect();
        for txn in idle {
            let outcomes = self.drop_session(txn, cx);
            self.carry_on(outcomes, cx);
        }
    }

    /// The end of the epoch, if a gateway is down that alone knows what comes of what is prepared here: nobody else may say so, and the locks
    /// would stay until it is back. The seal carries on what has committed, and ends the rest.
    pub(super) fn end_of_orphans(&self, cx: &Shared) -> Option<Goal> {
        let ticks = cx.ticks;
        let is_late = |prepared: &Prepared, patience: u64| ticks >= prepared.began + patience;
        work::add(self.prepared.len());
        if !self.prepared.values().any(|prepared| is_late(prepared, cx.config.orphaned_ticks)) {
            return None;
        }
        let up = cx.up();
        let patience = cx.config.orphaned_ticks + up.iter().take_while(|site| **site < cx.me).count() as u64;
        let is_orphan = |(txn, prepared): &(&TxnId, &Prepared)| !up.contains(&txn.gateway) && is_late(prepared, patience);
        let gateway = self.prepared.iter().find(is_orphan)?.0.gateway;
        let why = Reason::from(gateway).then(" is silent, and transactions that it had prepared keep their locks");
        let (quorums, members) = (cx.configuration.quorums.clone(), cx.configuration.members());
        Some(Goal { quorums, members, lost: BTreeSet::new(), cores: None, cause: Cause::Orphans, why })
    }

    /// Takes all from a transaction that is not prepared, and tells its gateway.
    fn drop_session(&mut self, txn: TxnId, cx: &mut Context<'_>) -> Vec<Outcome> {
        let session = self.sessions.remove(&txn).map(|session| session.name);
        cx.send(txn.gateway, Note::Refused { txn, session });
        self.table.release(txn)
    }

    fn refuse(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let outcomes = self.drop_session(txn, cx);
        self.carry_on(outcomes, cx);
    }

    fn release(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        self.sessions.remove(&txn);
        let outcomes = self.table.release(txn);
        self.carry_on(outcomes, cx);
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::super::testing::{Bench, site, txn};
    use super::*;

    fn bench() -> (Bench, Replica) {
        (Bench::new(2, 3, Config::default()), Replica::default())
    }

    fn write() -> Vec<(Key, Option<Value>)> {
        vec![("k".into(), Some("v".into()))]
    }

    fn read(number: u32) -> (u32, Query) {
        (number, Query::Keys(vec!["k".into()]))
    }

    #[test]
    fn a_commit_is_shown_once_it_stands_at_all_who_are_prepared() {
        let (mut bench, mut replica) = bench();
        let txn = txn(5, 1);
        bench.step(|cx| replica.on_prepare(txn, None, write(), cx));
        assert_eq!(bench.lines(), ["sync +prepared; then to r1.0: e1 prepared 0.000000+5@r1.0 above 1.000000+1"]);
        bench.step(|cx| replica.on_prepare(txn, None, write(), cx));
        assert_eq!(bench.lines(), ["sync; then to r1.0: e1 prepared 0.000000+5@r1.0 above 1.000000+2"], "it came twice");
        bench.step(|cx| replica.on_commit(txn, Timestamp::from_bits(7), BTreeSet::from([site(0), site(1)]), cx));
        assert_eq!(
            bench.lines(),
            ["sync +prepared; then to r0.0: e1 committed 0.000000+5@r1.0; then to r1.0: e1 committed 0.000000+5@r1.0"]
        );
        bench.step(|cx| replica.on_abort(txn, cx));
        bench.step(|cx| replica.on_confirmed_commit(site(0), txn, cx));
        assert_eq!(bench.lines().len(), 0, "what has committed does not abort");
        bench.step(|cx| replica.on_confirmed_commit(site(1), txn, cx));
        assert_eq!(bench.lines(), ["sync -prepared +difference +k", "agree on transaction 0.000000+5@r1.0"]);
        assert_eq!((replica.prepared(), replica.written()), (0, 1));
    }

    #[test]
    fn rows_leave_under_a_shared_lock_that_is_still_held() {
        let (mut bench, mut replica) = bench();
        let (old, young) = (txn(5, 1), txn(9, 1));
        let (number, query) = read(1);
        bench.step(|cx| replica.on_read(young, number, query, cx));
        assert_eq!(bench.lines(), ["load rows k"]);
        let session = replica.sessions[&young].name;
        let rows = || Loaded::Rows { rows: Vec::new(), more: false };
        bench.step(|cx| replica.on_read_loaded(young, 1, session, rows(), cx));
        assert_eq!(bench.lines(), ["to r1.0: e1 rows 0.000000+9@r1.0 1: 0"]);
        bench.step(|cx| replica.on_prepare(old, None, write(), cx));
        assert_eq!(
            bench.lines(),
            ["to r1.0: e1 refused 0.000000+9@r1.0", "sync +prepared; then to r1.0: e1 prepared 0.000000+5@r1.0 above 1.000000+2"],
            "the older one takes its lock"
        );
        bench.step(|cx| replica.on_read_loaded(young, 1, session, rows(), cx));
        bench.step(|cx| replica.on_confirm(young, session, cx));
        assert_eq!(bench.lines(), ["to r1.0: e1 refused 0.000000+9@r1.0"]);
    }

    #[test]
    fn a_transaction_prepares_in_the_session_in_which_it_read() {
        let (mut bench, mut replica) = bench();
        let txn = txn(5, 1);
        bench.step(|cx| replica.on_prepare(txn, Some(Timestamp::from_bits(3)), write(), cx));
        assert_eq!(bench.lines(), ["to r1.0: e1 refused 0.000000+5@r1.0"], "it lost that session");
    }

    #[test]
    fn who_is_in_doubt_asks_and_who_is_silent_loses_its_locks() {
        let (mut bench, mut replica) = bench();
        let (prepared, idle) = (txn(5, 1), txn(6, 2));
        bench.step(|cx| replica.on_prepare(prepared, None, write(), cx));
        bench.step(|cx| replica.on_read(idle, 1, Query::Keys(vec!["j".into()]), cx));
        bench.lines();
        bench.shared.ticks = bench.shared.config.idle_ticks;
        bench.step(|cx| replica.tick(cx));
        assert_eq!(bench.lines(), ["to r1.0: e1 inquire 0.000000+5@r1.0", "to r2.0: e1 refused 0.000000+6@r2.0"]);
    }

    #[test]
    fn locks_that_a_gateway_which_is_down_keeps_end_the_epoch() {
        let (mut bench, mut replica) = bench();
        bench.step(|cx| replica.on_prepare(txn(5, 1), None, write(), cx));
        bench.shared.ticks = bench.shared.config.orphaned_ticks;
        let tick = bench.shared.ticks;
        bench.shared.peers.answer(site(1), tick, Vec::new());
        assert_eq!(replica.end_of_orphans(&bench.shared), None, "it is up");
        bench.shared.ticks *= 2;
        let goal = replica.end_of_orphans(&bench.shared).expect("it is silent");
        assert_eq!((goal.cause, goal.quorums), (Cause::Orphans, bench.shared.configuration.quorums.clone()));
    }
}
