//! A client of any protocol for one-shot transactions: asks for transactions and reads, and records what it is told.
//!
//! What it may conclude is as strict as for a real one: a site lost, or an outcome reported as unknown, means that the
//! transaction may have happened.

use super::counters::Counters;
use super::fielded;
use super::workload::{self, How, Plan, Step, Workload};
use crate::history::{Cell, Garbled, History, Mode, Op, Outcome, Txn, TxnNo};
use crate::recorded::Recorded;
use crate::{ClientEvent, ClientProgram, Next};
use rhumb_commit::one_shot::execution::{self, Output};
use rhumb_commit::one_shot::operation::{Expected, Operation, Transaction};
use rhumb_commit::one_shot::{Answer, Freshness, OneShot, Request};
use rhumb_commit::transaction::TxnError;
use rhumb_core::{Key, KeyRange, RegionId, Row, Span, Time, Timestamp};
use std::cell::RefCell;
use std::rc::Rc;

/// How long a client waits after an error.
const ERROR_PAUSE: Span = Span::from_millis(150);

/// What all clients of a run share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) history: History,
    pub(crate) counters: Counters,
    /// The first thing that a single answer shows to be wrong.
    pub(crate) wrong: Option<String>,
    values: u64,
}

impl Shared {
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
        self.wrong.as_ref()
    }
}

#[derive(Clone, Debug)]
enum Doing {
    Thinking,
    /// A transaction of these steps.
    Running(TxnNo, Vec<Step>),
    /// The list is being read that is to be appended to.
    ReadingList(TxnNo),
    /// It is being appended to.
    Appending(TxnNo),
    Counting(Key),
    /// A row is being amended, within its bounds or beyond.
    Amending(TxnNo, Key, bool),
    /// Registers are being read, then a range, then these will be written.
    Looking(TxnNo, (KeyRange, u32), Vec<Key>),
    /// The range is being read at the snapshot at which these rows were found.
    LookingOn(TxnNo, Vec<Row>, (KeyRange, u32), Vec<Key>),
    /// They are being written, unless what was read has changed.
    Interacting(TxnNo, Seen),
    /// What was asked for, and what an answer must not be older than.
    Reading(TxnNo, Vec<(KeyRange, u32)>, Timestamp),
    /// Every key, and then the counters.
    ReadingAll(TxnNo),
}

/// What a session has read.
#[derive(Clone, Debug)]
struct Seen {
    rows: Vec<Row>,
    range: KeyRange,
    /// The rows of the range.
    found: Vec<Row>,
}

/// A client's program.
pub(crate) struct Client {
    number: u32,
    region: RegionId,
    /// It begins nothing from then on.
    until: Time,
    /// None: it reads all once and is done.
    workload: Option<Workload>,
    shared: Rc<RefCell<Shared>>,
    doing: Doing,
    /// Its last commit.
    committed: Timestamp,
    /// Every read is as fresh as a transaction, whatever was asked for.
    always_fresh: bool,
}

impl Client {
    pub(crate) fn new(number: u32, region: RegionId, until: Time, workload: Option<Workload>, shared: Rc<RefCell<Shared>>) -> Client {
        Client { number, region, until, workload, shared, doing: Doing::Thinking, committed: Timestamp::ZERO, always_fresh: false }
    }

    /// A client of a protocol whose reads are all as fresh as transactions.
    pub(crate) fn with_fresh_reads(mut self) -> Client {
        self.always_fresh = true;
        self
    }

    fn begin(&mut self, now: Time) -> Next<Request> {
        if now >= self.until {
            return Next::Done;
        }
        let Some(workload) = &mut self.workload else { return self.read_all(now) };
        match workload.plan() {
            Plan::Run(steps) => self.run(now, steps),
            Plan::Append(key) => {
                self.doing = Doing::ReadingList(self.add(now, Mode::ReadWrite));
                Next::Request(Request::Read { keys: vec![key], ranges: vec![], reverse: false, freshness: Freshness::Settled })
            }
            Plan::Interact(keys, range, writes) => {
                self.doing = Doing::Looking(self.add(now, Mode::ReadWrite), range, writes);
                Next::Request(Request::Read { keys, ranges: vec![], reverse: false, freshness: Freshness::Settled })
            }
            Plan::Amend(key, registers, is_beyond) => self.amend(now, key, registers, is_beyond),
            Plan::Count(key) => {
                self.doing = Doing::Counting(key.clone());
                Next::Request(Request::Run(Operation::Add { key, amount: 1 }.into()))
            }
            Plan::Read(keys, ranges, how) => {
                let (freshness, mode, least) = match how {
                    _ if self.always_fresh => (Freshness::Strict, Mode::ReadOnly, Timestamp::ZERO),
                    How::Fresh(Freshness::Strict) => (Freshness::Strict, Mode::ReadOnly, Timestamp::ZERO),
                    How::Fresh(freshness) => (freshness, Mode::Stale(Timestamp::ZERO), Timestamp::ZERO),
                    How::Session => (Freshness::After(self.committed), Mode::Stale(Timestamp::ZERO), self.committed),
                };
                self.doing = Doing::Reading(self.add(now, mode), ranges.clone(), least);
                Next::Request(Request::Read { keys, ranges, reverse: false, freshness })
            }
        }
    }

    /// Bytes that the next transaction is to have beyond what it needs.
    fn bulk(&mut self) -> usize {
        self.workload.as_mut().map_or(0, Workload::bulk)
    }

    fn read_all(&mut self, now: Time) -> Next<Request> {
        self.doing = Doing::ReadingAll(self.add(now, Mode::ReadOnly));
        let keys = workload::all_keys().into_iter().chain(fielded::all_rows()).chain(workload::all_counters()).collect();
        Next::Request(Request::Read { keys, ranges: vec![], reverse: false, freshness: Freshness::Strict })
    }

    fn add(&self, now: Time, mode: Mode) -> TxnNo {
        self.shared.borrow_mut().history.add(Txn::new(self.number, self.region, now).mode(mode))
    }

    fn run(&mut self, now: Time, steps: Vec<Step>) -> Next<Request> {
        let no = self.add(now, Mode::ReadWrite);
        let bulk = self.bulk() / steps.len();
        let mut operations = Vec::new();
        for step in &steps {
            let value = |key: &Key| {
                let mut shared = self.shared.borrow_mut();
                let value = shared.value();
                shared.history.txn_mut(no).push(Op::Write { key: key.clone(), value });
                Cell::Register(value).encode_padded(bulk)
            };
            match step.clone() {
                Step::Scan(range, limit) => operations.push(Operation::Scan { range, limit }),
                Step::Read(key) => operations.push(Operation::Read { key }),
                Step::Write(key) => operations.push(Operation::Write { value: value(&key), key }),
                Step::ReadWrite(key) => {
                    operations.push(Operation::Read { key: key.clone() });
                    operations.push(Operation::Write { value: value(&key), key });
                }
                Step::Insert(key) => operations.push(Operation::Insert { value: value(&key), key }),
                Step::Delete(key) => {
                    self.shared.borrow_mut().history.txn_mut(no).push(Op::Delete { key: key.clone() });
                    operations.push(Operation::Delete { key });
                }
            }
        }
        self.doing = Doing::Running(no, steps);
        Next::Request(Request::Run(Transaction::new(operations)))
    }

    /// Changes fields of a row without having read it, and reads it then, as SQL does.
    fn amend(&mut self, now: Time, key: Key, registers: Vec<u32>, is_beyond: bool) -> Next<Request> {
        let no = self.add(now, Mode::ReadWrite);
        let mut changes = vec![fielded::adding_one(is_beyond)];
        changes.extend(fielded::changing_nothing(self.bulk()));
        for field in registers {
            let value = self.shared.borrow_mut().value();
            self.record(no, [Ok(Op::Write { key: fielded::register(&key, field), value })]);
            changes.push(fielded::setting(field, value));
        }
        self.doing = Doing::Amending(no, key.clone(), is_beyond);
        Next::Request(Request::Run(Transaction::new(vec![Operation::Amend { key: key.clone(), changes }, Operation::Read { key }])))
    }

    /// A row is amended, and this is what it is then.
    fn amended(&mut self, now: Time, no: TxnNo, at: Timestamp, row: &Row, is_beyond: bool) -> Next<Request> {
        let Some(sum) = fielded::count(row) else {
            // There was no row, and so it has changed nothing.
            self.shared.borrow_mut().history.txn_mut(no).ops.clear();
            self.record(no, fielded::reads(row));
            self.end(now, no, Outcome::Committed { at });
            return self.make(now, row.key.clone());
        };
        if is_beyond {
            let wrong = format!("an addition to {row:?} was made beyond its bounds");
            self.shared.borrow_mut().wrong.get_or_insert(wrong);
        }
        self.record(no, fielded::reads(row));
        self.shared.borrow_mut().counters.told(&row.key, sum);
        self.end(now, no, Outcome::Committed { at })
    }

    /// Inserts a row made of fields.
    fn make(&mut self, now: Time, key: Key) -> Next<Request> {
        let no = self.add(now, Mode::ReadWrite);
        let registers = fielded::REGISTERS.map(|field| {
            let value = self.shared.borrow_mut().value();
            self.record(no, [Ok(Op::Write { key: fielded::register(&key, field), value })]);
            value
        });
        self.doing = Doing::Running(no, Vec::new());
        Next::Request(Request::Run(Operation::Insert { key, value: fielded::encode(registers) }.into()))
    }

    /// Adds to the list what was read of it, unless it changes meanwhile.
    fn append(&mut self, no: TxnNo, row: &Row) -> Next<Request> {
        let mut shared = self.shared.borrow_mut();
        let mut elements = match row.value.as_ref().map(|value| Cell::decode(&row.key, value)) {
            Some(Ok(Cell::List(elements))) => elements,
            _ => Vec::new(),
        };
        let element = shared.value();
        elements.push(element);
        drop(shared);
        self.record(no, [Op::read(row), Ok(Op::Append { key: row.key.clone(), element })]);
        self.doing = Doing::Appending(no);
        let compare = Operation::Compare { key: row.key.clone(), expected: Expected::Version(row.version) };
        let write = Operation::Write { key: row.key.clone(), value: Cell::List(elements).encode() };
        Next::Request(Request::Run(Transaction::new(vec![compare, write])))
    }

    /// Writes, unless what was read at `at` has changed. It reads all of that again in its place, for the history to say which
    /// deletion it was that a missing row was missing by: a comparison does not tell them apart.
    fn write_unless_changed(&mut self, no: TxnNo, at: Timestamp, seen: Seen, writes: &[Key]) -> Next<Request> {
        let Seen { rows, range, found } = &seen;
        let mut operations = vec![
            Operation::Unchanged { range: range.clone(), rows: found.len() as u32, since: at },
            Operation::Scan { range: range.clone(), limit: found.len() as u32 + 1 },
        ];
        let version = |row: &Row| if row.value.is_some() { row.version } else { Timestamp::ZERO };
        let compared = |row: &Row| {
            let compare = Operation::Compare { key: row.key.clone(), expected: Expected::Version(version(row)) };
            [compare, Operation::Read { key: row.key.clone() }]
        };
        operations.extend(rows.iter().filter(|row| !writes.contains(&row.key)).flat_map(compared));
        for key in writes {
            let found = rows.iter().find(|row| row.key == *key);
            operations.extend(found.into_iter().flat_map(compared));
            if fielded::is_row(key) {
                if found.is_some_and(|row| row.value.is_some()) {
                    let (field, value) = (fielded::REGISTERS[0], self.shared.borrow_mut().value());
                    self.record(no, [Ok(Op::Write { key: fielded::register(key, field), value })]);
                    operations.push(Operation::Amend { key: key.clone(), changes: vec![fielded::setting(field, value)] });
                }
                continue;
            }
            let value = self.shared.borrow_mut().value();
            self.record(no, [Ok(Op::Write { key: key.clone(), value })]);
            operations.push(Operation::Write { key: key.clone(), value: Cell::Register(value).encode() });
        }
        self.doing = Doing::Interacting(no, seen);
        Next::Request(Request::Run(Transaction::new(operations)))
    }

    /// It was written: what was read must have been the same in that place.
    fn interacted(&mut self, no: TxnNo, seen: &Seen, outputs: Vec<Output>) {
        let same = |one: &Row, other: &Row| one.key == other.key && one.value == other.value;
        let writes = std::mem::take(&mut self.shared.borrow_mut().history.txn_mut(no).ops);
        for output in outputs {
            let (holds, reads) = match &output {
                Output::Row(row) => (seen.rows.iter().any(|seen| same(seen, row)), fielded::reads(row)),
                Output::Rows(rows) => {
                    let holds = rows.len() == seen.found.len() && rows.iter().zip(&seen.found).all(|(one, other)| same(one, other));
                    (holds, vec![Op::scan(seen.range.clone(), rows)])
                }
                Output::Number(_) | Output::Nothing => continue,
            };
            if !holds {
                let wrong = format!("a transaction that depends on {seen:?} took effect where it found {output:?}");
                self.shared.borrow_mut().wrong.get_or_insert(wrong);
            }
            self.record(no, reads);
        }
        self.record(no, writes.into_iter().map(Ok));
    }

    fn record(&self, no: TxnNo, ops: impl IntoIterator<Item = Result<Op, Garbled>>) {
        let mut shared = self.shared.borrow_mut();
        for op in ops {
            match op {
                Ok(op) => shared.history.txn_mut(no).push(op),
                Err(garbled) => drop(shared.wrong.get_or_insert(garbled.to_string())),
            }
        }
    }

    /// What a transaction's reads returned goes before its writes, as they were made.
    fn record_outputs(&self, no: TxnNo, steps: &[Step], outputs: Vec<Output>) {
        let mut scans = steps.iter().filter_map(|step| match step {
            Step::Scan(range, limit) => Some((range, *limit)),
            _ => None,
        });
        let writes = std::mem::take(&mut self.shared.borrow_mut().history.txn_mut(no).ops);
        let reads = outputs.iter().filter_map(|output| match output {
            Output::Row(row) => Some(Op::read(row)),
            Output::Rows(rows) => {
                let (range, limit) = scans.next().expect("one output per scan");
                Some(Op::scan(covered(range, limit, rows), rows))
            }
            Output::Number(_) | Output::Nothing => None,
        });
        self.record(no, reads);
        self.record(no, writes.into_iter().map(Ok));
    }

    fn end(&mut self, now: Time, no: TxnNo, outcome: Outcome) -> Next<Request> {
        self.shared.borrow_mut().history.txn_mut(no).end(now, outcome);
        if let Outcome::Committed { at } = outcome {
            self.committed = self.committed.max(at);
        }
        self.pause(matches!(outcome, Outcome::Committed { .. }))
    }

    fn pause(&mut self, is_well: bool) -> Next<Request> {
        self.doing = Doing::Thinking;
        match &mut self.workload {
            None if is_well => Next::Done,
            Some(workload) if is_well => Next::Wait(workload.think()),
            _ => Next::Wait(ERROR_PAUSE),
        }
    }

    /// The transaction or read did not succeed; `may_have` if it may have happened all the same.
    fn fail(&mut self, now: Time, may_have: bool) -> Next<Request> {
        match self.doing.clone() {
            Doing::Running(no, _) | Doing::Interacting(no, _) | Doing::Appending(no) => {
                self.end(now, no, if may_have { Outcome::Unknown } else { Outcome::Aborted })
            }
            Doing::ReadingList(no) | Doing::Looking(no, ..) | Doing::LookingOn(no, ..) | Doing::Reading(no, ..) | Doing::ReadingAll(no) => {
                self.end(now, no, Outcome::Aborted)
            }
            Doing::Amending(no, key, _) => {
                if may_have {
                    self.shared.borrow_mut().counters.unknown(&key);
                }
                self.end(now, no, if may_have { Outcome::Unknown } else { Outcome::Aborted })
            }
            Doing::Counting(key) => {
                if may_have {
                    self.shared.borrow_mut().counters.unknown(&key);
                }
                self.pause(false)
            }
            Doing::Thinking => unreachable!("nothing was asked"),
        }
    }

    fn ran(&mut self, now: Time, at: Timestamp, outcome: execution::Outcome) -> Next<Request> {
        let outputs = match outcome {
            execution::Outcome::Done(outputs) => outputs,
            execution::Outcome::Rejected(why) => {
                if let Doing::Amending(_, key, false) = &self.doing {
                    let wrong = format!("an amendment of {key} within its bounds was rejected: {why}");
                    self.shared.borrow_mut().wrong.get_or_insert(wrong);
                }
                return self.fail(now, false);
            }
        };
        match self.doing.clone() {
            Doing::Running(no, steps) => {
                self.record_outputs(no, &steps, outputs);
                self.end(now, no, Outcome::Committed { at })
            }
            Doing::Appending(no) => self.end(now, no, Outcome::Committed { at }),
            Doing::Interacting(no, seen) => {
                self.interacted(no, &seen, outputs);
                self.end(now, no, Outcome::Committed { at })
            }
            Doing::Amending(no, _, is_beyond) => {
                let [Output::Nothing, Output::Row(row)] = &outputs[..] else { unreachable!("one amendment, one read") };
                self.amended(now, no, at, row, is_beyond)
            }
            Doing::Counting(key) => {
                let [Output::Number(sum)] = outputs[..] else { unreachable!("one addition, one number") };
                self.shared.borrow_mut().counters.told(&key, sum);
                self.committed = self.committed.max(at);
                self.pause(true)
            }
            doing => unreachable!("{doing:?} was answered by a transaction"),
        }
    }

    fn read(&mut self, now: Time, at: Timestamp, rows: &[Row], ranges: &[Vec<Row>]) -> Next<Request> {
        match self.doing.clone() {
            Doing::ReadingList(no) => self.append(no, &rows[0]),
            Doing::Looking(no, range, writes) => {
                self.doing = Doing::LookingOn(no, rows.to_vec(), range.clone(), writes);
                Next::Request(Request::Read { keys: vec![], ranges: vec![range], reverse: false, freshness: Freshness::At(at) })
            }
            Doing::LookingOn(no, read, (range, limit), writes) => {
                let seen = Seen { rows: read, range: covered(&range, limit, &ranges[0]), found: ranges[0].clone() };
                self.write_unless_changed(no, at, seen, &writes)
            }
            Doing::Reading(no, asked, least) => {
                if at < least {
                    let wrong = format!("a session that committed at {least} was shown {at}");
                    self.shared.borrow_mut().wrong.get_or_insert(wrong);
                }
                self.record(no, rows.iter().flat_map(fielded::reads));
                self.record(no, asked.iter().zip(ranges).map(|((range, limit), rows)| Op::scan(covered(range, *limit, rows), rows)));
                let mut shared = self.shared.borrow_mut();
                let txn = shared.history.txn_mut(no);
                if txn.mode != Mode::ReadOnly {
                    txn.mode = Mode::Stale(at);
                }
                drop(shared);
                self.end(now, no, Outcome::Committed { at })
            }
            Doing::ReadingAll(no) => {
                let (cells, counters) = rows.split_at(rows.len() - workload::all_counters().len());
                self.record(no, cells.iter().flat_map(fielded::reads));
                for row in cells.iter().filter(|row| fielded::is_row(&row.key)) {
                    self.shared.borrow_mut().counters.found(row.key.clone(), fielded::count(row).unwrap_or(0));
                }
                for row in counters {
                    let sum = row.value.as_ref().and_then(|value| std::str::from_utf8(&value.0).ok()?.parse().ok());
                    self.shared.borrow_mut().counters.found(row.key.clone(), sum.unwrap_or(0));
                }
                self.end(now, no, Outcome::Committed { at })
            }
            doing => unreachable!("{doing:?} was answered by rows"),
        }
    }
}

/// What a scan speaks for.
fn covered(range: &KeyRange, limit: u32, rows: &[Row]) -> KeyRange {
    match rows.last().filter(|_| rows.len() == limit as usize) {
        Some(last) => KeyRange::new(range.start.clone(), last.key.successor()),
        None => range.clone(),
    }
}

impl<A: OneShot> ClientProgram<A> for Client {
    fn next(&mut self, now: Time, event: ClientEvent<A::Answer>) -> Next<A::Request> {
        let next = match event {
            ClientEvent::Started => Next::Wait(self.workload.as_mut().map_or(Span::ZERO, Workload::think)),
            ClientEvent::Woken => self.begin(now),
            ClientEvent::GatewayLost | ClientEvent::Answered(Answer::Failed(TxnError::Unknown(_))) => self.fail(now, true),
            ClientEvent::Answered(Answer::Failed(_)) => self.fail(now, false),
            ClientEvent::Answered(Answer::Ran { at, outcome }) => self.ran(now, at, outcome),
            ClientEvent::Answered(Answer::Rows { at, rows, ranges, .. }) => self.read(now, at, &rows, &ranges),
            ClientEvent::Answered(Answer::Admin(_)) => unreachable!("a client asks for nothing of an operator's"),
        };
        next.map(Request::widened)
    }
}
