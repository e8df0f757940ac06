//! EXPLAIN: the plan of a statement, and what it costs in trips between regions.
//!
//! ```text
//!   EXPLAIN                  the plan
//!   EXPLAIN (WAN)            rehearsed: run on what the nearest copy holds, its writes thrown away; each round with the trips that it would take
//!   EXPLAIN (ANALYZE)        run, as it would be without EXPLAIN; its rows are not shown
//!   EXPLAIN (ANALYZE, WAN)   run, each round with the trips that it took, whom it waited for, and for how long
//! ```
//!
//! Invariant: without ANALYZE nothing is changed, but that numbers of a sequence which a rehearsal is given are not given again.

mod advice;
mod wan;

use super::outcome::{Described, buffered};
use super::prepared::Prepared;
use super::{Company, Outcome, Session, State, Tag};
use crate::error::{SqlError, SqlResult};
use crate::executor::{Effect, ResultColumn, RowStream};
use crate::parser::{Explain, Statement};
use crate::txn::{Round, Trace, TransactionHandle};
use crate::types::{Datum, SqlType};
use futures::StreamExt;
use rhumb_commit::transaction::ReadMode;
use std::sync::Arc;
use std::time::Duration;

/// What was seen of a statement that ran, or was rehearsed.
struct Seen {
    rounds: Vec<Round>,
    /// What the client would have been told; none of a rehearsal.
    tag: Option<String>,
    took: Duration,
}

/// What a statement is explained for.
#[derive(Clone, Copy)]
struct Purpose {
    /// How it reads.
    mode: ReadMode,
    /// True if it is a transaction of its own.
    is_own: bool,
    /// True if it was run, and not rehearsed.
    is_run: bool,
}

impl Session {
    /// The rounds of the transaction count for the statement that is analyzed, if one is.
    pub(super) async fn note_rounds(&self, handle: &TransactionHandle) {
        if let Some(trace) = &self.trace {
            handle.trace(trace).await;
        }
    }

    /// What is known of an EXPLAIN before it runs.
    pub(super) async fn describe_explained(&mut self, prepared: &Prepared, explain: &Explain) -> SqlResult<Described> {
        let plan = self.plan_ahead(&explained(prepared, explain)).await?;
        Ok(Described { parameters: plan.parameters.clone(), columns: Some(columns()) })
    }

    /// Runs an EXPLAIN.
    pub(super) async fn explain(
        &mut self,
        prepared: &Prepared,
        explain: &Explain,
        parameters: &[Datum],
        company: Company,
    ) -> SqlResult<Outcome> {
        let explained = explained(prepared, explain);
        let is_own = company == Company::Alone && matches!(self.state, State::Idle);
        let mode = match (is_own, self.open_transaction()) {
            (false, Some(open)) => open.mode,
            (false, None) => self.batch_mode(),
            (true, _) => self.autocommit_mode(&explained, 0)?,
        };
        let purpose = Purpose { mode, is_own, is_run: explain.analyze };
        let seen = match (explain.analyze, explain.wan) {
            (true, _) => Some(self.analyze(&explained, parameters, is_own).await?),
            (false, true) => Some(self.rehearse(&explained, parameters, mode).await?),
            (false, false) => None,
        };
        let plan = match explained.plan() {
            Some(plan) => plan,
            None => self.plan_ahead(&explained).await?,
        };
        let mut lines = plan.lines(&self.engine)?;
        if let Some(seen) = &seen {
            if explain.wan {
                lines.extend(wan::lines(&self.home, self.facts.settings.commit_options(), &seen.rounds, purpose));
                lines.extend(advice::lines(self, &explained.statement.kind, &plan, &seen.rounds, purpose));
            }
            if let Some(tag) = &seen.tag {
                lines.push(format!("Result: {tag}"));
                lines.push(format!("Execution Time: {:.3} ms", seen.took.as_secs_f64() * 1_000.0));
            }
        }
        let rows = lines.into_iter().map(|line| vec![Datum::Utf8(Some(line))]).collect();
        Ok(Outcome::Rows { columns: columns(), rows: buffered(rows), tag: Tag::Fixed("EXPLAIN".into()) })
    }

    /// Runs a statement for good, and counts its rows.
    async fn analyze(&mut self, explained: &Prepared, parameters: &[Datum], is_own: bool) -> SqlResult<Seen> {
        let trace = Trace::new(self.engine.environment.clone());
        self.trace = Some(trace.clone());
        let since = self.engine.environment.elapsed();
        let result = self.run_to_end(explained, parameters, is_own).await;
        self.trace = None;
        Ok(Seen { tag: Some(result?), took: self.engine.environment.elapsed() - since, rounds: trace.rounds() })
    }

    async fn run_to_end(&mut self, explained: &Prepared, parameters: &[Datum], is_own: bool) -> SqlResult<String> {
        let outcome = match is_own {
            true => self.autocommit(explained, parameters).await?,
            false => self.run_in_transaction(explained, parameters).await?,
        };
        let tag = match outcome {
            Outcome::Rows { mut rows, tag, .. } => {
                let mut count = 0;
                while let Some(page) = self.next_page(&mut rows).await? {
                    count += page.len();
                }
                tag.text(count)
            }
            Outcome::Done(tag) => tag,
            Outcome::Copy(_) => return Err(SqlError::internal("COPY has no plan")),
        };
        if is_own {
            self.finish().await?;
        }
        Ok(tag)
    }

    /// Runs a statement on what the nearest copy holds, and throws away what it writes.
    async fn rehearse(&self, explained: &Prepared, parameters: &[Datum], mode: ReadMode) -> SqlResult<Seen> {
        let trace = Trace::new(self.engine.environment.clone());
        let nearby = if matches!(mode, ReadMode::Stale(_)) { mode } else { ReadMode::Optimistic };
        let since = self.engine.environment.elapsed();
        let handle = TransactionHandle::begin(&self.home, nearby).await?;
        handle.trace(&trace).await;
        let run = async {
            match self.run_plan(&handle, explained, parameters).await? {
                (_, Effect::Rows(rows)) => self.drain(rows).await,
                (_, Effect::Written { .. }) => Ok(()),
            }
        };
        let result = run.await;
        handle.rollback(result.is_err()).await;
        result.map(|()| Seen { tag: None, took: self.engine.environment.elapsed() - since, rounds: trace.rounds() })
    }

    async fn drain(&self, mut rows: RowStream) -> SqlResult<()> {
        while self.interrupt.within(async { rows.next().await.transpose() }).await?.is_some() {}
        Ok(())
    }
}

/// The statement that is explained.
fn explained(prepared: &Prepared, explain: &Explain) -> Arc<Prepared> {
    let statement = Statement { kind: explain.kind.clone(), as_of: prepared.statement.as_of.clone() };
    Prepared::new(statement, prepared.hints.clone())
}

fn columns() -> Arc<[ResultColumn]> {
    [ResultColumn { name: "QUERY PLAN".into(), ty: SqlType::Text }].into()
}
