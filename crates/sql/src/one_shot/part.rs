//! A statement of a one-shot transaction.

use crate::error::{SqlError, SqlResult};
use crate::executor::{Plan, Running, Steps};
use crate::types::Datum;
use std::sync::Arc;

/// A statement of a text, or one of a procedure that is called there.
pub struct Part {
    /// Which of the text.
    pub statement: usize,
    /// Its plan.
    pub plan: Arc<Plan>,
    /// What it is given.
    pub parameters: Vec<Datum>,
    /// What it does.
    pub steps: Steps,
}

/// Why a statement is no part of such a transaction: for the client, if it is a CALL.
pub type Misfit = Option<SqlError>;

impl Part {
    /// Statement number `statement` of a text, or the statements of the procedure that it calls; `Err` within if one has no operations;
    /// it says the protocol of the database.
    pub async fn of(statement: usize, plan: &Arc<Plan>, cx: Running<'_>, protocol: &str) -> SqlResult<Result<Vec<Part>, Misfit>> {
        let Some(call) = plan.call() else {
            let part = |steps| Part { statement, plan: plan.clone(), parameters: cx.parameters.to_vec(), steps };
            return Ok(plan.operations(cx).await?.map(|steps| vec![part(steps)]).map_err(|_| None));
        };
        let given = call.given(cx)?;
        let mut parts = Vec::new();
        for (position, plan) in call.statements().enumerate() {
            match plan.operations(Running { parameters: &given, ..cx }).await? {
                Ok(steps) => parts.push(Part { statement, plan: plan.clone(), parameters: given.clone(), steps }),
                Err(unfit) => return Ok(Err(Some(call.unfit(position, unfit, protocol)))),
            }
        }
        Ok(Ok(parts))
    }
}
