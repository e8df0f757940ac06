//! Locks: what a transaction asks for, and goes on with once it has it.

use super::Replica;
use super::reads::load_rows;
use super::session::{Asked, Session, What};
use crate::config::SESSIONS_MAX;
use crate::context::{Context, Job};
use crate::message::Note;
use crate::planted::Planted;
use rhumb_commit::wound_wait::{Lock, Outcome, Phase};
use rhumb_core::{TxnId, work};
use std::collections::{BTreeSet, VecDeque};

impl Replica {
    /// Asks the table for `locks`, and goes on with `what` once it has them.
    pub(super) fn ask(&mut self, txn: TxnId, locks: BTreeSet<Lock>, what: What, phase: Phase, cx: &mut Context<'_>) {
        if !self.sessions.contains_key(&txn) {
            if self.sessions.len() + self.prepared.len() >= SESSIONS_MAX || !cx.may_issue() {
                return cx.send(txn.gateway, Note::Refused { txn, session: None });
            }
            let name = cx.issue();
            self.sessions.insert(txn, Session { name, seen: cx.ticks, number: 0, asked: None });
        }
        let session = self.sessions.get_mut(&txn).expect("it was just made sure");
        session.seen = cx.ticks;
        if let What::Read { number, .. } = what {
            session.number = number;
        }
        session.asked = Some(Asked { missing: locks.clone(), what });
        if locks.is_empty() {
            return self.has_all(txn, cx);
        }
        work::add(locks.len());
        for lock in locks {
            if cx.rules.breaks(Planted::LocksWalked) {
                work::add(self.table.held(txn).filter(|held| *held == lock).count());
            }
            match self.table.request(txn, lock, phase) {
                Ok(outcomes) => self.carry_on(outcomes, cx),
                Err(refused) => {
                    cx.fx.trace(|| format!("{txn}: {refused}"));
                    cx.fx.count("quad.refused");
                    return self.refuse(txn, cx);
                }
            }
        }
    }

    /// Does what the table's outcomes ask for, and what those lead to.
    pub(super) fn carry_on(&mut self, outcomes: Vec<Outcome>, cx: &mut Context<'_>) {
        let mut outcomes = VecDeque::from(outcomes);
        while let Some(outcome) = outcomes.pop_front() {
            match outcome {
                Outcome::Wounded(txn) => {
                    cx.fx.count("quad.wounded");
                    outcomes.extend(self.drop_session(txn, cx));
                }
                Outcome::Granted(txn, lock) => {
                    let Some(session) = self.sessions.get_mut(&txn) else { continue };
                    let Some(asked) = &mut session.asked else { continue };
                    if asked.missing.remove(&lock) && asked.missing.is_empty() {
                        self.has_all(txn, cx);
                    }
                }
            }
        }
    }

    /// All locks asked for are held.
    fn has_all(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let session = self.sessions.get_mut(&txn).expect("only a session asks");
        let asked = session.asked.take().expect("something was asked for");
        match asked.what {
            What::Read { number, query } => load_rows(Job::Read { txn, number, session: session.name }, query, cx),
            What::Prepare { writes } => self.prepare(txn, writes, cx),
        }
    }

    /// Takes all from a transaction that is not prepared, and tells its gateway.
    pub(super) fn drop_session(&mut self, txn: TxnId, cx: &mut Context<'_>) -> Vec<Outcome> {
        let session = self.sessions.remove(&txn).map(|session| session.name);
        cx.send(txn.gateway, Note::Refused { txn, session });
        self.table.release(txn)
    }

    pub(super) fn refuse(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let outcomes = self.drop_session(txn, cx);
        self.carry_on(outcomes, cx);
    }

    pub(super) fn release(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        self.sessions.remove(&txn);
        let outcomes = self.table.release(txn);
        self.carry_on(outcomes, cx);
    }
}
