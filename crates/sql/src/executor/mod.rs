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
mod describe;
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
pub mod set_numbers;
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
use crate::schema::{SequenceDescriptor, TableDescriptor};
use crate::sequence::{Draw, Drawing, Drawn};
use crate::txn::{Active, TransactionHandle};
use crate::types::{Datum, SqlType};
use insert::InsertPlan;
use modify::ModifyPlan;
use query::QueryPlan;
use rhumb_commit::one_shot::execution::Output;
use select::SelectPlan;
use set_numbers::SetNumbersPlan;
use singleton::SingletonPlan;
use std::borrow::Cow;
use std::sync::Arc;

/// A statement that is ready to run.
#[derive(Debug)]
pub struct Plan {
    /// The tables it was made for, as they were then.
    pub tables: Vec<Arc<TableDescriptor>>,
    /// The sequences likewise.
    pub sequences: Vec<Arc<SequenceDescriptor>>,
    /// The numbers that are drawn for a run: parameters that follow those of the client.
    pub draws: Vec<Draw>,
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
    SetNumbers(SetNumbersPlan),
}

/// What running needs.
#[derive(Clone, Copy)]
pub struct Running<'a> {
    /// The query engine.
    pub engine: &'a Arc<Engine>,
    /// The transaction to run in.
    pub handle: &'a TransactionHandle,
    /// What the session remembers of the numbers it was given.
    pub drawn: &'a Drawn,
    /// The values of the parameters.
    pub parameters: &'a [Datum],
}

impl Plan {
    /// A plan for any number of runs, that draws no numbers.
    pub fn of(tables: Vec<Arc<TableDescriptor>>, parameters: Vec<SqlType>, columns: Option<Arc<[ResultColumn]>>, body: Body) -> Plan {
        Plan { tables, sequences: Vec::new(), draws: Vec::new(), once: false, parameters, columns, body }
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
        for sequence in &self.sequences {
            match active.catalog.sequence(active.txn.as_mut(), database, &sequence.name).await {
                Ok(current) if Arc::ptr_eq(&current, sequence) || current == *sequence => {}
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
            Body::Query(_) | Body::Singleton(_) | Body::Call(_) | Body::SetNumbers(_) => Err(operations::CONDITIONAL),
        }
    }

    /// What it does as operations that a commit carries out, if that can be said without reading anything.
    pub async fn operations(&self, cx: Running<'_>) -> SqlResult<Result<Steps, Unfit>> {
        if let Err(unfit) = self.fit() {
            return Ok(Err(unfit));
        }
        let given = self.given(cx).await?;
        let cx = Running { parameters: &given, ..cx };
        match &self.body {
            Body::Select(plan) => plan.operations(cx),
            Body::Insert(plan) => plan.operations(cx).await,
            Body::Modify(plan) => plan.operations(cx),
            Body::Query(_) | Body::Singleton(_) | Body::Call(_) | Body::SetNumbers(_) => Ok(Err(operations::CONDITIONAL)),
        }
    }

    /// What its operations did, given what they returned. All is committed by then: only a row that is damaged is an error.
    pub fn operated(&self, cx: Running<'_>, steps: Steps, outputs: Vec<Output>) -> SqlResult<Effect> {
        let rows = steps.rows(outputs)?;
        match &self.body {
            Body::Select(plan) => plan.read(cx, rows),
            Body::Insert(plan) => Ok(plan.operated(rows)),
            Body::Modify(plan) => Ok(plan.operated(rows)),
            Body::Query(_) | Body::Singleton(_) | Body::Call(_) | Body::SetNumbers(_) => {
                Err(SqlError::internal("it has no operations of its own"))
            }
        }
    }

    /// Runs it.
    pub async fn run(&self, cx: Running<'_>) -> SqlResult<Effect> {
        let given = self.given(cx).await?;
        let cx = Running { parameters: &given, ..cx };
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
            Body::SetNumbers(plan) => plan.run(cx).await,
        }
    }

    /// The parameters, and the numbers that are drawn for this run.
    async fn given<'a>(&self, cx: Running<'a>) -> SqlResult<Cow<'a, [Datum]>> {
        if self.draws.is_empty() {
            return Ok(Cow::Borrowed(cx.parameters));
        }
        let mut active = cx.handle.lock().await?;
        let numbers = Drawing { engine: cx.engine, drawn: cx.drawn, active: &mut active }.draw(&self.draws).await?;
        Ok(Cow::Owned([cx.parameters, &numbers].concat()))
    }
}
