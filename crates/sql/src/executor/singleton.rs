//! SELECT of expressions without a table as it runs: one row.

use super::evaluate::Compiled;
use super::result::{ResultColumn, bytes_of, check_bytes};
use super::{Effect, Running};
use crate::error::SqlResult;
use crate::types::{Datum, coerce};
use futures::StreamExt;

/// The expressions of the row.
#[derive(Debug)]
pub struct SingletonPlan(pub Vec<(Compiled, ResultColumn)>);

impl SingletonPlan {
    /// Runs it.
    pub fn run(&self, cx: Running<'_>) -> SqlResult<Effect> {
        let mut bytes = 0;
        let row: SqlResult<Vec<Datum>> = self
            .0
            .iter()
            .map(|(expr, column)| {
                let value = expr.evaluate(cx.engine, 1, |_, input| &cx.parameters[input])?.pop().expect("one value for one row");
                bytes += bytes_of(&value);
                check_bytes(bytes)?;
                if value.data_type() == column.ty.arrow() { Ok(value) } else { coerce(&column.ty, value) }
            })
            .collect();
        let page = vec![row?];
        Ok(Effect::Rows(futures::stream::once(std::future::ready(Ok(page))).boxed()))
    }
}
