//! A client: one transaction after another, a new one as soon as the last is decided.

use super::form::Form;
use super::meter::Meter;
use super::transactions::Transactions;
use crate::draft::Draft;
use rhumb_core::{Span, Time, TxnId};
use rhumb_replicated_commit::{Answer, Request, Site};
use rhumb_sim::{ClientEvent, ClientProgram, Next};
use std::cell::RefCell;
use std::rc::Rc;

/// What it waits for.
#[derive(Debug)]
enum Phase {
    Beginning,
    /// So many reads are done.
    Reading(TxnId, usize),
    Committing,
    RollingBack,
}

/// A client's program.
pub(super) struct Client {
    region: usize,
    form: Form,
    /// It begins so long after it is started, lest all act in step.
    delay: Span,
    transactions: Transactions,
    meter: Rc<RefCell<Meter>>,
    /// What begins before is not measured.
    measured_from: Time,
    phase: Phase,
    draft: Draft,
    began: Time,
    committing: Time,
}

impl Client {
    pub(super) fn new(
        region: usize,
        form: Form,
        delay: Span,
        transactions: Transactions,
        meter: Rc<RefCell<Meter>>,
        measured_from: Time,
    ) -> Client {
        Client {
            region,
            form,
            delay,
            transactions,
            meter,
            measured_from,
            phase: Phase::Beginning,
            draft: Draft::default(),
            began: Time::ZERO,
            committing: Time::ZERO,
        }
    }

    fn begin(&mut self, now: Time) -> Next<Request> {
        self.draft = self.transactions.draw();
        self.began = now;
        self.phase = Phase::Beginning;
        Next::Request(Request::Begin { mode: self.form.read_mode() })
    }

    /// The next read, or else the commit.
    fn proceed(&mut self, now: Time, txn: TxnId, reads_done: usize) -> Next<Request> {
        if let Some(key) = self.draft.reads.get(reads_done) {
            self.phase = Phase::Reading(txn, reads_done);
            return Next::Request(Request::Get { txn, mode: self.form.read_mode(), keys: vec![key.clone()], expect: Vec::new() });
        }
        self.phase = Phase::Committing;
        self.committing = now;
        let writes = std::mem::take(&mut self.draft.writes);
        Next::Request(Request::Commit { txn, writes, expect: Vec::new(), options: self.form.commit_options() })
    }

    fn end(&mut self, now: Time, committed: bool) -> Next<Request> {
        if self.began >= self.measured_from {
            let counts = &mut self.meter.borrow_mut().regions[self.region];
            if committed {
                counts.committed += 1;
                counts.transactions = counts.transactions + now.since(self.began);
                counts.commits = counts.commits + now.since(self.committing);
            } else {
                counts.aborted += 1;
            }
        }
        if self.meter.borrow().closed { Next::Done } else { self.begin(now) }
    }
}

impl ClientProgram<Site> for Client {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        match (&self.phase, event) {
            (_, ClientEvent::Started) => Next::Wait(self.delay),
            (_, ClientEvent::Woken) => self.begin(now),
            (Phase::Beginning, ClientEvent::Answered(Answer::Began { txn })) => self.proceed(now, txn, 0),
            (&Phase::Reading(txn, done), ClientEvent::Answered(Answer::Rows { .. })) => self.proceed(now, txn, done + 1),
            (&Phase::Reading(txn, _), ClientEvent::Answered(Answer::Failed(_))) => {
                self.phase = Phase::RollingBack;
                Next::Request(Request::Rollback { txn })
            }
            (Phase::Committing, ClientEvent::Answered(Answer::Committed(_))) => self.end(now, true),
            (Phase::Committing | Phase::RollingBack, ClientEvent::Answered(_)) => self.end(now, false),
            (phase, event) => unreachable!("nothing goes wrong in these worlds, but {phase:?} met {event:?}"),
        }
    }
}
