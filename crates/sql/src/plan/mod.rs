//! From a parsed statement to something that runs: the fast path for single tables, the query engine for the rest.
//!
//! ```text
//!   statement ─ rewrite ─┬─ INSERT … VALUES ───────────────→ insert
//!                        ├─ UPDATE, DELETE of one table ───→ modify ─┐
//!                        ├─ SELECT of one table ───────────→ select ─┤ access (WHERE → keys), evaluate (expressions)
//!                        ├─ SELECT of no table ────────────→ singleton; with acquire() or release() → tokens
//!                        ├─ CALL ──────────────────────────→ call → each statement of the procedure, its parameters bound
//!                        └─ anything else ─────────────────→ query (DataFusion) → source → access
//! ```
//! A plan holds no transaction: it is made once per statement text, kept by its session, and run in any transaction that
//! still sees the same tables.

mod access;
mod analyze;
mod arguments;
mod assignment;
mod call;
mod conflict;
mod defaults;
mod evaluate;
mod expression;
mod gathered;
mod insert;
mod keys;
mod modify;
mod operations;
mod parameters;
mod query;
mod resolver;
mod result;
mod returning;
mod rewrite;
mod select;
mod singleton;
mod source;
mod tokens;

pub use arguments::procedure_name;
pub use call::{CallPlan, check as check_procedure};
pub use defaults::Defaults;
pub use gathered::Gathered;
pub use modify::delete_all;
pub use operations::{Steps, Unfit};
pub use result::{Effect, ResultColumn, RowStream};
pub use rewrite::unqualified;
pub use tokens::TokensPlan;

use crate::context::Facts;
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult};
use crate::parser::{StatementKind, names};
use crate::pg_catalog;
use crate::schema::TableDescriptor;
use crate::txn::{Active, TransactionHandle};
use crate::types::{Datum, SqlType};
use datafusion::sql::sqlparser::ast;
use rhumb_commit::one_shot::execution::Output;
use std::sync::Arc;

/// A statement that is ready to run.
#[derive(Debug)]
pub struct Plan {
    /// The tables it was made for, as they were then.
    tables: Vec<Arc<TableDescriptor>>,
    /// True if it is good for one run only.
    once: bool,
    /// The types of its parameters.
    pub parameters: Vec<SqlType>,
    /// The columns of its rows; `None` if it returns none.
    pub columns: Option<Arc<[ResultColumn]>>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Query(query::QueryPlan),
    Select(select::SelectPlan),
    Singleton(singleton::SingletonPlan),
    Insert(insert::InsertPlan),
    Modify(modify::ModifyPlan),
    Call(CallPlan),
}

/// What planning needs.
#[derive(Clone, Copy)]
pub struct Planning<'a> {
    /// The query engine.
    pub engine: &'a Engine,
    /// What the session says about itself.
    pub facts: &'a Facts,
    /// The types that the client gave to parameters.
    pub hints: &'a [Option<SqlType>],
}

/// What running needs.
#[derive(Clone, Copy)]
pub struct Running<'a> {
    /// The query engine.
    pub engine: &'a Arc<Engine>,
    /// The transaction to run in.
    pub handle: &'a TransactionHandle,
    /// The values of the parameters.
    pub parameters: &'a [Datum],
}

impl Plan {
    /// Plans a statement that reads or writes rows, with the tables that the transaction sees. Error 54011 if the client could not
    /// be told of all its columns.
    pub async fn make(cx: Planning<'_>, active: &mut Active, kind: &StatementKind) -> SqlResult<Plan> {
        let plan = Plan::of_any_width(cx, active, kind).await?;
        result::check_columns(plan.columns.as_ref().map_or(0, |columns| columns.len()))?;
        Ok(plan)
    }

    async fn of_any_width(cx: Planning<'_>, active: &mut Active, kind: &StatementKind) -> SqlResult<Plan> {
        match kind {
            StatementKind::Query { query, .. } => {
                let mut query = pg_catalog::simplified(query)?;
                names::name_columns(&mut query);
                rewrite::rewrite(&mut query, cx.facts)?;
                if let Some(plan) = singleton::plan(cx, &query)? {
                    return Ok(plan);
                }
                if let Some(plan) = select::plan(cx, active, &query).await? {
                    return Ok(plan);
                }
                query::plan(cx, active, ast::Statement::Query(query)).await
            }
            StatementKind::Explain(statement) => {
                let mut statement = (**statement).clone();
                rewrite::rewrite(&mut statement, cx.facts)?;
                query::plan(cx, active, statement).await
            }
            StatementKind::Insert(insert) => {
                let mut insert = insert.clone();
                rewrite::rewrite(&mut insert, cx.facts)?;
                insert::plan(cx, active, *insert).await
            }
            StatementKind::Update(update) => {
                let mut update = update.clone();
                rewrite::rewrite(&mut update, cx.facts)?;
                modify::plan_update(cx, active, *update).await
            }
            StatementKind::Delete(delete) => {
                let mut delete = delete.clone();
                rewrite::rewrite(&mut delete, cx.facts)?;
                modify::plan_delete(cx, active, *delete).await
            }
            StatementKind::Call { name, arguments } => call::plan(cx, active, name, arguments).await,
            other => Err(SqlError::internal(format!("{} has no plan", other.name()))),
        }
    }

    /// True if the transaction sees the tables that the plan was made for.
    pub async fn is_current(&self, active: &mut Active, database: &str) -> bool {
        if self.once {
            return false;
        }
        if let Body::Call(call) = &self.body
            && !call.is_current(active, database).await
        {
            return false;
        }
        for table in &self.tables {
            match active.catalog.table(active.txn.as_mut(), database, &table.name).await {
                Ok(current) if Arc::ptr_eq(&current, table) || current == *table => {}
                _ => return false,
            }
        }
        true
    }

    /// The procedure that it calls, if it is a CALL.
    pub fn call(&self) -> Option<&CallPlan> {
        if let Body::Call(call) = &self.body { Some(call) } else { None }
    }

    /// Whether it may become [operations](Self::operations), as far as that can be told before its parameters are known.
    pub fn fit(&self) -> Result<(), Unfit> {
        match &self.body {
            Body::Select(plan) => plan.fit(),
            Body::Insert(plan) => plan.fit(),
            Body::Modify(plan) => plan.fit(),
            Body::Query(_) | Body::Singleton(_) | Body::Call(_) => Err(operations::CONDITIONAL),
        }
    }

    /// What it does as operations that a commit carries out, if that can be said without reading anything.
    pub fn operations(&self, cx: Running<'_>) -> SqlResult<Result<Steps, Unfit>> {
        if let Err(unfit) = self.fit() {
            return Ok(Err(unfit));
        }
        match &self.body {
            Body::Select(plan) => plan.operations(cx),
            Body::Insert(plan) => plan.operations(cx),
            Body::Modify(plan) => plan.operations(cx),
            Body::Query(_) | Body::Singleton(_) | Body::Call(_) => Ok(Err(operations::CONDITIONAL)),
        }
    }

    /// What its operations did, given what they returned. All is committed by then: only a row that is damaged is an error.
    pub fn operated(&self, cx: Running<'_>, steps: Steps, outputs: Vec<Output>) -> SqlResult<Effect> {
        let rows = steps.rows(outputs)?;
        match &self.body {
            Body::Select(plan) => plan.read(cx, rows),
            Body::Insert(plan) => Ok(plan.operated(rows)),
            Body::Modify(plan) => Ok(plan.operated(rows)),
            Body::Query(_) | Body::Singleton(_) | Body::Call(_) => Err(SqlError::internal("it has no operations of its own")),
        }
    }

    /// Runs it.
    pub async fn run(&self, cx: Running<'_>) -> SqlResult<Effect> {
        match &self.body {
            Body::Query(plan) => {
                let columns = self.columns.clone().expect("a query returns rows");
                plan.run(cx, columns).await.map(Effect::Rows)
            }
            Body::Select(plan) => plan.run(cx),
            Body::Singleton(plan) => plan.run(cx),
            Body::Insert(plan) => plan.run(cx).await,
            Body::Modify(plan) => plan.run(cx).await,
            Body::Call(plan) => plan.run(cx).await,
        }
    }
}
