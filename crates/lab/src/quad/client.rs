//! Who sends requests: workers that run one transaction after another, and a background that only keeps its own site busy.

use super::meter::{Counts, Meter, Times};
use super::transactions::{Draft, Transactions};
use rhumb_commit::replicated_commit::{Answer, Request};
use rhumb_commit::transaction::{CommitOptions, ReadMode, TxnError};
use rhumb_core::actor::Actor;
use rhumb_core::{Span, Time, TxnId};
use rhumb_sim::{ClientEvent, ClientProgram, Next};
use std::cell::RefCell;
use std::rc::Rc;

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
            transactions,
            meter,
            phase: Phase::Beginning,
            draft: Draft { reads: Vec::new(), writes: Vec::new() },
            began: Time::ZERO,
            asked: Time::ZERO,
            times: Times::default(),
            retries: 0,
        }
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

    fn committed(&mut self, now: Time) -> Request {
        self.times.commit = now.since(self.asked);
        let (response, times, retries) = (now.since(self.began), self.times, self.retries);
        if let Some(counts) = self.meter.borrow_mut().now(self.site) {
            *counts += Counts { committed: 1, response, times, retries, failed: 0 };
        }
        self.next_transaction(now)
    }

    fn aborted(&mut self, now: Time, error: &TxnError) -> Request {
        if matches!(error, TxnError::Conflict(_)) {
            self.retries += 1;
            return self.attempt(now);
        }
        if let Some(counts) = self.meter.borrow_mut().now(self.site) {
            counts.failed += 1;
        }
        self.next_transaction(now)
    }
}

impl<A: Actor<Answer = Answer>> ClientProgram<A> for Worker
where
    A::Request: From<Request>,
{
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<A::Request> {
        let request = match (&self.phase, event) {
            (_, ClientEvent::Started) => return Next::Wait(self.delay),
            (_, ClientEvent::Woken) => self.next_transaction(now),
            (_, ClientEvent::Answered(Answer::Failed(error))) => self.aborted(now, &error),
            (Phase::Beginning, ClientEvent::Answered(Answer::Began { txn })) => self.read(now, txn),
            (&Phase::Reading(txn), ClientEvent::Answered(Answer::Rows { .. })) => self.commit(now, txn),
            (Phase::Committing, ClientEvent::Answered(Answer::Committed(_))) => self.committed(now),
            (phase, event) => unreachable!("nothing goes wrong in these worlds, but {phase:?} met {event:?}"),
        };
        Next::Request(request.into())
    }
}

/// Begins transactions and ends them, without a look at a row: work for its own site and for no other. As each waits for its answer
/// before it goes on, so many of these keep so many requests in the queue of the site.
#[derive(Debug, Default)]
pub(super) struct Background;

impl<A: Actor<Answer = Answer>> ClientProgram<A> for Background
where
    A::Request: From<Request>,
{
    fn next(&mut self, _: Time, event: ClientEvent<Answer>) -> Next<A::Request> {
        let request = match event {
            ClientEvent::Answered(Answer::Began { txn }) => Request::Rollback { txn },
            _ => Request::Begin { mode: ReadMode::Locking },
        };
        Next::Request(request.into())
    }
}
