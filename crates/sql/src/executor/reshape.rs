//! The rows of a table that is altered, within the transaction that alters it.

use super::gathered::Gathered;
use crate::engine::Engine;
use crate::error::{SqlResult, SqlState};
use crate::schema::TableDescriptor;
use crate::storage::{self, Row};
use datafusion::execution::memory_pool::MemoryReservation;
use rhumb_commit::transaction::Transaction;
use std::sync::Arc;

/// All rows of a table that are to be rewritten, and the charge for them. Errors: 53200, 54000.
pub async fn all_rows(
    engine: &Engine,
    txn: &mut dyn Transaction,
    table: &Arc<TableDescriptor>,
) -> SqlResult<(Vec<Row>, MemoryReservation)> {
    let mut gathered = Gathered::to_write(engine);
    let all = storage::each_page(txn, table, |page| gathered.push(page)).await;
    all.map_err(|error| match error.state() {
        SqlState::ProgramLimitExceeded => error.with_hint("Copy the rows into a new table, some at a time."),
        _ => error,
    })?;
    Ok(gathered.into_rows())
}

/// Rewrites all rows of the table that was `before` as rows of what it is `after`: `become_of` tells what a row becomes. Errors: 23502,
/// 23505; 54000 if there are more than one transaction may write.
pub async fn rewrite(
    engine: &Engine,
    txn: &mut dyn Transaction,
    before: &Arc<TableDescriptor>,
    after: &TableDescriptor,
    become_of: impl Fn(&[Row]) -> SqlResult<Vec<Row>> + Send,
) -> SqlResult<()> {
    let (old, _charge) = all_rows(engine, txn, before).await?;
    let new = become_of(&old)?;
    let rows: Vec<(Row, Row)> = old.into_iter().zip(new).collect();
    storage::rewrite(txn, before, after, &rows)
}
