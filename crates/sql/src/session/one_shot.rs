//! Statements that travel: where the commit protocol carries out operations, those of one text, or a statement alone, become one
//! transaction that reads nothing beforehand.
//!
//! ```text
//!   BEGIN; UPDATE …; INSERT …; SELECT …; COMMIT      in one text, or without BEGIN and COMMIT
//!   CALL pay(10, 1, 2)                               the statements of the procedure in its place
//!      └─▶ each as operations, those on one key together ─▶ commit ─▶ what each returned, statement by statement
//!      └─▶ one of them has no operations: they run one after the other, and the commit validates what they read
//! ```
//!
//! Nothing that others do makes such a transaction fail; it fails if it cannot be done at all: a key is taken, a sum is out of
//! range. Only the tables may turn out to be others than it was planned for, and then it runs again.

use super::autocommit::AUTOCOMMIT_ATTEMPTS_MAX;
use super::outcome::{Outcome, outcome};
use super::prepared::{Prepared, check_parameters};
use super::savepoints::Failed;
use super::{Session, State};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::Running;
use crate::one_shot::{Merged, Misfit, Part, Unmerged, returned};
use crate::parser::{AccessMode, StatementKind, Transaction};
use crate::txn::TransactionHandle;
use crate::types::Datum;
use rhumb_commit::transaction::{Operated, ReadMode};
use std::sync::Arc;

/// Statements with the values of their parameters.
type Bound<'a> = (&'a Prepared, &'a [Datum]);

/// What became of an attempt.
enum Attempt {
    /// What the client is told of each statement.
    Done(Vec<Outcome>),
    /// A statement failed, and nothing was done.
    Failed(SqlError),
    /// They are no such transaction.
    Unfit(Misfit),
}

impl Session {
    /// Runs the statements of a text as one transaction of operations; `None` if they are none.
    pub async fn one_shot(&mut self, statements: &[Arc<Prepared>]) -> SqlResult<Option<Vec<Outcome>>> {
        if statements.len() < 2 || !self.may_operate() {
            return Ok(None);
        }
        let kinds: Vec<&StatementKind> = statements.iter().map(|prepared| &prepared.statement.kind).collect();
        let is_block = match kinds.as_slice() {
            [StatementKind::Transaction(Transaction::Begin(access)), .., StatementKind::Transaction(Transaction::Commit)] => {
                if *access == AccessMode::ReadOnly {
                    return Ok(None);
                }
                true
            }
            _ => false,
        };
        let body = if is_block { &statements[1..statements.len() - 1] } else { statements };
        if statements.iter().any(|prepared| prepared.statement.as_of.is_some())
            || !body.iter().any(|prepared| prepared.statement.kind.writes())
        {
            return Ok(None);
        }
        self.restart_clock();
        self.drawn.begin();
        let bound: Vec<Bound<'_>> = body.iter().map(|prepared| (&**prepared, &[][..])).collect();
        let outcomes = match self.operate(&bound).await? {
            Attempt::Done(outcomes) => outcomes,
            Attempt::Unfit(_) => {
                self.drawn.begin_again();
                return Ok(None);
            }
            Attempt::Failed(error) => {
                if is_block {
                    // COMMIT was not reached.
                    self.state = State::Failed(Failed::Ended { before: self.facts.settings.clone(), conflict: error.is_retryable() });
                }
                return Err(error);
            }
        };
        let done = |tag: &str| Outcome::Done(tag.to_owned());
        let begin = is_block.then(|| done("BEGIN"));
        let commit = is_block.then(|| done("COMMIT"));
        Ok(Some(begin.into_iter().chain(outcomes).chain(commit).collect()))
    }

    /// Runs a statement that stands alone as operations; `None` if it has none. A CALL has some, or fails.
    pub(super) async fn one_shot_statement(&mut self, prepared: &Prepared, parameters: &[Datum]) -> SqlResult<Option<Outcome>> {
        let kind = &prepared.statement.kind;
        if !kind.writes() || !self.may_operate() {
            return Ok(None);
        }
        match self.operate(&[(prepared, parameters)]).await? {
            Attempt::Done(outcomes) => Ok(outcomes.into_iter().next()),
            Attempt::Failed(error) | Attempt::Unfit(Some(error)) => Err(error),
            Attempt::Unfit(None) => Ok(None),
        }
    }

    /// True if statements may become operations now.
    pub(super) fn may_operate(&self) -> bool {
        matches!(self.state, State::Idle) && self.home.gateway().takes_operations() && !self.begins_read_only()
    }

    async fn operate(&mut self, statements: &[Bound<'_>]) -> SqlResult<Attempt> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            self.drawn.begin_again();
            match self.operate_once(statements).await {
                Err(error) if error.is_retryable() && attempt < AUTOCOMMIT_ATTEMPTS_MAX => self.back_off(attempt).await?,
                result => return result,
            }
        }
    }

    async fn operate_once(&mut self, statements: &[Bound<'_>]) -> SqlResult<Attempt> {
        let handle = self.interrupt.within(TransactionHandle::begin_repeatable(&self.home, ReadMode::Optimistic)).await?;
        self.note_rounds(&handle).await;
        let parts = match self.interrupt.within(self.parts(&handle, statements)).await {
            Ok(Ok(parts)) => parts,
            // A table is another than was known here: what it is now is known the next time.
            Err(error) if error.is_retryable() => {
                handle.rollback(true).await;
                return Err(error);
            }
            // No other way is left to it, on which it would turn out that what refuses it is another by now.
            Err(error) if is_call(statements) && (error.may_depend_on_rows() || error.may_depend_on_tables()) => {
                handle.validate(self.facts.settings.commit_options()).await?;
                return Ok(Attempt::Failed(error));
            }
            unfit => {
                handle.rollback(false).await;
                return Ok(match unfit {
                    Ok(misfit) => Attempt::Unfit(misfit.err().flatten().filter(|_| is_call(statements))),
                    // It would not be told again: nobody cancels twice.
                    Err(error) if error.state() == SqlState::QueryCanceled => Attempt::Failed(error),
                    // What else is wrong with a statement it is told where it runs by itself.
                    Err(error) => Attempt::Unfit(is_call(statements).then_some(error)),
                });
            }
        };
        let merged = match Merged::of(parts.iter().map(|part| part.steps.operations())) {
            Ok(merged) => merged,
            Err(Unmerged::Nothing) if is_call(statements) => {
                handle.validate(self.facts.settings.commit_options()).await?;
                return Ok(Attempt::Done(vec![Outcome::Done("CALL".into())]));
            }
            Err(unmerged) => {
                handle.rollback(false).await;
                return Ok(Attempt::Unfit(is_call(statements).then(|| unmerged.error(self.home.protocol()))));
            }
        };
        let outputs = match handle.operate(merged.operations).await? {
            Operated::Done(_, outputs) => outputs,
            Operated::Failed { place, why } => {
                let (part, step) = merged.places[place];
                return Ok(Attempt::Failed(parts[part].steps.blame(step, &why)));
            }
        };
        // It is committed: too late to be late.
        self.interrupt.disarm();
        let returned = returned(parts.len(), merged.places, outputs);
        let mut outcomes: Vec<Outcome> = statements.iter().map(|_| Outcome::Done("CALL".into())).collect();
        for (Part { statement, plan, parameters, steps }, outputs) in parts.into_iter().zip(returned) {
            let kind = &statements[statement].0.statement.kind;
            // What the statements of a procedure show nobody sees.
            if !matches!(kind, StatementKind::Call { .. }) {
                let cx = Running { engine: &self.engine, handle: &handle, drawn: &self.drawn, parameters: &parameters };
                outcomes[statement] = outcome(kind, &plan, plan.operated(cx, steps, outputs)?);
            }
        }
        Ok(Attempt::Done(outcomes))
    }

    /// The operations of each statement, those of procedures in their place; `Err` within if one has none.
    async fn parts(&self, handle: &TransactionHandle, statements: &[Bound<'_>]) -> SqlResult<Result<Vec<Part>, Misfit>> {
        let mut parts = Vec::with_capacity(statements.len());
        for (statement, (prepared, parameters)) in statements.iter().enumerate() {
            let is_query = matches!(
                prepared.statement.kind,
                StatementKind::Query { .. }
                    | StatementKind::Call { .. }
                    | StatementKind::Insert(_)
                    | StatementKind::Update(_)
                    | StatementKind::Delete(_)
            );
            if !is_query {
                return Ok(Err(None));
            }
            let plan = self.plan(handle, prepared).await?;
            check_parameters(parameters, &plan.parameters)?;
            let cx = Running { engine: &self.engine, handle, drawn: &self.drawn, parameters };
            match Part::of(statement, &plan, cx, self.home.protocol()).await? {
                Ok(of_statement) => parts.extend(of_statement),
                Err(misfit) => return Ok(Err(misfit)),
            }
        }
        Ok(Ok(parts))
    }
}

/// True for a CALL alone, which is a transaction of operations or none at all.
fn is_call(statements: &[Bound<'_>]) -> bool {
    matches!(statements, [(prepared, _)] if matches!(prepared.statement.kind, StatementKind::Call { .. }))
}
