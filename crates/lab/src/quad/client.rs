//! Who sends requests: workers that run one transaction after another, and a background that only keeps its own site busy.

use super::meter::{Counts, Meter, Times};
use super::transactions::Transactions;
use crate::draft::Draft;
use rhumb_commit::interactive::{Answer, Interactive, Request};
use rhumb_commit::transaction::{CommitOptions, ReadMode, TxnError};
use rhumb_core::{Span, Time, TxnId};
use rhumb_sim::{ClientEvent, ClientProgram, Next};
use std::cell::RefCell;
use std::rc::Rc;

/// A worker that is off duty looks so often whether it is needed.
const OFF_DUTY: Span = Span::from_millis(100);

/// Which workers work: of each site those with the lowest numbers.
#[derive(Clone, Debug)]
pub(super) struct Duty {
    /// How many, by site.
    pub(super) wanted: Rc<RefCell<Vec<u64>>>,
    /// The number of this one at its site.
    pub(super) number: u64,
    /// It thinks for so long at the most between two transactions.
    pub(super) think_max: Span,
}

/// What a worker waits for.
#[derive(Debug)]
enum Phase {
    Beginning,
    Reading(TxnId),
    Committing,
}

/// A worker: begins, reads, commits; if an older transaction was in the way, again, until it has committed.
pub(super) struct Worker {
    site: usize,
    /// It begins so long after it is started, lest all act in step.
    delay: Span,
    /// None: it always works.
    duty: Option<Duty>,
    transactions: Transactions,
    meter: Rc<RefCell<Meter>>,
    phase: Phase,
    draft: Draft,
    /// Its first attempt.
    began: Time,
    /// What it waits for.
    asked: Time,
    times: Times,
    retries: u64,
}

impl Worker {
    pub(super) fn new(site: usize, delay: Span, transactions: Transactions, meter: Rc<RefCell<Meter>>) -> Worker {
        Worker {
            site,
            delay,
            duty: None,
            transactions,
            meter,
            phase: Phase::Beginning,
            draft: Draft::default(),
            began: Time::ZERO,
            asked: Time::ZERO,
            times: Times::default(),
            retries: 0,
        }
    }

    /// The same, on duty only when it is needed.
    pub(super) fn with_duty(self, duty: Duty) -> Worker {
        Worker { duty: Some(duty), ..self }
    }

    /// The next transaction, unless it thinks, or is not needed.
    fn go_on(&mut self, now: Time, has_thought: bool) -> Next<Request> {
        if let Some(duty) = &self.duty {
            if duty.number >= duty.wanted.borrow()[self.site] {
                return Next::Wait(OFF_DUTY);
            }
            if !has_thought && duty.think_max > Span::ZERO {
                return Next::Wait(self.transactions.think(duty.think_max));
            }
        }
        Next::Request(self.next_transaction(now))
    }

    fn next_transaction(&mut self, now: Time) -> Request {
        self.draft = self.transactions.draw();
        self.began = now;
        self.retries = 0;
        self.attempt(now)
    }

    fn attempt(&mut self, now: Time) -> Request {
        (self.phase, self.asked) = (Phase::Beginning, now);
        Request::Begin { mode: ReadMode::Locking }
    }

    fn read(&mut self, now: Time, txn: TxnId) -> Request {
        self.times.begin = now.since(self.asked);
        (self.phase, self.asked) = (Phase::Reading(txn), now);
        Request::Get { txn, mode: ReadMode::Locking, keys: self.draft.reads.clone(), expect: Vec::new() }
    }

    fn commit(&mut self, now: Time, txn: TxnId) -> Request {
        self.times.read = now.since(self.asked);
        (self.phase, self.asked) = (Phase::Committing, now);
        let writes = self.draft.writes.clone();
        Request::Commit { txn, writes, expect: Vec::new(), options: CommitOptions::default() }
    }

    fn committed(&mut self, now: Time) -> Next<Request> {
        self.times.commit = now.since(self.asked);
        let (response, times, retries) = (now.since(self.began), self.times, self.retries);
        if let Some(counts) = self.meter.borrow_mut().now(self.site) {
            *counts += Counts { committed: 1, response, times, retries, failed: 0 };
        }
        self.go_on(now, false)
    }

    fn aborted(&mut self, now: Time, error: &TxnError) -> Next<Request> {
        if matches!(error, TxnError::Conflict(_)) {
            self.retries += 1;
            return Next::Request(self.attempt(now));
        }
        if let Some(counts) = self.meter.borrow_mut().now(self.site) {
            counts.failed += 1;
        }
        self.go_on(now, false)
    }
}

impl<A: Interactive> ClientProgram<A> for Worker {
    fn next(&mut self, now: Time, event: ClientEvent<A::Answer>) -> Next<A::Request> {
        let next = match (&self.phase, event) {
            (_, ClientEvent::Started) => Next::Wait(self.delay),
            (_, ClientEvent::Woken) => self.go_on(now, true),
            (_, ClientEvent::Answered(Answer::Failed(error))) => self.aborted(now, &error),
            (Phase::Beginning, ClientEvent::Answered(Answer::Began { txn })) => Next::Request(self.read(now, txn)),
            (&Phase::Reading(txn), ClientEvent::Answered(Answer::Rows { .. })) => Next::Request(self.commit(now, txn)),
            (Phase::Committing, ClientEvent::Answered(Answer::Committed(_))) => self.committed(now),
            (phase, event) => unreachable!("nothing goes wrong in these worlds, but {phase:?} met {event:?}"),
        };
        next.map(Request::widened)
    }
}

/// Begins transactions and ends them, without a look at a row: work for its own site and for no other. As each waits for its answer
/// before it goes on, so many of these keep so many requests in the queue of the site.
#[derive(Debug, Default)]
pub(super) struct Background;

impl<A: Interactive> ClientProgram<A> for Background {
    fn next(&mut self, _: Time, event: ClientEvent<A::Answer>) -> Next<A::Request> {
        Next::Request(match event {
            ClientEvent::Answered(Answer::Began { txn }) => Request::Rollback { txn },
            _ => Request::Begin { mode: ReadMode::Locking },
        })
    }
}
