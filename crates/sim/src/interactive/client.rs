//! A client: begins a transaction, does its steps one after the other, commits, and records what it saw.
//!
//! What it may conclude is as strict as for a real one: an error before the commit was sent means the transaction did
//! not happen; a gateway lost after that, or an outcome reported as unknown, means that it may have.

use super::workload::{self, Reads, Step, Style, Workload};
use crate::history::{Cell, Garbled, History, Mode, Op, Outcome, Txn, TxnNo};
use crate::recorded::Recorded;
use crate::{ClientEvent, ClientProgram, Next};
use rhumb_commit::buffer::WriteBuffer;
use rhumb_commit::interactive::{Answer, Interactive, Request};
use rhumb_commit::transaction::{CommitOptions, ReadMode, TxnError};
use rhumb_core::{RegionId, Row, Span, Time, Timestamp, TxnId};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

/// Commits whose timestamps are remembered for stale reads.
const RECENT_MAX: usize = 32;
/// How long a client waits after an error.
const ERROR_PAUSE: Span = Span::from_millis(200);

/// What all clients of a run share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) history: History,
    /// The first stored value that no client wrote.
    pub(crate) garbled: Option<String>,
    values: u64,
    recent: VecDeque<Timestamp>,
    /// Transactions whose commit was refused.
    refused: Vec<TxnNo>,
}

impl Shared {
    /// `region` is declared lost: what its gateways refused to commit, and perhaps told nobody else of, may count as committed.
    pub(crate) fn doubt_refusals_of(&mut self, region: RegionId) {
        for no in std::mem::take(&mut self.refused) {
            let txn = self.history.txn_mut(no);
            if let Some((_, outcome)) = txn.ended.as_mut().filter(|_| txn.region == region) {
                *outcome = Outcome::Unknown;
            }
        }
    }

    fn value(&mut self) -> u64 {
        self.values += 1;
        self.values
    }
}

impl Recorded for Shared {
    fn history(&self) -> &History {
        &self.history
    }

    fn wrong(&self) -> Option<&String> {
        self.garbled.as_ref()
    }
}

#[derive(Debug)]
enum Phase {
    Thinking,
    Beginning,
    /// The front of `steps` is being read.
    Reading,
    Committing,
    RollingBack,
}

/// A client's program.
pub(crate) struct Client {
    number: u32,
    region: RegionId,
    /// It begins nothing from then on.
    until: Time,
    workload: Option<Workload>,
    /// As the final reader it reads the keys of large transactions, too.
    reads_bulk: bool,
    shared: Rc<RefCell<Shared>>,
    phase: Phase,
    mode: ReadMode,
    steps: VecDeque<Step>,
    buffer: WriteBuffer,
    txn: Option<TxnId>,
    no: TxnNo,
}

impl Client {
    pub(crate) fn new(number: u32, region: RegionId, until: Time, workload: Workload, shared: Rc<RefCell<Shared>>) -> Client {
        Client {
            number,
            region,
            until,
            workload: Some(workload),
            reads_bulk: false,
            shared,
            phase: Phase::Thinking,
            mode: ReadMode::Snapshot,
            steps: VecDeque::new(),
            buffer: WriteBuffer::default(),
            txn: None,
            no: TxnNo(0),
        }
    }

    /// A client that reads every key once, strictly, and is done.
    pub(crate) fn final_reader(number: u32, region: RegionId, is_bulky: bool, shared: Rc<RefCell<Shared>>) -> Client {
        let mut client =
            Client::new(number, region, Time::from_micros(u64::MAX), Workload::new(rhumb_core::Rng::seeded(0), Reads::Everywhere), shared);
        client.workload = None;
        client.reads_bulk = is_bulky;
        client
    }

    fn begin(&mut self, now: Time) -> Next<Request> {
        if now >= self.until {
            return Next::Done;
        }
        let style = self.workload.as_mut().map_or(Style::Snapshot, Workload::style);
        self.steps = match &mut self.workload {
            Some(workload) => workload.steps(style).into(),
            None => workload::read_all(self.reads_bulk).into(),
        };
        let stale = self.pick_past();
        self.mode = match style {
            Style::Locking => ReadMode::Locking,
            Style::Optimistic => ReadMode::Optimistic,
            Style::Active => ReadMode::Active,
            Style::Snapshot => ReadMode::Snapshot,
            Style::Stale => stale.map_or(ReadMode::Snapshot, ReadMode::Stale),
        };
        let mode = match self.mode {
            ReadMode::Locking | ReadMode::Optimistic | ReadMode::Active => Mode::ReadWrite,
            ReadMode::Snapshot => Mode::ReadOnly,
            ReadMode::Stale(at) => Mode::Stale(at),
        };
        self.buffer = WriteBuffer::default();
        self.no = self.shared.borrow_mut().history.add(Txn::new(self.number, self.region, now).mode(mode));
        self.phase = Phase::Beginning;
        Next::Request(Request::Begin { mode: self.mode })
    }

    /// The timestamp of some recent commit, to read as of it.
    fn pick_past(&mut self) -> Option<Timestamp> {
        let recent = &self.shared.borrow().recent;
        let workload = self.workload.as_mut()?;
        recent.get(workload.below(recent.len() as u64) as usize).copied()
    }

    /// Does steps up to the next one that must ask the gateway.
    fn proceed(&mut self) -> Next<Request> {
        let Some(txn) = self.txn else { unreachable!("the transaction has begun") };
        while let Some(step) = self.steps.front().cloned() {
            let request = match step {
                Step::Write(key) => {
                    let value = self.shared.borrow_mut().value();
                    self.buffer.write(key.clone(), Some(Cell::Register(value).encode()));
                    self.record(Op::Write { key, value });
                    None
                }
                Step::WriteLarge(key, bytes) => {
                    let value = self.shared.borrow_mut().value();
                    self.buffer.write(key.clone(), Some(Cell::Register(value).encode_padded(bytes)));
                    self.record(Op::Write { key, value });
                    None
                }
                Step::ReadMany(keys) => Some(Request::Get { txn, mode: self.mode, keys, expect: vec![] }),
                Step::Delete(key) => {
                    self.buffer.write(key.clone(), None);
                    self.record(Op::Delete { key });
                    None
                }
                Step::Read(key) | Step::Append(key) if self.buffer.row(&key).is_some() => {
                    let row = self.buffer.row(&key).expect("the guard saw it");
                    self.take_row(&row);
                    None
                }
                Step::Read(key) | Step::Append(key) => Some(Request::Get { txn, mode: self.mode, keys: vec![key], expect: vec![] }),
                Step::Scan { range, limit, reverse } => Some(Request::Scan { txn, mode: self.mode, range, limit, reverse, expect: vec![] }),
            };
            match request {
                Some(request) => {
                    self.phase = Phase::Reading;
                    return Next::Request(request);
                }
                None => drop(self.steps.pop_front()),
            }
        }
        self.phase = Phase::Committing;
        let writes = std::mem::take(&mut self.buffer).into_writes();
        let options = self.workload.as_mut().map_or(CommitOptions::default(), Workload::options);
        Next::Request(Request::Commit { txn, writes, expect: vec![], options })
    }

    fn record(&mut self, op: Op) {
        self.shared.borrow_mut().history.txn_mut(self.no).push(op);
    }

    fn record_seen(&mut self, op: Result<Op, Garbled>) {
        match op {
            Ok(op) => self.record(op),
            Err(garbled) => drop(self.shared.borrow_mut().garbled.get_or_insert(garbled.to_string())),
        }
    }

    /// The row of the step at the front; the step may append to it.
    fn take_row(&mut self, row: &Row) {
        self.record_seen(Op::read(row));
        if let Some(Step::Append(key)) = self.steps.front() {
            let key = key.clone();
            let mut elements = match row.value.as_ref().map(|value| Cell::decode(&row.key, value)) {
                Some(Ok(Cell::List(elements))) => elements,
                _ => Vec::new(),
            };
            let element = self.shared.borrow_mut().value();
            elements.push(element);
            self.buffer.write(key.clone(), Some(Cell::List(elements).encode()));
            self.record(Op::Append { key, element });
        }
    }

    fn take_answer<T>(&mut self, answer: Answer<T>) {
        let Answer::Rows { rows, covered, .. } = answer else { unreachable!("rows were asked for") };
        match (self.steps.front(), covered) {
            (Some(Step::Scan { reverse, .. }), Some(covered)) => {
                let reverse = *reverse;
                let mut rows = self.buffer.overlay(rows, &covered, reverse);
                if reverse {
                    rows.reverse();
                }
                self.record_seen(Op::scan(covered, &rows));
            }
            _ => rows.iter().for_each(|row: &Row| self.take_row(row)),
        }
        self.steps.pop_front();
    }

    fn end(&mut self, now: Time, outcome: Outcome) -> Next<Request> {
        let mut shared = self.shared.borrow_mut();
        shared.history.txn_mut(self.no).end(now, outcome);
        if outcome == Outcome::Aborted && matches!(self.phase, Phase::Committing) && !self.mode.is_read_only() {
            shared.refused.push(self.no);
        }
        if let Outcome::Committed { at } = outcome {
            shared.recent.push_back(at);
            if shared.recent.len() > RECENT_MAX {
                shared.recent.pop_front();
            }
        }
        drop(shared);
        self.txn = None;
        self.phase = Phase::Thinking;
        match &mut self.workload {
            Some(workload) => Next::Wait(if matches!(outcome, Outcome::Committed { .. }) { workload.think() } else { ERROR_PAUSE }),
            None if matches!(outcome, Outcome::Committed { .. }) => Next::Done,
            None => Next::Wait(ERROR_PAUSE),
        }
    }
}

impl<A: Interactive> ClientProgram<A> for Client {
    fn next(&mut self, now: Time, event: ClientEvent<A::Answer>) -> Next<A::Request> {
        self.take(now, event).map(Request::widened)
    }
}

impl Client {
    fn take<T: fmt::Debug>(&mut self, now: Time, event: ClientEvent<Answer<T>>) -> Next<Request> {
        match (&self.phase, event) {
            (_, ClientEvent::Started) => Next::Wait(self.workload.as_mut().map_or(Span::ZERO, Workload::think)),
            (_, ClientEvent::Woken) => self.begin(now),
            (Phase::Committing, ClientEvent::GatewayLost) if !self.mode.is_read_only() => self.end(now, Outcome::Unknown),
            (_, ClientEvent::GatewayLost) => self.end(now, Outcome::Aborted),
            (Phase::Beginning, ClientEvent::Answered(Answer::Began { txn })) => {
                self.txn = Some(txn);
                self.proceed()
            }
            (Phase::Reading, ClientEvent::Answered(answer @ Answer::Rows { .. })) => {
                self.take_answer(answer);
                self.proceed()
            }
            (Phase::Committing, ClientEvent::Answered(Answer::Committed(committed))) => {
                self.end(now, Outcome::Committed { at: committed.at })
            }
            (Phase::Committing, ClientEvent::Answered(Answer::Failed(TxnError::Unknown(_)))) => self.end(now, Outcome::Unknown),
            (Phase::Committing | Phase::Beginning, ClientEvent::Answered(Answer::Failed(_))) => self.end(now, Outcome::Aborted),
            (Phase::Reading, ClientEvent::Answered(Answer::Failed(_))) => {
                self.phase = Phase::RollingBack;
                let Some(txn) = self.txn else { unreachable!("the transaction has begun") };
                Next::Request(Request::Rollback { txn })
            }
            (Phase::RollingBack, ClientEvent::Answered(_)) => self.end(now, Outcome::Aborted),
            (phase, ClientEvent::Answered(answer)) => unreachable!("{phase:?} was answered {answer:?}"),
        }
    }
}
