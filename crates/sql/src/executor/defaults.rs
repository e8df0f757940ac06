//! The values of columns that a statement gives none, as they are made for each row.

use super::Running;
use super::assignment::assigned;
use super::evaluate::Compiled;
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult};
use crate::schema::{SequenceDescriptor, TableDescriptor};
use crate::sequence::{Draw, Drawing, Drawn};
use crate::storage::Row;
use crate::txn::Active;
use crate::types::Datum;
use std::sync::Arc;

/// The values of columns that get none.
#[derive(Debug)]
pub struct Defaults {
    pub table: Arc<TableDescriptor>,
    /// By column; `None` is NULL.
    pub values: Vec<Option<Default>>,
    pub given: Vec<bool>,
}

/// The value of a column that gets none.
#[derive(Debug)]
pub struct Default {
    /// The expression; its inputs are the numbers drawn.
    pub expr: Compiled,
    /// What is drawn for each row.
    pub draws: Vec<Draw>,
}

impl Defaults {
    /// A row of defaults; the columns that are given are NULL in it still.
    pub async fn row(&self, cx: Running<'_>) -> SqlResult<Row> {
        let mut row = Row::with_capacity(self.given.len());
        for (column, given) in self.given.iter().enumerate() {
            row.push(if *given { self.table.columns[column].ty.null() } else { self.value(cx, column).await? });
        }
        Ok(row)
    }

    /// The default of one column.
    pub async fn value(&self, cx: Running<'_>, column: usize) -> SqlResult<Datum> {
        match &self.values[column] {
            Some(Default { draws, .. }) if !draws.is_empty() => {
                let mut active = cx.handle.lock().await?;
                self.drawn(cx.engine, cx.drawn, &mut active, column).await
            }
            _ => self.evaluated(cx.engine, column, &[]),
        }
    }

    /// The same in a transaction that is at hand.
    pub async fn drawn(&self, engine: &Engine, drawn: &Drawn, active: &mut Active, column: usize) -> SqlResult<Datum> {
        let Some(Default { draws, .. }) = &self.values[column] else { return self.evaluated(engine, column, &[]) };
        let numbers = Drawing { engine, drawn, active }.draw(draws).await?;
        self.evaluated(engine, column, &numbers)
    }

    /// The same where nothing can be drawn. Error 0A000 if something is to be.
    pub fn undrawn(&self, engine: &Engine, column: usize) -> SqlResult<Datum> {
        self.check_undrawn(column)?;
        self.evaluated(engine, column, &[])
    }

    /// Refuses a column whose default is drawn. Error 0A000.
    pub fn check_undrawn(&self, column: usize) -> SqlResult<()> {
        if self.values[column].as_ref().is_some_and(|default| !default.draws.is_empty()) {
            let name = &self.table.columns[column].name;
            return Err(SqlError::unsupported(format!(
                "SET DEFAULT of column \"{name}\", which takes its values from a sequence, is not supported"
            )));
        }
        Ok(())
    }

    /// True if numbers are drawn for a row.
    pub fn draw(&self) -> bool {
        self.values.iter().flatten().any(|default| !default.draws.is_empty())
    }

    /// The sequences that numbers are drawn from.
    pub fn sequences(&self) -> impl Iterator<Item = Arc<SequenceDescriptor>> {
        self.values.iter().flatten().flat_map(|default| &default.draws).filter_map(Draw::sequence)
    }

    fn evaluated(&self, engine: &Engine, column: usize, numbers: &[Datum]) -> SqlResult<Datum> {
        let definition = &self.table.columns[column];
        let value = match &self.values[column] {
            _ if definition.hidden => engine.row_ids.next(engine.now()),
            None => definition.ty.null(),
            Some(Default { expr, .. }) => expr.evaluate(engine, 1, |_, input| &numbers[input])?.pop().expect("one value for one row"),
        };
        assigned(&self.table, column, value)
    }
}
