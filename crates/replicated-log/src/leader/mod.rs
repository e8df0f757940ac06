//! A site as the leader of its group: locks, and what transactions prepare. All of it is in memory, and gone with the leadership; a new
//! leader takes the locks of what is prepared from the state.
//!
//! ```text
//!   growing ── Prepare ──▶ locking ──▶ checking ──▶ proposed ──▶ prepared ──▶ ended
//!      │ an older one          │ what it depends      │ alone in its group     ▲
//!      ▼ needs a lock          ▼ on has changed       └────────────────────────┘
//!   wounded                  vetoed
//! ```
//!
//! Invariants:
//!
//! 1. A transaction prepares only with the locks under which it has read: its session names the leader's ballot and this very table entry.
//! 2. It is given a timestamp above all at which what it writes was read here, and above all that the leaders before may have served.
//! 3. What is prepared keeps its locks until its outcome is applied, through any change of leader.

mod coordination;
mod ending;
mod preparing;
mod snapshots;

pub(crate) use coordination::Coordinator;
pub(crate) use snapshots::{Asked, Snapshots, on_loaded as on_snapshot_loaded, read as read_snapshot};

use crate::command::{Prepared, Writes, written_bytes};
use crate::config::{Config, FOOTPRINT_BYTES_MAX, LOADS_MAX, OPEN_MAX, PREPARED_MAX, ROWS_BYTES_MAX, SCAN_ROWS_MAX, ticks};
use crate::context::{Context, Job};
use crate::message::{Note, Query, Refusal, Session};
use crate::planted::Planted;
use crate::replica::Replica;
use crate::state::Known;
use rhumb_commit::timestamp_cache::TimestampCache;
use rhumb_commit::wound_wait::{Lock, Mode, Outcome, Phase, WAITING_MAX, WoundWait, one_key};
use rhumb_core::{Ballot, Key, KeyRange, Load, Loaded, Table, Timestamp, TxnId};
use std::collections::{BTreeMap, BTreeSet};

/// What a transaction is to prepare.
#[derive(Debug)]
struct Wanted {
    shards: Vec<u16>,
    expect: Vec<(Key, Timestamp)>,
    writes: Writes,
}

/// How far a transaction is.
#[derive(Debug)]
enum Stage {
    /// It reads.
    Growing { reading: Option<(u64, Query)> },
    /// An older one has taken its locks over.
    Wounded,
    /// It waits for the locks that it prepares with.
    Locking(Wanted),
    /// What it depends on is looked at.
    Checking(Wanted),
    /// Its entry is on its way.
    Proposed { shards: Vec<u16> },
    /// A majority has it prepared.
    Prepared { at: Timestamp, shards: Vec<u16>, sent: u64, finishing: bool },
}

/// A transaction that has, or had, locks here.
#[derive(Debug)]
struct Active {
    instance: u64,
    /// The tick at which its gateway was heard last.
    touched: u64,
    reads: BTreeSet<KeyRange>,
    reads_bytes: usize,
    missing: BTreeSet<Lock>,
    /// Bytes of what it is to write, once it prepares.
    bytes: usize,
    stage: Stage,
}

/// What a transaction writes that is proposed or prepared, and the least timestamp at which it may.
#[derive(Debug)]
struct Written {
    at: Timestamp,
    keys: Vec<Key>,
}

/// What a leader has in memory.
#[derive(Debug, Default)]
pub(crate) struct Leader {
    ballot: Option<Ballot>,
    locks: WoundWait,
    cache: TimestampCache,
    active: BTreeMap<TxnId, Active>,
    /// Bytes of what all of them are to write.
    bytes: usize,
    instances: u64,
    /// Who writes a row: those proposed and prepared.
    writing: BTreeMap<Key, TxnId>,
    /// What each of these writes.
    written: BTreeMap<TxnId, Written>,
    pub(crate) snapshots: Snapshots,
    pub(crate) coordinator: Coordinator,
}

/// The rows of a query, its newest versions or those at `at`.
fn load(query: &Query, at: Timestamp) -> Load {
    match query {
        Query::Keys(keys) => Load::Get { keys: keys.clone(), at, bytes: ROWS_BYTES_MAX },
        Query::Range { range, reverse, .. } => {
            Load::Scan { range: range.clone(), at, limit: SCAN_ROWS_MAX, bytes: ROWS_BYTES_MAX, reverse: *reverse }
        }
    }
}

fn ranges(query: &Query) -> Vec<KeyRange> {
    match query {
        Query::Keys(keys) => keys.iter().map(one_key).collect(),
        Query::Range { range, .. } => vec![range.clone()],
    }
}

impl Leader {
    /// Follows the group: begins to serve, or ends.
    pub(crate) fn follow(&mut self, replica: &Replica, cx: &mut Context<'_>) {
        let ballot = replica.group().leads();
        if self.ballot.is_some() && self.ballot != ballot {
            *self = Leader { instances: self.instances, ..Leader::default() };
        }
        if self.ballot.is_none() && replica.is_ready_to_serve() {
            self.begin(ballot, replica, cx);
        }
    }

    fn begin(&mut self, ballot: Option<Ballot>, replica: &Replica, cx: &mut Context<'_>) {
        self.ballot = ballot;
        let (state, me) = (replica.state(), cx.me);
        let low_water = if cx.rules.breaks(Planted::CeilingForgotten) { Timestamp::ZERO } else { state.low_water() };
        self.cache.raise_low_water(low_water);
        cx.clock.observe(low_water.max(state.marks.highest));
        cx.note_leader(me);
        cx.fx.count("log.leader");
        if cx.rules.breaks(Planted::PreparedNotRestored) {
            return;
        }
        for (txn, Prepared { at, shards, reads, writes }) in &state.prepared {
            self.instances += 1;
            for lock in locks(reads, writes) {
                self.locks.request(*txn, lock, Phase::Growing).expect("what is prepared does not conflict");
            }
            self.locks.prepare(*txn);
            self.note_writes(*txn, *at, writes);
            let stage = Stage::Prepared { at: *at, shards: shards.clone(), sent: 0, finishing: false };
            let (reads, bytes) = (reads.iter().cloned().collect(), written_bytes(writes));
            let (instance, touched, missing) = (self.instances, cx.ticks, BTreeSet::new());
            self.active.insert(*txn, Active { instance, touched, reads, reads_bytes: 0, missing, bytes, stage });
            self.bytes += bytes;
            if shards[0] == me.shard {
                self.coordinator.on_prepared(*txn, (me.shard, *at), shards, cx.ticks);
            }
        }
    }

    /// True if it leads, and answers.
    pub(crate) fn serves(&self) -> bool {
        self.ballot.is_some()
    }

    fn note_writes(&mut self, txn: TxnId, at: Timestamp, writes: &Writes) {
        let keys: Vec<Key> = writes.iter().map(|(key, _)| key.clone()).collect();
        self.writing.extend(keys.iter().map(|key| (key.clone(), txn)));
        self.written.insert(txn, Written { at, keys });
    }

    /// A gateway reads under locks.
    pub(crate) fn on_read(
        &mut self,
        txn: TxnId,
        (number, session): (u64, Option<Session>),
        query: Query,
        replica: &Replica,
        cx: &mut Context<'_>,
    ) {
        let refuse = |why, cx: &mut Context<'_>| cx.send(txn.gateway, Note::Refused { txn, number, why });
        if replica.state().of(txn) != Known::Nothing {
            return refuse(Refusal::TooOld, cx);
        }
        if !self.is_in_session(txn, session) {
            return refuse(Refusal::LocksLost, cx);
        }
        let wanted = ranges(&query);
        let is_full = !self.active.contains_key(&txn) && self.active.len() >= OPEN_MAX;
        if is_full || !self.has_room_for(wanted.len(), cx) || cx.jobs.count() >= LOADS_MAX {
            return refuse(Refusal::Busy, cx);
        }
        self.admit(txn, cx.ticks);
        let active = self.active.get_mut(&txn).expect("it was just let in");
        active.touched = cx.ticks;
        match &mut active.stage {
            Stage::Growing { reading } => *reading = Some((number, query.clone())),
            Stage::Wounded => return refuse(Refusal::LocksLost, cx),
            _ => return,
        }
        wanted.iter().for_each(|range| active.note_read(range.clone()));
        if active.reads_bytes > FOOTPRINT_BYTES_MAX {
            return refuse(Refusal::TooLarge, cx);
        }
        self.request(txn, wanted.into_iter().map(|range| Lock { range, mode: Mode::Shared }).collect(), Phase::Growing, cx);
    }

    /// True if so many locks more are no more than can be held.
    fn has_room_for(&self, locks: usize, cx: &Context<'_>) -> bool {
        self.locks.held_count() + locks <= cx.config.locks_max
    }

    fn is_in_session(&self, txn: TxnId, session: Option<Session>) -> bool {
        let known = self.active.get(&txn).map(|active| active.instance);
        match session {
            None => true,
            Some(session) => Some(session.ballot) == self.ballot && known == Some(session.instance),
        }
    }

    fn admit(&mut self, txn: TxnId, tick: u64) {
        if !self.active.contains_key(&txn) {
            self.instances += 1;
            let (stage, instance) = (Stage::Growing { reading: None }, self.instances);
            let (reads, missing) = (BTreeSet::new(), BTreeSet::new());
            self.active.insert(txn, Active { instance, touched: tick, reads, reads_bytes: 0, missing, bytes: 0, stage });
        }
    }

    /// Asks for locks; the transaction goes on once it has them.
    fn request(&mut self, txn: TxnId, wanted: BTreeSet<Lock>, phase: Phase, cx: &mut Context<'_>) {
        if wanted.is_empty() {
            return self.go_on(txn, cx);
        }
        self.active.get_mut(&txn).expect("it is active").missing = wanted.clone();
        for lock in wanted {
            match self.locks.request(txn, lock, phase) {
                Ok(outcomes) => self.take(outcomes, cx),
                Err(_) => return self.lose(txn, Refusal::OlderInTheWay, cx),
            }
            if !self.active.contains_key(&txn) {
                return;
            }
        }
    }

    fn take(&mut self, outcomes: Vec<Outcome>, cx: &mut Context<'_>) {
        for outcome in outcomes {
            match outcome {
                Outcome::Granted(txn, lock) => {
                    if let Some(active) = self.active.get_mut(&txn)
                        && active.missing.remove(&lock)
                    {
                        self.go_on(txn, cx);
                    }
                }
                Outcome::Wounded(txn) => self.lose(txn, Refusal::LocksLost, cx),
            }
        }
    }

    /// A transaction has no locks any more, or does not get them.
    fn lose(&mut self, txn: TxnId, why: Refusal, cx: &mut Context<'_>) {
        let Some(active) = self.active.get_mut(&txn) else { return };
        match std::mem::replace(&mut active.stage, Stage::Wounded) {
            Stage::Growing { .. } => {
                cx.fx.count("log.wounded");
                cx.send(txn.gateway, Note::Wounded { txn });
                let outcomes = self.locks.release(txn);
                self.take(outcomes, cx);
            }
            Stage::Wounded => {}
            Stage::Locking(wanted) | Stage::Checking(wanted) => self.veto(txn, wanted.shards, why, cx),
            stage @ (Stage::Proposed { .. } | Stage::Prepared { .. }) => active.stage = stage,
        }
    }

    /// It is not prepared here: whoever decides about it is told. That is the log, and not this leader by itself, of a transaction that has this
    /// group alone, too: the message may have come again, from a time when another leader committed it, or may come again to one that would.
    fn veto(&mut self, txn: TxnId, shards: Vec<u16>, why: Refusal, cx: &mut Context<'_>) {
        cx.fx.count("log.vetoed");
        self.drop_active(txn, cx);
        let first = shards[0];
        let to = if first == cx.me.shard { cx.me } else { cx.leader_of(first) };
        cx.send(to, Note::Vetoed { txn, shards, why });
    }

    /// Forgets a transaction, and lets go of what it holds.
    fn drop_active(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let Some(active) = self.active.remove(&txn) else { return };
        self.bytes -= active.bytes;
        for key in self.written.remove(&txn).into_iter().flat_map(|written| written.keys) {
            self.writing.remove(&key);
        }
        self.snapshots.ended(txn);
        let outcomes = self.locks.release(txn);
        self.take(outcomes, cx);
    }

    /// Does what comes next for a transaction that has all its locks.
    fn go_on(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let Some(active) = self.active.get_mut(&txn).filter(|active| active.missing.is_empty()) else { return };
        let instance = active.instance;
        match &mut active.stage {
            Stage::Growing { reading: Some((number, query)) } => {
                let token = cx.shared.jobs.begin(Job::Locked { txn, number: *number, instance });
                cx.fx.load(token, load(query, Timestamp::MAX));
            }
            stage @ Stage::Locking(_) => {
                let Stage::Locking(wanted) = std::mem::replace(stage, Stage::Wounded) else { unreachable!("it was just matched") };
                self.locks.prepare(txn);
                let keys = wanted.expect.iter().map(|(key, _)| key.clone()).collect();
                *stage = Stage::Checking(wanted);
                let token = cx.shared.jobs.begin(Job::Expected { txn, instance });
                cx.fx.load(token, Load::Stamps { keys });
            }
            _ => {}
        }
    }

    /// The rows that a transaction has locked are loaded.
    pub(crate) fn on_locked_loaded(&mut self, (txn, number, instance): (TxnId, u64, u64), loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        let Some(active) = self.active.get_mut(&txn).filter(|active| active.instance == instance) else { return };
        let Some(ballot) = self.ballot else { return };
        if let Stage::Growing { reading } = &mut active.stage
            && reading.as_ref().is_some_and(|(latest, _)| *latest == number)
        {
            *reading = None;
            let session = Some(Session { ballot, instance });
            cx.send(txn.gateway, Note::Rows { txn, number, session, rows, more, above: Timestamp::ZERO });
        }
    }

    /// A gateway keeps a transaction open.
    pub(crate) fn on_touch(&mut self, txn: TxnId, tick: u64) {
        if let Some(active) = self.active.get_mut(&txn) {
            active.touched = tick;
        }
    }

    /// A gateway has given a transaction up.
    pub(crate) fn on_release(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        if matches!(self.active.get(&txn).map(|active| &active.stage), Some(Stage::Growing { .. } | Stage::Wounded)) {
            self.drop_active(txn, cx);
        }
    }

    /// Looks what is late.
    pub(crate) fn on_tick(&mut self, replica: &mut Replica, cx: &mut Context<'_>) {
        if !self.serves() {
            return;
        }
        let (now, config) = (cx.ticks, cx.config.clone());
        for txn in self.active.keys().copied().collect::<Vec<_>>() {
            let Some(active) = self.active.get_mut(&txn) else { continue };
            let silent = |span| active.touched + ticks(span) <= now;
            match &mut active.stage {
                Stage::Growing { .. } | Stage::Wounded if silent(config.silence) => {
                    cx.fx.count("log.gateway_silent");
                    self.drop_active(txn, cx);
                }
                Stage::Locking(_) if silent(config.prepare_patience) => self.lose(txn, Refusal::TooLate, cx),
                Stage::Prepared { at, shards, sent, .. } if *sent + ticks(config.resend) <= now => {
                    *sent = now;
                    let (at, shards) = (*at, shards.clone());
                    if shards[0] != cx.me.shard {
                        cx.fx.count("log.in_doubt");
                        let first = shards[0];
                        cx.doubt_leader(first);
                        cx.send_leader(first, Note::Prepared { txn, at, shards });
                    }
                }
                _ => {}
            }
        }
        self.coordinator.on_tick(replica, cx);
        self.snapshots.on_tick(&self.written, replica, cx);
    }

    /// Lists its tables.
    pub(crate) fn tables(&self, config: &Config, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("leader.active", self.active.len(), OPEN_MAX + 2 * PREPARED_MAX));
        visit(Table::new("leader.writing", self.written.len(), OPEN_MAX + 2 * PREPARED_MAX));
        self.locks.tables(OPEN_MAX + 2 * PREPARED_MAX, config.locks_max + WAITING_MAX, visit);
        self.cache.tables(visit);
        self.snapshots.tables(visit);
        self.coordinator.tables(visit);
    }
}

impl Active {
    /// Keeps in mind that it has read `range`.
    fn note_read(&mut self, range: KeyRange) {
        /// For one range, whatever its ends have.
        const EACH: usize = 16;
        let bytes = range.start.0.len() + range.end.0.len() + EACH;
        if self.reads.insert(range) {
            self.reads_bytes += bytes;
        }
    }

    fn shards(&self) -> Option<Vec<u16>> {
        match &self.stage {
            Stage::Proposed { shards } | Stage::Prepared { shards, .. } => Some(shards.clone()),
            _ => None,
        }
    }
}

/// What a prepared transaction keeps locked; a lock that covers others goes before them, so that these are not held besides.
fn locks(reads: &[KeyRange], writes: &Writes) -> Vec<Lock> {
    let written = writes.iter().map(|(key, _)| Lock { range: one_key(key), mode: Mode::Exclusive });
    let read = reads.iter().map(|range| Lock { range: range.clone(), mode: Mode::Shared });
    let mut all: Vec<Lock> = written.chain(read).collect();
    all.sort_by(|a, b| (&a.range.start, &b.range.end, b.mode).cmp(&(&b.range.start, &a.range.end, a.mode)));
    all
}
