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
use std::sync::Arc;

impl Session {
    /// CREATE, ALTER or DROP of a quota; not within BEGIN, where ROLLBACK would be expected to undo it.
    pub(super) async fn change_quota(&self, kind: &StatementKind, command: &QuotaCommand) -> SqlResult<Outcome> {
        self.check_writable(kind)?;
        if matches!(self.state, State::Explicit(_)) {
            let message = format!("{} cannot run inside a transaction block", kind.name());
            return Err(SqlError::new(SqlState::ActiveSqlTransaction, message).with_hint("It takes effect at once. Run it outside BEGIN."));
        }
        let quotas = self.engine.quotas()?;
        quota::change(quotas, command).await?;
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
        // A statement that was cancelled or is late goes no further.
        let left = quota::run(quotas, &operations, || self.interrupt.check()).await?;
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
