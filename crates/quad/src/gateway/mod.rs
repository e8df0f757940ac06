//! A site as a gateway: its clients' transactions, from the first read to the second round.
//!
//! ```text
//!   idle ── get, scan ──▶ reading ── Rows of the whole read quorum ──▶ idle
//!    │                      │ another session, or none: the client hears that it cannot go on
//!    ├── commit of nothing ──▶ confirming ── Confirmed by all that it read from ──▶ answered
//!    └── commit ──▶ preparing ── Prepared by all ──▶ decided, on disk ── Committed by the write quorum ──▶ answered
//!                                                                     └─ Committed by all ──▶ forgotten
//! ```
//!
//! Invariants: a decision to commit is on disk before anybody hears of it, and stays there until all who prepared know; what is not
//! decided did not happen, so that a gateway without a decision answers *abort*; a client is told *committed* once the whole write
//! quorum has the commit on disk.
//!
//! Source: section II-B; IV for the interruption: `waits` keeps what has only begun, `interrupt` fails what has read.

mod commit;
mod reads;
#[cfg(test)]
mod tests;

use super::config::{OPEN_MAX, READ_KEYS_BYTES_MAX, ROWS_MAX, SCAN_MAX, WAITING_MAX};
use super::configuration::Configuration;
use super::context::Context;
use super::message::{Note, Promise, Query, Rows, TRANSACTION};
use super::records::{DECISIONS, DecisionRecord, txn_key};
use super::replica::Replica;
use super::request::{Answer, Request};
use rhumb_commit::transaction::{Committed, ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{Batch, SiteId, Table, Timestamp, TxnId, work};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The transactions of a site's clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gateway {
    open: BTreeMap<TxnId, Open>,
    decided: BTreeMap<TxnId, Decided>,
    /// Requests that wait for the next configuration.
    waiting: VecDeque<Waiting>,
    /// Counts transactions, for systems whose quorums take turns.
    turn: u64,
    commits: Commits,
}

/// Transactions that committed in this incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commits {
    /// Those that only read.
    pub(crate) reads: u64,
    /// Those that wrote.
    pub(crate) writes: u64,
}

/// A request that waits for the next configuration.
#[derive(Clone, Debug)]
struct Waiting {
    id: RequestId,
    request: Request,
    /// The tick since which it waits.
    since: u64,
}

/// A transaction that is not decided.
#[derive(Clone, Debug)]
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

#[derive(Clone, Debug)]
enum Doing {
    /// Its client thinks.
    Idle,
    /// Its client thinks, and will hear that it cannot go on.
    Lost,
    Reading {
        id: RequestId,
        query: Query,
        answers: BTreeMap<SiteId, Rows>,
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
#[derive(Clone, Debug)]
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

impl Decided {
    /// The second round.
    fn commit(&self, txn: TxnId) -> Promise {
        Promise::Commit { txn, at: self.at, participants: self.participants.clone() }
    }
}

impl Open {
    /// True if it has not read yet, nor begun to commit.
    fn is_fresh(&self) -> bool {
        matches!(self.doing, Doing::Idle) && self.number == 0
    }
}

fn over() -> TxnError {
    TxnError::Conflict("an older transaction took locks of this one over, a site lost them, or the quorums changed".into())
}

fn moved() -> TxnError {
    TxnError::Conflict("the configuration of quorums changed; nothing was committed".into())
}

fn no_quorum(of: &str) -> TxnError {
    TxnError::Unavailable(
        format!("so few sites are in reach that no {of} quorum is left; nothing was committed (rhumb.quorums shows who is silent)").into(),
    )
}

impl Gateway {
    /// A decision that was found on disk.
    pub(crate) fn restore(&mut self, record: DecisionRecord) {
        let participants: BTreeSet<SiteId> = record.participants.into_iter().collect();
        let (writers, missing) = (participants.clone(), participants.clone());
        let decided = Decided { at: record.at, trips: 0, id: None, participants, writers, missing, since: 0, told: 0 };
        self.decided.insert(record.txn, decided);
    }

    /// How many transactions are in progress, as far as their clients know.
    pub(crate) fn in_progress(&self) -> usize {
        self.open.len() + self.decided.values().filter(|decided| decided.id.is_some()).count()
    }

    /// Lists its tables.
    pub(crate) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("gateway.open", self.open.len(), OPEN_MAX));
        visit(Table::new("gateway.decided", self.decided.len(), OPEN_MAX));
        // Until the next configuration.
        visit(Table::new("gateway.waiting", self.waiting.len(), WAITING_MAX));
    }

    /// How many transactions have committed.
    pub(crate) fn commits(&self) -> Commits {
        self.commits
    }

    /// How many transactions are decided and not known to all who prepared.
    pub(crate) fn undelivered(&self) -> usize {
        self.decided.len()
    }

    /// A client asks. Where the epoch `is_sealed`, what needs a later one waits for that.
    pub(crate) fn on_request(&mut self, id: RequestId, request: Request, is_sealed: bool, cx: &mut Context<'_>) {
        if !cx.is_member() {
            let error = cx.not_a_member();
            // One that had only begun when this site left is not among those that were interrupted.
            let txn = if let Request::Rollback { txn } = request { Some(txn) } else { transaction_of(&request) };
            return match txn {
                Some(txn) => self.fail(txn, Some(id), error, cx),
                None => cx.refuse(id, error),
            };
        }
        if is_sealed && self.waits(&request) {
            return self.waiting.push_back(Waiting { id, request, since: cx.ticks });
        }
        let answer = match request {
            Request::Begin { mode: ReadMode::Stale(_) } => {
                Err(TxnError::Unsupported("AS OF SYSTEM TIME cannot be used in a database of protocol quad; leave it out".into()))
            }
            Request::Begin { .. } => self.begin(cx),
            Request::Get { expect, .. } | Request::Scan { expect, .. } | Request::Commit { expect, .. } if !expect.is_empty() => {
                Err(TxnError::Invalid("QuAD reads what it depends on under locks; it takes no versions read elsewhere".into()))
            }
            Request::Get { keys, .. } if keys.len() > ROWS_MAX => {
                let why = format!("{} rows are read at once; at most {ROWS_MAX} can be: read them in parts", keys.len());
                Err(TxnError::TooLarge(why.into()))
            }
            Request::Get { keys, .. } if keys.iter().map(|key| key.0.len()).sum::<usize>() > READ_KEYS_BYTES_MAX => {
                let why = format!("the keys of rows read at once have more than {READ_KEYS_BYTES_MAX} bytes: read them in parts");
                Err(TxnError::TooLarge(why.into()))
            }
            Request::Get { txn, keys, .. } => return self.read(id, txn, Query::Keys(keys), cx),
            Request::Scan { txn, range, limit, reverse, .. } => {
                let limit = limit.min(SCAN_MAX as u32);
                return self.read(id, txn, Query::Range { range, limit, reverse }, cx);
            }
            Request::Commit { txn, writes, .. } => return self.commit(id, txn, writes, cx),
            Request::Rollback { txn } => {
                self.fail(txn, None, over(), cx);
                Ok(Answer::Done)
            }
            Request::Admin(_) => unreachable!("operators are answered by the site"),
        };
        cx.fx.answer(id, answer.unwrap_or_else(Answer::Failed));
    }

    /// True if a request is to wait for the next configuration: the first of a transaction. It keeps its age.
    fn waits(&self, request: &Request) -> bool {
        let Some(txn) = transaction_of(request) else { return false };
        self.waiting.len() < WAITING_MAX && self.open.get(&txn).is_some_and(Open::is_fresh)
    }

    /// The requests that waited for a configuration, now that it is there.
    pub(crate) fn take_waiting(&mut self) -> impl Iterator<Item = (RequestId, Request)> + use<> {
        std::mem::take(&mut self.waiting).into_iter().map(|waiting| (waiting.id, waiting.request))
    }

    /// Answers clients that have waited too long for the next configuration: they may run their transactions again.
    fn tick_waiting(&mut self, cx: &mut Context<'_>) {
        let (ticks, patience) = (cx.ticks, cx.config.waiting_ticks);
        while let Some(Waiting { id, request, .. }) = self.waiting.pop_front_if(|first| ticks >= first.since + patience) {
            let txn = transaction_of(&request).expect("only requests of a transaction wait");
            let error = TxnError::Conflict("the configuration of quorums is being changed for long; nothing was committed".into());
            cx.fx.count("quad.waited_for_nothing");
            self.fail(txn, Some(id), error, cx);
        }
    }

    /// The epoch is sealed here: transactions that have read, or prepare, cannot go on. What is decided is decided.
    pub(crate) fn interrupt(&mut self, cx: &mut Context<'_>) {
        work::add(self.open.len());
        let begun: Vec<TxnId> = self.open.iter().filter(|(_, open)| !open.is_fresh()).map(|(txn, _)| *txn).collect();
        for txn in begun {
            cx.fx.count("quad.interrupted");
            self.fail(txn, None, moved(), cx);
        }
    }

    /// The epoch is over: `next` says what of its decisions counts.
    pub(crate) fn end_epoch(&mut self, next: &Configuration, replica: &Replica, batch: &mut Batch, cx: &mut Context<'_>) {
        self.interrupt(cx);
        for (txn, decided) in std::mem::take(&mut self.decided) {
            batch.delete_record(DECISIONS, txn_key(txn));
            let Some(id) = decided.id else { continue };
            // Had anybody been shown it, the commit would stand at all who are prepared.
            let nobody_saw = replica.is_in_doubt(txn);
            let answer = if next.carried.iter().any(|carried| carried.txn == txn) {
                Answer::Committed(Committed { at: decided.at, trips: decided.trips })
            } else if next.epoch == cx.configuration.epoch.next() && nobody_saw {
                Answer::Failed(moved())
            } else {
                Answer::Failed(TxnError::Unknown("the configuration changed without this site while it committed".into()))
            };
            cx.fx.answer(id, answer);
        }
    }

    fn begin(&mut self, cx: &mut Context<'_>) -> Result<Answer, TxnError> {
        if self.open.len() + self.decided.len() >= OPEN_MAX || !cx.may_issue() {
            return Err(TxnError::Unavailable(
                "this site has as many open transactions as it can; end some, or connect to another site".into(),
            ));
        }
        let txn = TxnId { began: cx.issue(), gateway: cx.me };
        self.turn += 1;
        let (turn, since) = (self.turn, cx.ticks);
        let (quorum, sessions) = (BTreeSet::new(), BTreeMap::new());
        self.open.insert(txn, Open { turn, quorum, sessions, number: 0, trips: 0, since, doing: Doing::Idle });
        Ok(Answer::Began { txn })
    }

    /// The transaction, if its client may go on with it; else the client is told.
    fn go_on(&mut self, id: RequestId, txn: TxnId, cx: &mut Context<'_>) -> Option<&mut Open> {
        let is_idle = self.open.get(&txn).is_some_and(|open| matches!(open.doing, Doing::Idle));
        if !is_idle {
            self.fail(txn, Some(id), over(), cx);
            return None;
        }
        let ticks = cx.ticks;
        let open = self.open.get_mut(&txn).expect("it is idle");
        open.since = ticks;
        Some(open)
    }

    pub(crate) fn tick(&mut self, cx: &mut Context<'_>) {
        let ticks = cx.ticks;
        let mut late = Vec::new();
        work::add(self.open.len() + self.decided.len());
        for (txn, open) in &self.open {
            let (patience, id) = match open.doing {
                Doing::Idle | Doing::Lost => (cx.config.abandoned_ticks, None),
                Doing::Reading { id, .. } | Doing::Confirming { id, .. } | Doing::Preparing { id, .. } => {
                    (cx.config.patience_ticks, Some(id))
                }
            };
            if ticks >= open.since + patience {
                late.push((*txn, id));
            }
        }
        for (txn, id) in late {
            let error = TxnError::Unavailable(
                "a lock was not granted, or a site of the quorum did not answer, in time; nothing was committed".into(),
            );
            self.fail(txn, id, error, cx);
        }
        for (txn, decided) in &mut self.decided {
            if ticks >= decided.since + cx.config.unknown_ticks
                && let Some(id) = decided.id.take()
            {
                let error = TxnError::Unknown("it was decided to commit, but not all sites of the quorum have confirmed that".into());
                cx.refuse(id, error);
            }
            if ticks >= decided.told + cx.config.doubt_ticks {
                decided.told = ticks;
                cx.promise_each(Batch::new(), &decided.missing, &decided.commit(*txn));
            }
        }
        self.tick_waiting(cx);
    }

    /// The transaction ends without a commit. Answers with the reason the client's request `id`, and an earlier request of it that is still under
    /// way.
    fn fail(&mut self, txn: TxnId, id: Option<RequestId>, error: TxnError, cx: &mut Context<'_>) {
        let mut waiting = BTreeSet::from_iter(id);
        if let Some(open) = self.open.remove(&txn) {
            let mut touched = open.quorum;
            match open.doing {
                Doing::Idle | Doing::Lost => {}
                Doing::Reading { id, .. } | Doing::Confirming { id, .. } => drop(waiting.insert(id)),
                Doing::Preparing { id, all, .. } => {
                    cx.fx.agree(TRANSACTION, txn, &None::<Timestamp>);
                    waiting.insert(id);
                    touched.extend(all);
                }
            }
            for site in touched {
                cx.send(site, Note::Abort { txn });
            }
        }
        for id in waiting {
            cx.refuse(id, error.clone());
        }
    }
}

/// The transaction that a request goes on with, if it does.
fn transaction_of(request: &Request) -> Option<TxnId> {
    match request {
        Request::Get { txn, .. } | Request::Scan { txn, .. } | Request::Commit { txn, .. } => Some(*txn),
        _ => None,
    }
}
