//! CALL of a procedure as it runs: its statements one after the other, in one transaction.
//!
//! Where the commit carries out [operations](super::operations), all of them travel together: the call is a one-shot transaction then, or
//! it is refused. What they would show nobody sees.

use super::evaluate::Compiled;
use super::operations::Unfit;
use super::{Effect, Plan, Running};
use crate::error::{SqlError, SqlResult};
use crate::schema::ProcedureDescriptor;
use crate::txn::Active;
use crate::types::{Datum, coerce};
use futures::StreamExt;
use rhumb_commit::transaction::ReadMode;
use std::sync::Arc;

/// A CALL.
#[derive(Debug)]
pub struct CallPlan {
    pub procedure: Arc<ProcedureDescriptor>,
    /// What each parameter is given.
    pub given: Vec<Compiled>,
    pub statements: Vec<Statement>,
}

/// A statement of a procedure.
#[derive(Debug)]
pub struct Statement {
    pub name: &'static str,
    /// True if it is to lock the rows that it reads.
    pub locks: bool,
    pub plan: Arc<Plan>,
}

impl CallPlan {
    /// True if the transaction sees the procedure that the plan was made for.
    pub async fn is_current(&self, active: &mut Active, database: &str) -> bool {
        let found = active.catalog.procedure(active.txn.as_mut(), database, &self.procedure.name).await;
        found.is_ok_and(|found| found.is_some_and(|found| Arc::ptr_eq(&found, &self.procedure) || found == self.procedure))
    }

    /// The statements.
    pub fn statements(&self) -> impl Iterator<Item = &Arc<Plan>> {
        self.statements.iter().map(|statement| &statement.plan)
    }

    /// The error of the statement at `position`, which cannot travel.
    pub fn unfit(&self, position: usize, unfit: Unfit, protocol: &str) -> SqlError {
        unfit_statement(&self.procedure, position, self.statements[position].name, unfit, protocol)
    }

    /// What the parameters of the statements are, given those of the CALL.
    pub fn given(&self, cx: Running<'_>) -> SqlResult<Vec<Datum>> {
        let values = self.given.iter().zip(self.procedure.types()).map(|(expr, ty)| {
            let value = expr.evaluate(cx.engine, 1, |_, input| &cx.parameters[input])?.pop().expect("one value for one row");
            coerce(&ty.unbounded(), value)
        });
        values.collect()
    }

    /// Runs the statements one after the other.
    pub async fn run(&self, cx: Running<'_>) -> SqlResult<Effect> {
        let given = self.given(cx)?;
        for Statement { locks, plan, .. } in &self.statements {
            let mode = cx.handle.lock().await?.txn.mode();
            let locks = *locks && mode.is_optimistic();
            if locks {
                cx.handle.lock().await?.txn.set_mode(ReadMode::Locking)?;
            }
            if let Effect::Rows(mut rows) = Box::pin(plan.run(Running { parameters: &given, ..cx })).await? {
                while rows.next().await.transpose()?.is_some() {}
            }
            if locks {
                cx.handle.lock().await?.txn.set_mode(mode)?;
            }
        }
        Ok(Effect::Written { count: 0, returning: Vec::new() })
    }
}

/// The error of a statement that cannot travel.
pub fn unfit_statement(procedure: &ProcedureDescriptor, position: usize, name: &str, unfit: Unfit, protocol: &str) -> SqlError {
    let number = position + 1;
    SqlError::unsupported(format!(
        "statement {number} ({name}) of procedure \"{}\" cannot be part of a one-shot transaction",
        procedure.name
    ))
    .with_detail(format!("In a database of protocol \"{protocol}\" a procedure is one, and here {unfit}."))
    .with_hint("Run statements that must read first between BEGIN and COMMIT.")
}
