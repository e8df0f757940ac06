//! Rows on their way into a table, under all of its constraints. Whatever writes rows does so through here.
//!
//! ```text
//!   rows ─▶ CHECK ─▶ storage: NOT NULL, unique keys, entries of indexes
//! ```

use super::evaluate::Compiled;
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::TableDescriptor;
use crate::storage::{self, Inserted, OnConflict, Row};
use rhumb_commit::transaction::Transaction;
use std::sync::Arc;

/// Writes rows of a table.
#[derive(Debug)]
pub struct Writer {
    /// The table.
    pub table: Arc<TableDescriptor>,
    /// The conditions of its `CHECK` constraints, in their order, each true where it is not false.
    checks: Vec<Compiled>,
}

impl Writer {
    /// A writer of `table`, whose checks are `checks`.
    pub fn new(table: Arc<TableDescriptor>, checks: Vec<Compiled>) -> Writer {
        debug_assert_eq!(table.checks.len(), checks.len());
        Writer { table, checks }
    }

    /// Inserts rows, as [`storage::insert`] does. Error 23514, too.
    pub async fn insert(&self, engine: &Engine, txn: &mut dyn Transaction, rows: &[Row], on_conflict: &OnConflict) -> SqlResult<Inserted> {
        self.check(engine, rows.len(), |row| &rows[row])?;
        storage::insert(txn, &self.table, rows, on_conflict).await
    }

    /// Replaces rows, as [`storage::update`] does. Error 23514, too.
    pub async fn update(&self, engine: &Engine, txn: &mut dyn Transaction, changes: &[(Row, Row)]) -> SqlResult<()> {
        self.check(engine, changes.len(), |row| &changes[row].1)?;
        storage::update(txn, &self.table, changes).await
    }

    /// Refuses rows that break a `CHECK` constraint, or are NULL where none of these expects it. Errors 23502, 23514.
    pub fn check<'a>(&self, engine: &Engine, rows: usize, row: impl Fn(usize) -> &'a Row) -> SqlResult<()> {
        if self.checks.is_empty() {
            return Ok(());
        }
        // Conditions are made for columns that are not NULL where they must not be.
        (0..rows).try_for_each(|position| storage::check_row(&self.table, row(position)))?;
        for (check, condition) in self.table.checks.iter().zip(&self.checks) {
            let kept = condition.select(engine, rows, |position, input| &row(position)[input])?;
            if let Some(position) = kept.iter().position(|kept| !kept) {
                let message = format!("new row for relation \"{}\" violates check constraint \"{}\"", self.table.name, check.name);
                return Err(SqlError::new(SqlState::CheckViolation, message)
                    .with_detail(storage::failing_row(&self.table, row(position)))
                    .with_constraint(&check.name));
            }
        }
        Ok(())
    }
}
