//! SELECT of setval() as it runs: what the calls are given is read first, then the sequences are set, in the same transaction.

use super::{Effect, Plan, Running};
use crate::catalog::Counter;
use crate::error::{SqlError, SqlResult};
use crate::parser::{fold, spelt, unqualified};
use crate::txn::Active;
use crate::types::{Datum, SqlType, coerce};
use futures::StreamExt;

/// A SELECT of setval().
#[derive(Debug)]
pub struct SetNumbersPlan {
    /// Reads what the calls are given, three columns for each: the sequence, the number, and whether it is given out already.
    pub given: Box<Plan>,
    pub database: String,
}

/// The values of a call.
const ARGUMENTS: usize = 3;
/// The most rows whose calls are done.
const ROWS_MAX: usize = 1_000;

impl SetNumbersPlan {
    /// Runs it.
    pub async fn run(&self, cx: Running<'_>) -> SqlResult<Effect> {
        let Effect::Rows(mut pages) = Box::pin(self.given.run(cx)).await? else {
            return Err(SqlError::internal("what setval() is given are no rows"));
        };
        let mut rows = Vec::new();
        while let Some(page) = pages.next().await {
            rows.extend(page?);
            if rows.len() > ROWS_MAX {
                return Err(SqlError::too_large(format!("setval() is called for more than {ROWS_MAX} rows")));
            }
        }
        drop(pages);
        let mut active = cx.handle.lock().await?;
        let mut results = Vec::with_capacity(rows.len());
        for row in rows {
            let mut result = Vec::new();
            for call in row.chunks_exact(ARGUMENTS) {
                result.push(Datum::Int64(self.set(cx, &mut active, call).await?));
            }
            results.push(result);
        }
        Ok(Effect::Rows(futures::stream::once(std::future::ready(Ok(results))).boxed()))
    }

    /// One call; NULL if it is given NULL.
    async fn set(&self, cx: Running<'_>, active: &mut Active, given: &[Datum]) -> SqlResult<Option<i64>> {
        let [name, number, called] = given else { return Err(SqlError::internal("setval() takes three values")) };
        let given =
            (coerce(&SqlType::Text, name.clone())?, coerce(&SqlType::Int8, number.clone())?, coerce(&SqlType::Bool, called.clone())?);
        let (Datum::Utf8(Some(name)), Datum::Int64(Some(last)), Datum::Boolean(Some(called))) = given else { return Ok(None) };
        let name = fold(&unqualified(&spelt(&name)?, &self.database)?);
        let sequence = active.catalog.sequence_to_alter(active.txn.as_mut(), &self.database, &name).await?;
        active.catalog.set_sequence(active.txn.as_mut(), &sequence, Counter { last, called })?;
        if called {
            cx.drawn.replace(&sequence, last);
        }
        Ok(Some(last))
    }
}
