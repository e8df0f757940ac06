//! The coordinator of a region: takes its clients' transactions through both rounds.
//!
//! ```text
//!   client ─▶ executing ── a majority has read ──▶ preparing ── a majority of yes ──▶ answered
//!                │  ▲                                  │
//!                │  └────── tried again, if it may ────┤ no majority of yes possible
//!                └── patience is over ──▶ failed ◀─────┘
//! ```

use super::config::{RANGE_ROWS_MAX, RUNNING_MAX, TICK};
use super::context::Context;
use super::message::{Note, Proposal};
use super::reading::{Found, Newest};
use rhumb_commit::one_shot::execution::{self, Output};
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_commit::one_shot::{Answer, execution::Outcome as Ran};
use rhumb_commit::transaction::TxnError;
use rhumb_commit::votes::{Outcome, Refusal, Tally, Vote};
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, KeyRange, RegionId, Row, Span, Table, Timestamp, TxnId};
use std::collections::{BTreeMap, BTreeSet};

/// What a client is to be told.
#[derive(Clone, Debug)]
enum Asked {
    /// What the operations returned.
    Run,
    /// These rows, and those of the ranges.
    Read(Vec<Key>),
}

/// How far a transaction is.
#[derive(Debug)]
enum Stage {
    Executing { found: BTreeMap<RegionId, (Found, Timestamp)> },
    Preparing { proposal: Proposal, ran: Ran, tally: Box<Tally> },
}

/// A client's transaction.
#[derive(Debug)]
struct Running {
    id: RequestId,
    asked: Asked,
    transaction: Transaction,
    /// The tick in which it came.
    since: u64,
    /// The tick in which somebody was asked last.
    sent: u64,
    /// How often it was tried before.
    tried: u64,
    stage: Stage,
}

/// A site's own clients' transactions, by their present attempt.
#[derive(Debug, Default)]
pub(super) struct Coordinator {
    running: BTreeMap<TxnId, Running>,
}

impl Coordinator {
    /// Lists its table.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("coordinator.running", self.running.len(), RUNNING_MAX));
    }

    /// A client's transaction.
    pub(super) fn on_run(&mut self, id: RequestId, transaction: Transaction, cx: &mut Context<'_>) {
        self.begin(id, Asked::Run, transaction, cx);
    }

    /// A client's read: a transaction that only reads. However fresh it is to be, it sees all that ended before it began.
    pub(super) fn on_read_only(&mut self, id: RequestId, keys: Vec<Key>, ranges: Vec<(KeyRange, u32)>, cx: &mut Context<'_>) {
        let once: BTreeSet<Key> = keys.iter().cloned().collect();
        let reads = once.into_iter().map(|key| Operation::Read { key });
        let scans = ranges.into_iter().map(|(range, limit)| Operation::Scan { range, limit });
        self.begin(id, Asked::Read(keys), Transaction::new(reads.chain(scans).collect()), cx);
    }

    fn begin(&mut self, id: RequestId, asked: Asked, transaction: Transaction, cx: &mut Context<'_>) {
        if let Err(invalid) = transaction.validate() {
            return cx.fx.answer(id, Answer::Failed(invalid.into()));
        }
        if self.running.len() >= RUNNING_MAX {
            let full = format!("{RUNNING_MAX} transactions are under way here already");
            return cx.fx.answer(id, Answer::Failed(TxnError::Unavailable(full.into())));
        }
        let Some(began) = cx.issue() else {
            return cx.fx.answer(id, Answer::Failed(TxnError::Unavailable("no identifier may be issued yet: the disk is behind".into())));
        };
        let txn = TxnId { began, gateway: cx.me };
        let stage = Stage::Executing { found: BTreeMap::new() };
        let running = Running { id, asked, transaction, since: cx.ticks, sent: cx.ticks, tried: 0, stage };
        self.running.insert(txn, running);
        self.ask(txn, cx);
    }

    /// Asks those who have not answered.
    fn ask(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let running = self.running.get_mut(&txn).expect("it is under way");
        running.sent = cx.ticks;
        let note = match &running.stage {
            Stage::Executing { .. } => Note::Execute { txn, transaction: running.transaction.clone() },
            Stage::Preparing { proposal, .. } => Note::Prepare { txn, proposal: proposal.clone() },
        };
        for to in cx.sites() {
            let has_answered = match &running.stage {
                Stage::Executing { found } => found.contains_key(&to.region),
                Stage::Preparing { tally, .. } => tally.of(to.region).is_some(),
            };
            if !has_answered {
                cx.fx.send(to, note.clone());
            }
        }
    }

    /// A region has read the rows.
    pub(super) fn on_executed(&mut self, from: RegionId, txn: TxnId, found: Found, above: Timestamp, cx: &mut Context<'_>) {
        let Some(running) = self.running.get_mut(&txn) else { return };
        let Stage::Executing { found: known } = &mut running.stage else { return };
        if found.more {
            let why = format!("a transaction reads at most {RANGE_ROWS_MAX} rows of a range, deleted ones counted");
            return self.give_up(txn, TxnError::TooLarge(why.into()), cx);
        }
        known.insert(from, (found, above));
        if known.len() >= cx.regions.majority() {
            self.propose(txn, cx);
        }
    }

    /// A region takes back what it has read.
    pub(super) fn on_wounded(&mut self, from: RegionId, txn: TxnId) {
        if let Some(Running { stage: Stage::Executing { found }, .. }) = self.running.get_mut(&txn) {
            found.remove(&from);
        }
    }

    /// A majority has read: works out what is to be written, and asks for votes on it.
    fn propose(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let running = self.running.get_mut(&txn).expect("it is under way");
        let Stage::Executing { found } = &running.stage else { unreachable!("it is being executed") };
        let mut newest = Newest::default();
        for (found, above) in found.values() {
            newest.take(found);
            cx.clock.observe(*above);
        }
        cx.clock.observe(newest.highest());
        let at = cx.timestamp();
        let Running { transaction, .. } = &running;
        let footprint = transaction.footprint();
        let limits = transaction.operations.iter().filter_map(|operation| Some(operation.range()?.1));
        let (ran, writes) = execution::evaluate(transaction, newest.rows.clone(), newest.live(limits));
        let versions = |rows: &BTreeMap<Key, Row>| rows.iter().map(|(key, row)| (key.clone(), row.version)).collect();
        let proposal = Proposal {
            at,
            keys: footprint.keys.into_iter().map(|(key, writes)| (key.clone(), (newest.rows[&key].version, writes))).collect(),
            ranges: footprint.ranges.into_iter().zip(newest.ranges.iter().map(versions)).collect(),
            writes,
        };
        running.stage = Stage::Preparing { proposal, ran, tally: Box::default() };
        self.ask(txn, cx);
    }

    /// A region has voted.
    pub(super) fn on_voted(&mut self, from: RegionId, txn: TxnId, vote: Vote, cx: &mut Context<'_>) {
        let Some(running) = self.running.get_mut(&txn) else { return };
        let Stage::Preparing { tally, .. } = &mut running.stage else { return };
        if let Vote::No(Refusal::TimestampTooLow(above)) = vote {
            cx.clock.observe(above);
        }
        tally.record(from, vote, cx.rules);
        if let Some(outcome) = tally.outcome(cx.regions) {
            self.conclude(txn, outcome, cx);
        }
    }

    /// The outcome of an attempt, from the votes or from a region that has worked it out.
    pub(super) fn conclude(&mut self, txn: TxnId, outcome: Outcome, cx: &mut Context<'_>) {
        let Some(Running { stage: Stage::Preparing { proposal, .. }, .. }) = self.running.get(&txn) else { return };
        match outcome {
            Outcome::Committed => {
                let committed = Some((proposal.at, proposal.writes.clone()));
                self.decide(txn, committed, cx);
                let Running { id, asked, stage, .. } = self.running.remove(&txn).expect("it is under way");
                let Stage::Preparing { proposal, ran, .. } = stage else { unreachable!("it was voted on") };
                cx.fx.answer(id, answer(asked, proposal.at, ran));
            }
            Outcome::Aborted => {
                cx.fx.count("paxos_commit.aborted");
                self.decide(txn, None, cx);
                self.try_again(txn, cx);
            }
        }
    }

    fn decide(&self, txn: TxnId, committed: Option<(Timestamp, execution::Writes)>, cx: &mut Context<'_>) {
        cx.sites().for_each(|to| cx.fx.send(to, Note::Decided { txn, committed: committed.clone() }));
    }

    /// An attempt is aborted: the next one is as old, so that it does not starve.
    fn try_again(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let mut running = self.running.remove(&txn).expect("it is under way");
        running.tried += 1;
        let is_late = running.since + ticks(cx.config.patience) <= cx.ticks;
        if running.tried >= cx.config.concurrency.attempts_max() || is_late {
            return cx.fx.answer(running.id, Answer::Failed(TxnError::Conflict("other transactions were in the way".into())));
        }
        cx.fx.count("paxos_commit.tried_again");
        running.stage = Stage::Executing { found: BTreeMap::new() };
        let next = TxnId { began: txn.began.next(), gateway: cx.me };
        self.running.insert(next, running);
        self.ask(next, cx);
    }

    /// Nobody was asked for a vote: it is over.
    fn give_up(&mut self, txn: TxnId, why: TxnError, cx: &mut Context<'_>) {
        let running = self.running.remove(&txn).expect("it is under way");
        cx.sites().for_each(|to| cx.fx.send(to, Note::Release { txn }));
        cx.fx.answer(running.id, Answer::Failed(why));
    }

    /// Asks again those who are silent, and tells clients that have waited too long what is known.
    pub(super) fn look_after_clients(&mut self, cx: &mut Context<'_>) {
        let (now, config) = (cx.ticks, cx.config.clone());
        let late = |running: &Running, span: Span| running.since + ticks(span) <= now;
        let all: Vec<TxnId> = self.running.keys().copied().collect();
        for txn in all {
            let running = &self.running[&txn];
            match &running.stage {
                Stage::Executing { .. } if late(running, config.patience) => {
                    cx.fx.count("paxos_commit.lock_timeout");
                    let why = "a majority of the regions could not be locked and read in time";
                    self.give_up(txn, TxnError::Conflict(why.into()), cx);
                }
                Stage::Preparing { .. } if late(running, config.deadline) => {
                    let running = self.running.remove(&txn).expect("it was just listed");
                    let why = "too few regions have told their votes in time";
                    cx.fx.answer(running.id, Answer::Failed(TxnError::Unknown(why.into())));
                }
                _ if running.sent + ticks(config.resend) <= now => self.ask(txn, cx),
                _ => {}
            }
        }
    }
}

fn answer(asked: Asked, at: Timestamp, ran: Ran) -> Answer {
    match (asked, ran) {
        (Asked::Run, outcome) => Answer::Ran { at, outcome },
        (Asked::Read(keys), Ran::Done(outputs)) => {
            let (mut rows, mut ranges) = (BTreeMap::new(), Vec::new());
            for output in outputs {
                match output {
                    Output::Row(row) => drop(rows.insert(row.key.clone(), row)),
                    Output::Rows(rows) => ranges.push(rows),
                    Output::Nothing | Output::Number(_) => unreachable!("it only reads"),
                }
            }
            Answer::Rows { at, rows: keys.iter().map(|key| rows[key].clone()).collect(), ranges, more: false }
        }
        (Asked::Read(_), Ran::Rejected(_)) => unreachable!("a read rejects nothing"),
    }
}

fn ticks(span: Span) -> u64 {
    span.as_micros() / TICK.as_micros()
}
