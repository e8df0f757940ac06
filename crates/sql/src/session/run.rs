//! Running a statement in whatever transaction the session is in.

use super::outcome::outcome;
use super::prepared::{Prepared, check_parameters};
use super::{Company, Described, Open, Outcome, Session, State};
use crate::error::{SqlError, SqlResult};
use crate::executor::{Effect, Gathered, Plan, RowStream, Running};
use crate::parser::StatementKind;
use crate::planner::{self, Planning};
use crate::storage::Row;
use crate::txn::TransactionHandle;
use crate::types::Datum;
use futures::StreamExt;
use rhumb_commit::transaction::ReadMode;
use std::sync::Arc;

impl Session {
    /// Runs a statement. An error has already failed the transaction that it ran in.
    pub async fn execute(&mut self, prepared: &Prepared, parameters: &[Datum], company: Company) -> SqlResult<Outcome> {
        self.restart_clock();
        self.drawn.begin();
        let result = match self.check_not_failed(&prepared.statement.kind) {
            Ok(()) => self.dispatch(prepared, parameters, company).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &result {
            if error.is_retryable() {
                prepared.runs();
            }
            self.fail(error).await;
        }
        result
    }

    async fn dispatch(&mut self, prepared: &Prepared, parameters: &[Datum], company: Company) -> SqlResult<Outcome> {
        let done = |tag: &str| Ok(Outcome::Done(tag.to_string()));
        match &prepared.statement.kind {
            StatementKind::Transaction(command) => self.control(command, prepared.statement.as_of.as_deref()).await,
            StatementKind::Set { name, value, local } => {
                self.join_company(company);
                self.change_setting(name, value.as_deref(), *local)?;
                done("SET")
            }
            StatementKind::SetConfig { name, value, local } => {
                self.join_company(company);
                self.change_setting(name, Some(value), *local)?;
                self.shown(name, "set_config")
            }
            StatementKind::Nothing(tag) => done(tag),
            StatementKind::Reset(Some(name)) => {
                self.join_company(company);
                self.change_setting(name, None, false)?;
                done("RESET")
            }
            StatementKind::Reset(None) => {
                self.reset_settings();
                done("RESET")
            }
            StatementKind::Discard => {
                self.reset_settings();
                self.drawn.forget();
                done("DISCARD ALL")
            }
            StatementKind::DiscardSequences => {
                self.drawn.forget();
                done("DISCARD SEQUENCES")
            }
            StatementKind::Show(name) => self.show(name),
            StatementKind::ShowRegions => Ok(self.show_regions()),
            StatementKind::ShowQuotas => self.show_quotas().await,
            StatementKind::Quota(command) => self.change_quota(&prepared.statement.kind, command).await,
            StatementKind::Tokens(query) => self.run_tokens(prepared, query, parameters).await,
            // The connection holds the prepared statements of its client and has forgotten them by now.
            StatementKind::Deallocate(_) => done("DEALLOCATE"),
            kind @ (StatementKind::Prepare { .. } | StatementKind::Execute { .. }) => {
                Err(SqlError::internal(format!("the connection has not done {}", kind.name())))
            }
            StatementKind::Copy(copy) => self.begin_copy(copy, company).await,
            StatementKind::Explain(explain) => Box::pin(self.explain(prepared, explain, parameters, company)).await,
            StatementKind::Create(_)
            | StatementKind::AlterDatabase { .. }
            | StatementKind::AlterTable(_)
            | StatementKind::RenameIndex { .. }
            | StatementKind::Sequence(_)
            | StatementKind::AlterIdentity { .. }
            | StatementKind::Drop { .. }
            | StatementKind::DropProcedure { .. }
            | StatementKind::Truncate { .. } => self.run_ddl(&prepared.statement.kind, company).await,
            StatementKind::Query { .. }
            | StatementKind::Numbers(_)
            | StatementKind::Call { .. }
            | StatementKind::Insert(_)
            | StatementKind::Update(_)
            | StatementKind::Delete(_) => {
                if company == Company::Alone && matches!(self.state, State::Idle) {
                    self.autocommit(prepared, parameters).await
                } else {
                    self.run_in_transaction(prepared, parameters).await
                }
            }
        }
    }

    /// What is known of a statement before it runs.
    pub async fn describe(&mut self, prepared: &Prepared) -> SqlResult<Described> {
        self.check_not_failed(&prepared.statement.kind)?;
        self.restart_clock();
        match &prepared.statement.kind {
            StatementKind::Show(name) => Ok(Described { parameters: Vec::new(), columns: Some(super::show::columns_of_show(name)) }),
            StatementKind::SetConfig { .. } => {
                Ok(Described { parameters: Vec::new(), columns: Some(super::show::columns_of_show("set_config")) })
            }
            StatementKind::ShowRegions => Ok(Described { parameters: Vec::new(), columns: Some(super::show::columns_of_regions()) }),
            StatementKind::ShowQuotas => Ok(Described { parameters: Vec::new(), columns: Some(super::show::columns_of_quotas()) }),
            StatementKind::Tokens(query) => {
                let plan = self.plan_tokens(prepared, query)?;
                Ok(Described { parameters: plan.parameters.clone(), columns: Some(plan.columns.clone()) })
            }
            StatementKind::Explain(explain) => self.describe_explained(prepared, explain).await,
            StatementKind::Query { .. }
            | StatementKind::Numbers(_)
            | StatementKind::Call { .. }
            | StatementKind::Insert(_)
            | StatementKind::Update(_)
            | StatementKind::Delete(_) => {
                if let Some(told) = prepared.told() {
                    return Ok(told.clone());
                }
                let plan = self.plan_ahead(prepared).await?;
                Ok(prepared.tell(Described { parameters: plan.parameters.clone(), columns: plan.columns.clone() }).clone())
            }
            _ => Ok(Described::default()),
        }
    }

    /// Plans a statement that does not run yet: in the open transaction, whose tables it may have made, or a passing one.
    pub(super) async fn plan_ahead(&mut self, prepared: &Prepared) -> SqlResult<Arc<Plan>> {
        if let Some(handle) = self.open_transaction().and_then(|open| open.handle.clone()) {
            return self.interrupt.within(self.plan(&handle, prepared)).await;
        }
        // What this region's replica shows of the tables will do: the plan is checked when it runs.
        match self.plan_passing(ReadMode::Optimistic, prepared).await {
            Err(error) if error.is_retryable() => self.plan_passing(ReadMode::Snapshot, prepared).await,
            plan => plan,
        }
    }

    /// Plans a statement in a transaction that ends with that.
    async fn plan_passing(&self, mode: ReadMode, prepared: &Prepared) -> SqlResult<Arc<Plan>> {
        let handle = self.interrupt.within(TransactionHandle::begin_repeatable(&self.home, mode)).await?;
        let plan = self.interrupt.within(self.plan(&handle, prepared)).await;
        handle.rollback(plan.as_ref().is_err_and(SqlError::is_retryable)).await;
        plan
    }

    /// The plan of a statement as this transaction sees its tables.
    pub(super) async fn plan(&self, handle: &TransactionHandle, prepared: &Prepared) -> SqlResult<Arc<Plan>> {
        let mut active = handle.lock().await?;
        active.txn.bound_waits(self.longest_wait());
        if let Some(plan) = prepared.plan()
            && plan.is_current(&mut active, &self.facts.database).await
        {
            return prepared.check_told(&plan).map(|()| plan);
        }
        let cx = Planning { engine: &self.engine, facts: &self.facts, hints: &prepared.hints };
        let mut made = planner::plan(cx, &mut active, &prepared.statement.kind).await;
        if let Err(error) = &made
            && (error.may_depend_on_tables() || error.may_depend_on_rows())
            && active.catalog.may_be_stale()
        {
            active.catalog.invalidate();
            made = planner::plan(cx, &mut active, &prepared.statement.kind).await;
        }
        let plan = Arc::new(made?);
        prepared.set_plan(Some(plan.clone()));
        prepared.check_told(&plan).map(|()| plan)
    }

    /// Runs a statement up to, but not including, the commit.
    pub(super) async fn run_plan(
        &self,
        handle: &TransactionHandle,
        prepared: &Prepared,
        parameters: &[Datum],
    ) -> SqlResult<(Arc<Plan>, Effect)> {
        self.interrupt
            .within(async {
                let plan = self.plan(handle, prepared).await?;
                check_parameters(parameters, &plan.parameters)?;
                let kind = &prepared.statement.kind;
                if kind.writes() || kind.locks_rows() {
                    handle.lock().await?.txn.may_write();
                }
                prepared.runs();
                let effect = plan.run(Running { engine: &self.engine, handle, drawn: &self.drawn, parameters }).await?;
                Ok((plan, effect))
            })
            .await
    }

    /// Runs a statement in the transaction that is open; outside BEGIN one is opened for it and those that follow.
    pub(super) async fn run_in_transaction(&mut self, prepared: &Prepared, parameters: &[Datum]) -> SqlResult<Outcome> {
        let kind = &prepared.statement.kind;
        if prepared.statement.as_of.is_some() {
            let error = SqlError::unsupported("AS OF SYSTEM TIME inside a transaction is not supported");
            return Err(error.with_hint("Write BEGIN AS OF SYSTEM TIME '…'."));
        }
        let (handle, mode) = self.transaction().await?;
        self.note_rounds(&handle).await;
        let locks = kind.locks_rows();
        if mode.is_read_only() && (locks || kind.writes()) {
            return Err(SqlError::read_only(kind.name()));
        }
        if locks && mode.is_optimistic() {
            handle.lock().await?.txn.set_mode(ReadMode::Locking)?;
        }
        let (plan, effect) = match self.run_plan(&handle, prepared, parameters).await {
            Err(error) if !mode.is_read_only() => return Err(self.validated(&handle, error).await),
            result => result?,
        };
        let outcome = match effect {
            // Rows that are to be locked are read now, in the mode that locks them.
            Effect::Rows(rows) if locks => outcome(kind, &plan, Effect::Rows(self.gathered(rows).await?)),
            effect => outcome(kind, &plan, effect),
        };
        if locks && mode.is_optimistic() {
            handle.lock().await?.txn.set_mode(mode)?;
        }
        Ok(outcome)
    }

    /// The open transaction, begun now if it was not yet, and how it reads.
    pub(super) async fn transaction(&mut self) -> SqlResult<(TransactionHandle, ReadMode)> {
        self.join_company(Company::Batch);
        let batch_mode = self.batch_mode();
        let is_implicit = matches!(self.state, State::Implicit(_));
        let open = self.open_transaction().ok_or_else(SqlError::in_failed_transaction)?;
        if let Some(handle) = &open.handle {
            return Ok((handle.clone(), open.mode));
        }
        if is_implicit {
            // A SET before it may have said how.
            open.mode = batch_mode;
        }
        let mode = open.mode;
        let handle = self.interrupt.within(TransactionHandle::begin(&self.home, mode)).await?;
        self.open_transaction().ok_or_else(SqlError::in_failed_transaction)?.handle = Some(handle.clone());
        Ok((handle, mode))
    }

    /// Outside BEGIN, what stands in company is one transaction with what follows. It begins when rows are asked for.
    fn join_company(&mut self, company: Company) {
        if company == Company::Batch && matches!(self.state, State::Idle) {
            self.state = State::Implicit(Open::new(self.batch_mode(), None, self.facts.settings.clone()));
        }
    }

    /// The next rows of a result; `None` at the end. An error has already failed the transaction.
    pub async fn next_page(&mut self, rows: &mut RowStream) -> SqlResult<Option<Vec<Row>>> {
        let page = self.interrupt.within(async { rows.next().await.transpose() }).await;
        if let Err(error) = &page {
            // What was interrupted may hold the transaction, which is to be rolled back.
            *rows = futures::stream::empty().boxed();
            self.fail(error).await;
        }
        page
    }

    /// The same rows, all of them here.
    pub(super) async fn gathered(&self, mut rows: RowStream) -> SqlResult<RowStream> {
        let mut gathered = Gathered::to_lock(&self.engine);
        while let Some(page) = self.interrupt.within(async { rows.next().await.transpose() }).await? {
            gathered.push(page)?;
        }
        Ok(gathered.into_stream())
    }

    fn check_not_failed(&self, kind: &StatementKind) -> SqlResult<()> {
        let refused = matches!(self.state, State::Failed(_)) && !kind.ends_failure();
        if refused { Err(SqlError::in_failed_transaction()) } else { Ok(()) }
    }
}
