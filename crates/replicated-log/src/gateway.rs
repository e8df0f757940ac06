//! A site as the gateway of its clients: their transactions, from begin to commit.
//!
//! ```text
//!   client              gateway                        leaders of the groups
//!     ├── Get, Scan ──────▶├── Read ──────────────────────▶│ locks, then rows
//!     ├── Commit ─────────▶├── Prepare, to all groups ────▶│
//!     │◀─────────── told ──┤◀───────── Outcome, of the first group ──┤
//! ```
//!
//! A message that gets no answer is sent again, to whoever leads by then; leaders know what they have done. A client that asked to commit is
//! told an outcome, or that it is unknown.

use crate::command::Writes;
use crate::config::{CEILING_LEAD, OPEN_MAX, WRITES_BYTES_MAX, ticks};
use crate::context::Context;
use crate::message::{Fate, Note, Query, Refusal, Session};
use rhumb_commit::interactive::{Answer, Request};
use rhumb_commit::transaction::{Committed, ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, KeyRange, Row, SiteId, Table, Timestamp, TxnId, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A read that is under way.
#[derive(Debug)]
struct Reading {
    id: RequestId,
    number: u64,
    query: Query,
    /// Of a snapshot: its timestamp, and whether a version above it matters.
    snapshot: Option<(Timestamp, bool)>,
    /// The replicas of this region are asked first.
    near: bool,
    parts: BTreeMap<u16, Query>,
    found: BTreeMap<u16, (Vec<Row>, bool)>,
    above: Timestamp,
    since: u64,
    sent: u64,
}

/// What a group is to prepare.
#[derive(Clone, Debug, Default)]
struct Part {
    expect: Vec<(Key, Timestamp)>,
    writes: Writes,
}

/// What is done for a transaction.
#[derive(Debug)]
enum Doing {
    Idle,
    Reading(Reading),
    Committing { id: RequestId, shards: Vec<u16>, parts: BTreeMap<u16, Part>, since: u64, sent: u64 },
}

/// A transaction of a client.
#[derive(Debug)]
struct Open {
    mode: ReadMode,
    /// Its locks at the leaders.
    sessions: BTreeMap<u16, Session>,
    /// The groups that were asked for any.
    asked: BTreeSet<u16>,
    expect: Vec<(Key, Timestamp)>,
    /// It has lost locks.
    lost: bool,
    /// The timestamp of its snapshot.
    at: Option<Timestamp>,
    doing: Doing,
    trips: u32,
    /// The tick of its client's last request.
    since: u64,
    touched: u64,
}

/// The transactions of a site's clients.
#[derive(Debug, Default)]
pub(crate) struct Gateway {
    open: BTreeMap<TxnId, Open>,
    numbers: u64,
}

fn conflict(why: &str) -> TxnError {
    TxnError::Conflict(why.into())
}

impl Gateway {
    pub(crate) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("gateway.open", self.open.len(), OPEN_MAX));
    }

    pub(crate) fn on_request(&mut self, id: RequestId, request: Request, cx: &mut Context<'_>) {
        match request {
            Request::Admin(none) => match none {},
            Request::Begin { mode } => self.begin(id, mode, cx),
            Request::Get { txn, mode, keys, expect } => self.read(id, (txn, mode), Query::Keys(keys), expect, cx),
            Request::Scan { txn, mode, range, limit, reverse, expect } => {
                self.read(id, (txn, mode), Query::Range { range, limit, reverse }, expect, cx);
            }
            Request::Commit { txn, writes, expect, .. } => self.commit(id, txn, writes, expect, cx),
            Request::Rollback { txn } => {
                self.give_up(txn, cx);
                cx.fx.answer(id, Answer::Done);
            }
        }
    }

    fn begin(&mut self, id: RequestId, mode: ReadMode, cx: &mut Context<'_>) {
        if self.open.len() >= OPEN_MAX {
            let full = format!("{OPEN_MAX} transactions are open here already");
            return cx.fx.answer(id, Answer::Failed(TxnError::Unavailable(full.into())));
        }
        let now = cx.now;
        let bound = cx.clock.renew(now);
        cx.write_bound(bound);
        let Some(began) = cx.clock.issue(now) else {
            return cx.fx.answer(id, Answer::Failed(TxnError::Unavailable("no identifier may be issued yet: the disk is behind".into())));
        };
        let txn = TxnId { began, gateway: cx.me };
        let (sessions, asked) = (BTreeMap::new(), BTreeSet::new());
        let (since, touched) = (cx.ticks, cx.ticks);
        let open = Open { mode, sessions, asked, expect: Vec::new(), lost: false, at: None, doing: Doing::Idle, trips: 0, since, touched };
        self.open.insert(txn, open);
        cx.fx.answer(id, Answer::Began { txn });
    }

    fn read(&mut self, id: RequestId, (txn, mode): (TxnId, ReadMode), query: Query, expect: Vec<(Key, Timestamp)>, cx: &mut Context<'_>) {
        let Some(open) = self.open.get_mut(&txn).filter(|open| matches!(open.doing, Doing::Idle)) else {
            return cx.fx.answer(id, Answer::Failed(conflict("the transaction is not known here any more")));
        };
        if open.lost {
            return cx.fx.answer(id, Answer::Failed(conflict("an older transaction took its locks over")));
        }
        let parts = match &query {
            Query::Keys(keys) if keys.is_empty() => {
                return cx
                    .fx
                    .answer(id, Answer::Rows { rows: Vec::new(), covered: None, more: false, trips: open.trips, at: Timestamp::ZERO });
            }
            Query::Keys(keys) => {
                let mut parts: BTreeMap<u16, Vec<Key>> = BTreeMap::new();
                keys.iter().for_each(|key| parts.entry(cx.topology.shard_of(key)).or_default().push(key.clone()));
                parts.into_iter().map(|(shard, keys)| (shard, Query::Keys(keys))).collect()
            }
            Query::Range { .. } => (0..cx.topology.shard_count()).map(|shard| (shard, query.clone())).collect(),
        };
        open.mode = mode;
        open.expect.extend(expect);
        let snapshot = match mode {
            ReadMode::Locking | ReadMode::Optimistic | ReadMode::Active => None,
            ReadMode::Snapshot => Some((open.at.unwrap_or_else(|| cx.timestamp()), true)),
            ReadMode::Stale(at) if at > cx.timestamp().plus(CEILING_LEAD) => {
                return cx.fx.answer(id, Answer::Failed(TxnError::OutOfRange("the timestamp lies in the future".into())));
            }
            ReadMode::Stale(at) => Some((at, false)),
        };
        self.numbers += 1;
        let near = matches!(mode, ReadMode::Stale(_));
        open.trips += u32::from(!near);
        open.since = cx.ticks;
        let (found, above, since, sent) = (BTreeMap::new(), Timestamp::ZERO, cx.ticks, cx.ticks);
        open.doing = Doing::Reading(Reading { id, number: self.numbers, query, snapshot, near, parts, found, above, since, sent });
        self.ask(txn, None, cx);
    }

    /// Asks those who have not answered, or the group of `only`.
    fn ask(&mut self, txn: TxnId, only: Option<u16>, cx: &mut Context<'_>) {
        let Some(open) = self.open.get_mut(&txn) else { return };
        match &mut open.doing {
            Doing::Idle => {}
            Doing::Reading(reading) => {
                for (shard, query) in &reading.parts {
                    if reading.found.contains_key(shard) || only.is_some_and(|only| only != *shard) {
                        continue;
                    }
                    let (number, query) = (reading.number, query.clone());
                    let note = match reading.snapshot {
                        Some((at, strict)) => Note::Snapshot { txn, number, at, query, strict },
                        None => {
                            open.asked.insert(*shard);
                            Note::Read { txn, number, session: open.sessions.get(shard).copied(), query }
                        }
                    };
                    let to = if reading.near { SiteId { region: cx.me.region, shard: *shard } } else { cx.leader_of(*shard) };
                    cx.fx.send(to, note);
                }
            }
            Doing::Committing { shards, parts, .. } => {
                for shard in shards.iter().filter(|shard| only.is_none_or(|only| only == **shard)) {
                    let Part { expect, writes } = parts[shard].clone();
                    let session = open.sessions.get(shard).copied();
                    cx.send_leader(*shard, Note::Prepare { txn, shards: shards.clone(), session, expect, writes });
                }
            }
        }
    }

    /// A leader, or a replica, has read.
    pub(crate) fn on_rows(&mut self, from: SiteId, note: Note, cx: &mut Context<'_>) {
        let Note::Rows { txn, number, session, rows, more, above } = note else { unreachable!("they are rows") };
        let Some(open) = self.open.get_mut(&txn) else { return };
        let Doing::Reading(reading) = &mut open.doing else { return };
        if reading.number != number {
            return;
        }
        if let Some(session) = session {
            let known = *open.sessions.entry(from.shard).or_insert(session);
            if known != session {
                return self.fail(txn, conflict("its locks were lost along with their leader"), cx);
            }
        }
        reading.above = reading.above.max(above);
        reading.found.insert(from.shard, (rows, more));
        if reading.found.len() < reading.parts.len() {
            return;
        }
        match reading.snapshot {
            Some((at, true)) if reading.above > at => {
                cx.clock.observe(reading.above);
                if open.at.is_some() {
                    return self.fail(txn, conflict("rows have changed since the snapshot that it reads"), cx);
                }
                // All that was committed before the read began lies at or below.
                reading.snapshot = Some((reading.above, false));
                self.numbers += 1;
                (reading.number, reading.sent) = (self.numbers, cx.ticks);
                reading.found.clear();
                open.trips += 1;
                self.ask(txn, None, cx);
            }
            _ => self.answer_rows(txn, cx),
        }
    }

    fn answer_rows(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let open = self.open.get_mut(&txn).expect("it reads");
        let Doing::Reading(reading) = std::mem::replace(&mut open.doing, Doing::Idle) else { unreachable!("it reads") };
        open.at = reading.snapshot.map(|(at, _)| at);
        let (trips, at) = (open.trips, open.at.unwrap_or_default());
        let answer = match &reading.query {
            Query::Keys(keys) => {
                let mut found: BTreeMap<Key, Row> =
                    reading.found.into_values().flat_map(|(rows, _)| rows).map(|row| (row.key.clone(), row)).collect();
                let mut rows = Vec::new();
                for key in keys {
                    match found.get_mut(key) {
                        Some(row) => rows.push(row.clone()),
                        None => break,
                    }
                }
                let more = rows.len() < keys.len();
                Answer::Rows { rows, covered: None, more, trips, at }
            }
            Query::Range { range, limit, reverse } => {
                let (rows, covered) = merge(range, *limit as usize, *reverse, reading.found.into_values().collect());
                let more = covered != *range;
                Answer::Rows { rows, covered: Some(covered), more, trips, at }
            }
        };
        cx.fx.answer(reading.id, answer);
    }

    /// The request under way fails, and with it the transaction.
    fn fail(&mut self, txn: TxnId, why: TxnError, cx: &mut Context<'_>) {
        let Some(open) = self.open.get_mut(&txn) else { return };
        match std::mem::replace(&mut open.doing, Doing::Idle) {
            Doing::Idle => {}
            Doing::Reading(Reading { id, .. }) | Doing::Committing { id, .. } => cx.fx.answer(id, Answer::Failed(why)),
        }
        open.lost = true;
        Self::release(txn, open, cx);
    }

    fn release(txn: TxnId, open: &Open, cx: &mut Context<'_>) {
        open.asked.iter().for_each(|shard| cx.send_leader(*shard, Note::Release { txn }));
    }

    fn give_up(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        if let Some(open) = self.open.remove(&txn) {
            Self::release(txn, &open, cx);
        }
    }

    /// A leader does not do what it was asked for.
    pub(crate) fn on_refused(&mut self, txn: TxnId, number: u64, why: Refusal, cx: &mut Context<'_>) {
        let is_reading = |open: &Open| matches!(&open.doing, Doing::Reading(reading) if reading.number == number);
        if self.open.get(&txn).is_some_and(is_reading) {
            let error = match why {
                Refusal::TooLarge => TxnError::TooLarge("a transaction has read more than can be kept locked".into()),
                Refusal::VersionsGone => TxnError::OutOfRange("versions of that time are not kept there".into()),
                why => conflict(explain(Some(why))),
            };
            self.fail(txn, error, cx);
        }
    }

    /// A transaction has lost its locks.
    pub(crate) fn on_wounded(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        match self.open.get_mut(&txn) {
            Some(Open { doing: Doing::Committing { .. }, .. }) | None => {}
            Some(open) => {
                open.lost = true;
                self.fail(txn, conflict("an older transaction took its locks over"), cx);
            }
        }
    }

    /// A replica does not lead its group: those that wait for it ask again.
    pub(crate) fn on_elsewhere(&mut self, from: SiteId, cx: &mut Context<'_>) {
        let waiting: Vec<TxnId> = self.open.iter().filter(|(_, open)| !matches!(open.doing, Doing::Idle)).map(|(txn, _)| *txn).collect();
        for txn in waiting {
            if let Some(Open { doing: Doing::Reading(reading), .. }) = self.open.get_mut(&txn)
                && from.region == cx.me.region
            {
                reading.near = false;
            }
            if cx.leader_of(from.shard) != from {
                self.ask(txn, Some(from.shard), cx);
            }
        }
    }

    fn commit(
        &mut self,
        id: RequestId,
        txn: TxnId,
        writes: Vec<(Key, Option<Value>)>,
        expect: Vec<(Key, Timestamp)>,
        cx: &mut Context<'_>,
    ) {
        let Some(open) = self.open.get_mut(&txn).filter(|open| matches!(open.doing, Doing::Idle)) else {
            return cx.fx.answer(id, Answer::Failed(conflict("the transaction is not known here any more")));
        };
        if open.lost {
            self.give_up(txn, cx);
            return cx.fx.answer(id, Answer::Failed(conflict("an older transaction took its locks over")));
        }
        if open.mode.is_read_only() {
            let (at, trips) = (open.at.unwrap_or_else(|| cx.timestamp()), open.trips);
            self.open.remove(&txn);
            let answer = match writes.is_empty() {
                true => Answer::Committed(Committed { at, trips }),
                false => Answer::Failed(TxnError::Invalid("the transaction is read-only".into())),
            };
            return cx.fx.answer(id, answer);
        }
        let bytes: usize = writes.iter().map(|(key, value)| key.0.len() + value.as_ref().map_or(0, |value| value.0.len()) + 16).sum();
        if bytes > WRITES_BYTES_MAX {
            self.give_up(txn, cx);
            let why = format!("a transaction writes at most {WRITES_BYTES_MAX} bytes, not {bytes}");
            return cx.fx.answer(id, Answer::Failed(TxnError::TooLarge(why.into())));
        }
        let mut parts: BTreeMap<u16, Part> = open.sessions.keys().map(|shard| (*shard, Part::default())).collect();
        for (key, value) in writes.into_iter().collect::<BTreeMap<_, _>>() {
            parts.entry(cx.topology.shard_of(&key)).or_default().writes.push((key, value));
        }
        for (key, version) in open.expect.drain(..).chain(expect) {
            parts.entry(cx.topology.shard_of(&key)).or_default().expect.push((key, version));
        }
        if parts.is_empty() {
            let (at, trips) = (cx.timestamp(), open.trips);
            self.open.remove(&txn);
            return cx.fx.answer(id, Answer::Committed(Committed { at, trips }));
        }
        // A group decides whose leader is here, so that the outcome is near.
        let mut shards: Vec<u16> = parts.keys().copied().collect();
        if let Some(place) = shards.iter().position(|shard| cx.leader_of(*shard).region == cx.me.region) {
            shards.swap(0, place);
        }
        open.trips += if shards.len() == 1 { 2 } else { 4 };
        open.doing = Doing::Committing { id, shards, parts, since: cx.ticks, sent: cx.ticks };
        self.ask(txn, None, cx);
    }

    /// The first group of a transaction says what became of it.
    pub(crate) fn on_outcome(&mut self, txn: TxnId, fate: Fate, cx: &mut Context<'_>) {
        let Some(Open { doing: Doing::Committing { id, .. }, trips, .. }) = self.open.get(&txn) else { return };
        let (id, trips) = (*id, *trips);
        self.open.remove(&txn);
        let answer = match fate {
            Fate::Committed(at) => {
                cx.clock.observe(at);
                Answer::Committed(Committed { at, trips })
            }
            Fate::Aborted(why) => {
                cx.fx.count("log.aborted");
                Answer::Failed(conflict(explain(why)))
            }
            Fate::Forgotten => {
                cx.fx.count("log.forgotten");
                Answer::Failed(TxnError::Unknown("the transaction has ended so long ago that its outcome is forgotten".into()))
            }
        };
        cx.fx.answer(id, answer);
    }

    /// Asks again those who are silent, and ends what takes too long.
    pub(crate) fn on_tick(&mut self, cx: &mut Context<'_>) {
        let (now, config) = (cx.ticks, cx.config.clone());
        let past = |since: u64, span| since + ticks(span) <= now;
        for txn in self.open.keys().copied().collect::<Vec<_>>() {
            let open = self.open.get_mut(&txn).expect("it was just listed");
            match &mut open.doing {
                Doing::Idle if past(open.since, config.idle) => self.give_up(txn, cx),
                Doing::Reading(reading) if past(reading.since, config.patience) => {
                    self.fail(txn, conflict("locks or rows could not be had in time"), cx);
                }
                Doing::Committing { id, since, .. } if past(*since, config.deadline) => {
                    let id = *id;
                    self.open.remove(&txn);
                    let why = "the groups have not answered in time";
                    cx.fx.answer(id, Answer::Failed(TxnError::Unknown(why.into())));
                }
                Doing::Reading(Reading { sent, .. }) | Doing::Committing { sent, .. } if past(*sent, config.resend) => {
                    *sent = now;
                    let silent: Vec<u16> = match &mut open.doing {
                        Doing::Reading(Reading { parts, found, near, .. }) => {
                            *near = false;
                            parts.keys().filter(|shard| !found.contains_key(shard)).copied().collect()
                        }
                        Doing::Committing { shards, .. } => shards.clone(),
                        Doing::Idle => unreachable!("it is read or committed"),
                    };
                    self.ask(txn, None, cx);
                    // The next time others, unless these answer, or say who leads.
                    silent.into_iter().for_each(|shard| cx.doubt_leader(shard));
                }
                Doing::Idle | Doing::Reading(_) if past(open.touched, config.resend) => {
                    open.touched = now;
                    open.asked.iter().for_each(|shard| cx.send_leader(*shard, Note::Touch { txn }));
                }
                _ => {}
            }
        }
    }
}

fn explain(why: Option<Refusal>) -> &'static str {
    match why {
        None => "the transaction was given up",
        Some(Refusal::LocksLost) => "its locks were lost to an older transaction, or along with their leader",
        Some(Refusal::OlderInTheWay) => "an older transaction is in the way",
        Some(Refusal::Changed) => "rows that it depends on have changed",
        Some(Refusal::TooOld) => "it began too long ago",
        Some(Refusal::TooLate) => "not all of its groups have prepared it in time",
        Some(Refusal::Busy) => "a group has too many transactions under way",
        Some(Refusal::TooLarge) => "it has read too much",
        Some(Refusal::VersionsGone) => "versions of that time are not kept",
    }
}

/// The live rows of a range, of which each group has its own, and for which part of the range they speak.
fn merge(range: &KeyRange, limit: usize, reverse: bool, found: Vec<(Vec<Row>, bool)>) -> (Vec<Row>, KeyRange) {
    let mut covered = range.clone();
    for (rows, _) in found.iter().filter(|(_, more)| *more) {
        match rows.last() {
            Some(last) if reverse => covered.start = covered.start.max(last.key.clone()),
            Some(last) => covered.end = covered.end.min(last.key.successor()),
            None => covered.end = covered.start.clone(),
        }
    }
    let live = found.into_iter().flat_map(|(rows, _)| rows).filter(|row| row.value.is_some() && covered.contains(&row.key));
    let mut rows: Vec<Row> = live.collect();
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    if reverse {
        rows.reverse();
    }
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
