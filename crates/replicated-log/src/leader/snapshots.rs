//! Snapshots that a leader serves: rows as of a timestamp, without locks.
//!
//! A strict one has to show all that was committed before it was asked for. So the leader makes sure that it still leads, by its lease or by
//! a round that began after the question; waits for the outcome of what is prepared on these rows; and says so if any has a
//! version above the timestamp, for the gateway to ask again at that one. No clock needs to be right for it.
//!
//! Invariants: what is read at a timestamp is not written at or below it any more, by this leader or a later one: a key is noted in the
//! timestamp cache as it is asked for, and the log knows a *ceiling* above all timestamps served, which is where the next leader begins.

use super::{Leader, Written, load, ranges};
use crate::command::Command;
use crate::config::{CEILING_LEAD, CLOSED_LAG, LOADS_MAX, READS_MAX, ticks};
use crate::context::{Context, Job};
use crate::message::{Note, Query, Refusal};
use crate::replica::Replica;
use rhumb_core::{KeyRange, Loaded, SiteId, Span, Table, Timestamp, TxnId};
use std::collections::{BTreeMap, BTreeSet};

/// A read that is under way.
#[derive(Debug)]
struct Pending {
    at: Timestamp,
    query: Query,
    strict: bool,
    /// The transactions that are to end before.
    waits: BTreeSet<TxnId>,
    /// The round that is to be confirmed before; zero if none is.
    round: u64,
    since: u64,
}

/// The reads of a leader.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    pending: BTreeMap<(SiteId, TxnId, u64), Pending>,
    /// The highest ceiling that was proposed.
    asked: Timestamp,
}

/// A gateway's read.
pub(crate) struct Asked {
    pub(crate) from: SiteId,
    pub(crate) txn: TxnId,
    pub(crate) number: u64,
    pub(crate) at: Timestamp,
    pub(crate) query: Query,
    pub(crate) strict: bool,
}

impl Leader {
    /// A gateway reads a snapshot.
    pub(crate) fn on_snapshot(&mut self, asked: Asked, replica: &mut Replica, cx: &mut Context<'_>) {
        let Asked { from, txn, number, at, query, strict } = asked;
        let refuse = |why, cx: &mut Context<'_>| cx.send(from, Note::Refused { txn, number, why });
        // A strict one is told of a later timestamp at which it can be had, as if there were a version.
        if !strict && at < replica.state().marks.versions_from {
            return refuse(Refusal::VersionsGone, cx);
        }
        if self.snapshots.pending.len() >= READS_MAX || cx.jobs.count() >= LOADS_MAX {
            return refuse(Refusal::Busy, cx);
        }
        let mut waits = BTreeSet::new();
        for range in ranges(&query) {
            waits.extend(self.writing.range(range.start.clone()..range.end.clone()).map(|(_, writer)| *writer));
            self.note_read(&range, &query, at);
        }
        let mut round = 0;
        if strict && !replica.group().holds_lease() {
            cx.fx.count("log.confirmed_by_round");
            match replica.begin_round() {
                Some(begun) => round = begun,
                None => return refuse(Refusal::Busy, cx),
            }
        }
        self.snapshots.advance(at, &self.written, replica, cx);
        let pending = Pending { at, query, strict, waits, round, since: cx.ticks };
        self.snapshots.pending.insert((from, txn, number), pending);
    }

    fn note_read(&mut self, range: &KeyRange, query: &Query, at: Timestamp) {
        match query {
            Query::Keys(_) => self.cache.raise(&range.start, at),
            Query::Range { .. } => self.cache.raise_range(range, at),
        }
    }
}

impl Snapshots {
    /// A transaction has ended.
    pub(super) fn ended(&mut self, txn: TxnId) {
        for pending in self.pending.values_mut() {
            pending.waits.remove(&txn);
        }
    }

    /// Has the group agree on a ceiling above `at`, unless it has; and closes what can be closed.
    fn advance(&mut self, at: Timestamp, written: &BTreeMap<TxnId, Written>, replica: &mut Replica, cx: &mut Context<'_>) {
        let marks = replica.state().marks;
        if at <= self.asked.max(marks.ceiling) {
            return;
        }
        let now = Timestamp::from_time(cx.now);
        let ceiling = at.plus(Span::from_micros(CEILING_LEAD.as_micros() / 64)).max(now.plus(CEILING_LEAD)).max(marks.ceiling);
        let least = written.values().map(|written| written.at).min();
        let closed = least.map_or(Timestamp::MAX, Timestamp::previous).min(now.minus(CLOSED_LAG)).max(marks.closed);
        // What commits from here on lies above.
        cx.clock.observe(closed);
        self.asked = ceiling;
        replica.propose(Command::Advance { ceiling, closed });
    }

    /// Begins to load what nothing is in the way of any more.
    pub(crate) fn serve(&mut self, replica: &Replica, cx: &mut Context<'_>) {
        let (confirmed, ceiling) = (replica.group().confirmed(), replica.state().marks.ceiling);
        let is_free = |pending: &Pending| pending.waits.is_empty() && pending.round <= confirmed && pending.at <= ceiling;
        let free: Vec<_> = self.pending.iter().filter(|(_, pending)| is_free(pending)).map(|(name, _)| *name).collect();
        for name in free {
            let Pending { at, query, strict, .. } = self.pending.remove(&name).expect("it was just listed");
            let (to, txn, number) = name;
            read(to, (txn, number), at, &query, strict, cx);
        }
    }

    pub(super) fn on_tick(&mut self, written: &BTreeMap<TxnId, Written>, replica: &mut Replica, cx: &mut Context<'_>) {
        let late = ticks(cx.config.patience);
        self.pending.retain(|_, pending| cx.ticks < pending.since + late);
        let soon = Timestamp::from_time(cx.now).plus(Span::from_micros(CEILING_LEAD.as_micros() / 2));
        self.advance(soon, written, replica, cx);
    }

    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("leader.snapshots", self.pending.len(), READS_MAX));
    }
}

/// Loads rows of a snapshot.
pub(crate) fn read(to: SiteId, (txn, number): (TxnId, u64), at: Timestamp, query: &Query, strict: bool, cx: &mut Context<'_>) {
    let token = cx.jobs.begin(Job::Snapshot { to, txn, number, at, strict });
    cx.fx.load(token, load(query, if strict { Timestamp::MAX } else { at }));
}

/// Rows of a snapshot are loaded: those of a strict one are the newest. This replica has no versions from before `versions_from`.
pub(crate) fn on_loaded(
    (to, txn, number, at, strict): (SiteId, TxnId, u64, Timestamp, bool),
    loaded: Loaded,
    versions_from: Timestamp,
    cx: &mut Context<'_>,
) {
    let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
    let newer = rows.iter().map(|row| row.version).chain([versions_from]);
    let above = newer.filter(|version| strict && *version > at).max().unwrap_or_default();
    let (rows, more) = if above > at { (Vec::new(), true) } else { (rows, more) };
    cx.send(to, Note::Rows { txn, number, session: None, rows, more, above });
}
