//! The values of columns that a statement gives none, as they are made for each row.

use super::assignment::assigned;
use super::evaluate::Compiled;
use crate::engine::Engine;
use crate::error::SqlResult;
use crate::schema::TableDescriptor;
use crate::storage::Row;
use crate::types::Datum;
use std::sync::Arc;

/// The values of columns that get none.
#[derive(Debug)]
pub struct Defaults {
    pub table: Arc<TableDescriptor>,
    /// By column; `None` is NULL.
    pub values: Vec<Option<Compiled>>,
    pub given: Vec<bool>,
}

impl Defaults {
    /// A row of defaults; the columns that are given are NULL in it still.
    pub fn row(&self, engine: &Engine) -> SqlResult<Row> {
        self.given
            .iter()
            .enumerate()
            .map(|(column, given)| if *given { Ok(self.table.columns[column].ty.null()) } else { self.value(engine, column) })
            .collect()
    }

    /// The default of one column.
    pub fn value(&self, engine: &Engine, column: usize) -> SqlResult<Datum> {
        let definition = &self.table.columns[column];
        let value = match &self.values[column] {
            _ if definition.hidden => engine.row_ids.next(engine.now()),
            None => definition.ty.null(),
            Some(expr) => expr.evaluate(engine, 1, |_, _| unreachable!("a default has no inputs"))?.pop().expect("one value for one row"),
        };
        assigned(&self.table, column, value)
    }
}
