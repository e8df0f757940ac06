//! Statements about quotas. None is part of a transaction: what they do takes effect at once and stays, whatever becomes
//! of the transaction around them, as with PostgreSQL's `nextval()`.
//!
//! So nothing here is run again: an error is reported as it is, with the calls that were done before it. Nor is an operation under way
//! given up by a cancel request or a deadline, for then nobody would know whether its tokens were taken; the cluster bounds how long
//! it waits. They take effect before the next call, and after the last one not at all.

use super::outcome::buffered;
use super::prepared::{Prepared, check_parameters};
use super::{Outcome, Session, State, Tag};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::{QuotaCommand, StatementKind};
use crate::planner::{Planning, plan_tokens};
use crate::quota;
use crate::quota::TokensPlan;
use crate::types::Datum;
use datafusion::sql::sqlparser::ast;
use rhumb_quota::operation::{Action, Operation};
use rhumb_quota::refusal::Refusal;
use std::sync::Arc;

/// The calls that an error names of those that were done before it. They are done from left to right, so their number says the rest.
const CALLS_SHOWN_MAX: usize = 20;

impl Session {
    /// CREATE, ALTER or DROP of a quota; not within BEGIN, where ROLLBACK would be expected to undo it.
    pub(super) async fn change_quota(&self, kind: &StatementKind, command: &QuotaCommand) -> SqlResult<Outcome> {
        self.check_writable(kind)?;
        if matches!(self.state, State::Explicit(_)) {
            let message = format!("{} cannot run inside a transaction block", kind.name());
            return Err(SqlError::new(SqlState::ActiveSqlTransaction, message).with_hint("It takes effect at once. Run it outside BEGIN."));
        }
        let quotas = self.engine.quotas()?;
        let result = match command {
            QuotaCommand::Create(definition) => {
                let created = quotas.create(quota::name(&definition.name)?, quota::spec(definition)?).await;
                created.or_else(|refusal| pardon(refusal, definition.if_not_exists, |refusal| matches!(refusal, Refusal::Exists(_))))
            }
            QuotaCommand::SetLimit { name, limit } => quotas.set_limit(quota::name(name)?, quota::limit(limit)?).await,
            QuotaCommand::Drop { name, if_exists } => {
                let dropped = quotas.drop(quota::name(name)?).await;
                dropped.or_else(|refusal| pardon(refusal, *if_exists, |refusal| matches!(refusal, Refusal::Unknown(_))))
            }
        };
        result?;
        Ok(Outcome::Done(kind.name().into()))
    }

    /// The plan of a SELECT of acquire() and release().
    pub(super) fn plan_tokens(&self, prepared: &Prepared, query: &ast::Query) -> SqlResult<Arc<TokensPlan>> {
        let cx = Planning { engine: &self.engine, facts: &self.facts, hints: &prepared.hints };
        prepared.tokens(|| plan_tokens(cx, query))
    }

    /// A SELECT of acquire() and release(): the calls one after another, from left to right, up to the first that is refused.
    pub(super) async fn run_tokens(&mut self, prepared: &Prepared, query: &ast::Query, parameters: &[Datum]) -> SqlResult<Outcome> {
        self.check_writable(&prepared.statement.kind)?;
        let quotas = self.engine.quotas()?;
        let plan = self.plan_tokens(prepared, query)?;
        check_parameters(parameters, &plan.parameters)?;
        let (operations, row) = plan.evaluate(&self.engine, parameters)?;
        let mut left = Vec::new();
        for operation in &operations {
            let before = &operations[..left.len()];
            // A statement that was cancelled or is late goes no further.
            self.interrupt.check().map_err(|error| after(before, error))?;
            let outcome = quotas.run(vec![operation.clone()]).await.pop().expect("an outcome for each operation");
            left.push(outcome.map_err(|refusal| after(before, refusal.into()))?.left);
        }
        // The tokens have moved, so the client is to be told.
        self.interrupt.disarm();
        let rows = buffered(vec![plan.answered(row, &left)]);
        Ok(Outcome::Rows { columns: plan.columns.clone(), rows, tag: Tag::Counted("SELECT") })
    }

    fn check_writable(&self, kind: &StatementKind) -> SqlResult<()> {
        let read_only = match &self.state {
            State::Explicit(open) | State::Implicit(open) => open.mode.is_read_only(),
            State::Idle | State::Failed(_) => self.begins_read_only(),
        };
        if read_only { Err(SqlError::read_only(kind.name())) } else { Ok(()) }
    }
}

/// IF EXISTS and IF NOT EXISTS: what they ask for is so already.
fn pardon(refusal: Refusal, asked_for: bool, is_so: impl FnOnce(&Refusal) -> bool) -> Result<(), Refusal> {
    if asked_for && is_so(&refusal) { Ok(()) } else { Err(refusal) }
}

/// The error of a call before which these calls of the same statement were done.
fn after(done: &[Operation], error: SqlError) -> SqlError {
    let shown: Vec<String> = done.iter().take(CALLS_SHOWN_MAX).map(shown).collect();
    let (shown, rest) = (shown.join(", "), if done.len() > CALLS_SHOWN_MAX { ", …" } else { "" });
    match done.len() {
        0 => error,
        1 => error.with_detail(format!("The call before it in the same statement was done: {shown}.")),
        calls => error.with_detail(format!("The {calls} calls before it in the same statement were done: {shown}{rest}.")),
    }
}

fn shown(Operation { action, quota, amount, .. }: &Operation) -> String {
    let function = match action {
        Action::Acquire => "acquire",
        Action::Release => "release",
        Action::Free => "free",
    };
    format!("{function}('{}', {amount})", quota.as_str().replace('\'', "''"))
}
