//! Running what was planned: the fast path for single tables, the query engine for the rest.
//!
//! ```text
//!   Plan ─┬─ insert ──┐
//!         ├─ modify ──┤ access (conditions → keys), keys (keys → rows), evaluate (expressions)
//!         ├─ select ──┘
//!         ├─ singleton
//!         ├─ call → each statement of the procedure
//!         └─ query (DataFusion) → source → access
//! ```
//! A plan holds no transaction: it is made once per statement text, kept by its session, and run in any transaction that
//! still sees the same tables. Where the commit can carry a statement out it is told as [`operations`] instead.

pub mod access;
pub mod assignment;
pub mod call;
pub mod conflict;
pub mod conversion;
pub mod defaults;
pub mod evaluate;
mod gathered;
pub mod insert;
mod keys;
pub mod modify;
pub mod operations;
pub mod query;
pub mod reshape;
pub mod result;
pub mod returning;
pub mod select;
pub mod singleton;
pub mod source;
pub mod writer;

pub use call::CallPlan;
pub use defaults::Defaults;
pub use evaluate::Compiled;
pub use gathered::Gathered;
pub use modify::delete_all;
pub use operations::{Steps, Unfit};
pub use result::{Effect, ResultColumn, RowStream};
pub use writer::Writer;

use crate::engine::Engine;
use crate::error::{SqlError, SqlResult};
use crate::schema::TableDescriptor;
use crate::txn::{Active, TransactionHandle};
use crate::types::{Datum, SqlType};
use insert::InsertPlan;
use modify::ModifyPlan;
use query::QueryPlan;
use rhumb_commit::one_shot::execution::Output;
use select::SelectPlan;
use singleton::SingletonPlan;
use std::sync::Arc;

/// A statement that is ready to run.
#[derive(Debug)]
pub struct Plan {
    /// The tables it was made for, as they were then.
    pub tables: Vec<Arc<TableDescriptor>>,
    /// True if it is good for one run only.
    pub once: bool,
    /// The types of its parameters.
    pub parameters: Vec<SqlType>,
    /// The columns of its rows; `None` if it returns none.
    pub columns: Option<Arc<[ResultColumn]>>,
    /// How it runs.
    pub body: Body,
}

/// How a statement runs.
#[derive(Debug)]
pub enum Body {
    Query(QueryPlan),
    Select(SelectPlan),
    Singleton(SingletonPlan),
    Insert(InsertPlan),
    Modify(ModifyPlan),
    Call(CallPlan),
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
