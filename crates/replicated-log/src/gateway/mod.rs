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

mod committing;
mod reading;

use crate::command::Writes;
use crate::config::{HOPS_MAX, OPEN_MAX, ticks};
use crate::context::Context;
use crate::message::{Note, Query, Refusal, Session};
use committing::refused;
use rhumb_commit::interactive::{Answer, Request};
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, Row, SiteId, Table, Timestamp, TxnId};
use std::collections::{BTreeMap, BTreeSet};

/// What each group is asked for, and has answered.
#[derive(Debug)]
struct Parts {
    asked: BTreeMap<u16, Query>,
    /// Its rows, and whether a bound cut them off.
    found: BTreeMap<u16, (Vec<Row>, bool)>,
}

/// A read that is under way.
#[derive(Debug)]
struct Reading {
    id: RequestId,
    /// That of its rows in messages; what it expects has the next one.
    number: u64,
    query: Query,
    /// Of a snapshot: versions that are to be those which it shows. What is read under locks has them validated by the commit.
    expect: Vec<(Key, Timestamp)>,
    /// Of a snapshot: its timestamp, and whether a version above it matters.
    snapshot: Option<(Timestamp, bool)>,
    /// The replicas of this region are asked first.
    near: bool,
    rows: Parts,
    expected: Parts,
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
    expect_bytes: usize,
    /// It has lost locks.
    lost: bool,
    /// The timestamp of its snapshot.
    at: Option<Timestamp>,
    doing: Doing,
    trips: u32,
    /// Redirections that its request has followed since it was sent.
    hops: u32,
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

impl Parts {
    fn of(asked: BTreeMap<u16, Query>) -> Parts {
        Parts { asked, found: BTreeMap::new() }
    }

    /// Who has not answered.
    fn silent(&self) -> impl Iterator<Item = (&u16, &Query)> {
        self.asked.iter().filter(move |(shard, _)| !self.found.contains_key(shard))
    }

    fn is_complete(&self) -> bool {
        self.silent().next().is_none()
    }
}

impl Reading {
    /// True if messages of that number answer it.
    fn is_answered_by(&self, number: u64) -> bool {
        [self.number, self.number + 1].contains(&number)
    }
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
        let open = Open {
            mode,
            sessions,
            asked,
            expect: Vec::new(),
            expect_bytes: 0,
            lost: false,
            at: None,
            doing: Doing::Idle,
            trips: 0,
            hops: 0,
            since,
            touched,
        };
        self.open.insert(txn, open);
        cx.fx.answer(id, Answer::Began { txn });
    }

    /// Asks those who have not answered, or the group of `only`.
    fn ask(&mut self, txn: TxnId, only: Option<u16>, cx: &mut Context<'_>) {
        let Some(open) = self.open.get_mut(&txn) else { return };
        match &mut open.doing {
            Doing::Idle => {}
            Doing::Reading(reading) => {
                let expected = reading.expected.silent().map(|part| (reading.number + 1, part));
                for (number, (shard, query)) in reading.rows.silent().map(|part| (reading.number, part)).chain(expected) {
                    if only.is_some_and(|only| only != *shard) {
                        continue;
                    }
                    let query = query.clone();
                    let note = match reading.snapshot {
                        Some((at, strict)) => Note::Snapshot { txn, number, at, query, strict },
                        None => {
                            open.asked.insert(*shard);
                            Note::Read { txn, number, session: open.sessions.get(shard).copied(), query }
                        }
                    };
                    let to = if reading.near { SiteId { region: cx.me.region, shard: *shard } } else { cx.leader_of(*shard) };
                    cx.send(to, note);
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
        let is_reading = |open: &Open| matches!(&open.doing, Doing::Reading(reading) if reading.is_answered_by(number));
        if self.open.get(&txn).is_some_and(is_reading) {
            self.fail(txn, refused(Some(why)), cx);
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

    /// A replica does not lead its group: what waits for that asks whoever does. A transaction follows so many redirections and then waits until it
    /// is to ask again: while nobody leads, it would go round the group without a pause.
    pub(crate) fn on_elsewhere(&mut self, txn: TxnId, from: SiteId, cx: &mut Context<'_>) {
        let Some(open) = self.open.get_mut(&txn) else { return };
        if let Doing::Reading(reading) = &mut open.doing
            && from.region == cx.me.region
        {
            reading.near = false;
        }
        if open.hops < HOPS_MAX && cx.leader_of(from.shard) != from {
            open.hops += 1;
            self.ask(txn, Some(from.shard), cx);
        }
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
                    open.hops = 0;
                    let silent: Vec<u16> = match &mut open.doing {
                        Doing::Reading(reading) => {
                            // If it was for replicas nearby, no leader was asked yet.
                            let were_leaders = !std::mem::take(&mut reading.near);
                            let silent = reading.rows.silent().chain(reading.expected.silent()).map(|(shard, _)| *shard);
                            silent.filter(|_| were_leaders).collect()
                        }
                        Doing::Committing { shards, .. } => shards.clone(),
                        Doing::Idle => unreachable!("it is read or committed"),
                    };
                    silent.into_iter().for_each(|shard| cx.doubt_leader(shard));
                    self.ask(txn, None, cx);
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
