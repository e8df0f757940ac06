//! A column whose values become those of another type.

use super::evaluate::Compiled;
use crate::engine::Engine;
use crate::error::SqlResult;
use crate::storage::Row;
use crate::types::{SqlType, coerce};

/// A column and what its values become.
#[derive(Debug)]
pub struct ConvertedColumn {
    /// Its position.
    pub position: usize,
    /// Its new type.
    pub ty: SqlType,
    /// An expression over the old row; `None`: the same value in the new type.
    pub using: Option<Compiled>,
}

impl ConvertedColumn {
    /// What rows become.
    pub fn apply(&self, engine: &Engine, rows: &[Row]) -> SqlResult<Vec<Row>> {
        let values = match &self.using {
            Some(using) => using.evaluate(engine, rows.len(), |row, input| &rows[row][input])?,
            None => rows.iter().map(|row| row[self.position].clone()).collect(),
        };
        let converted = rows.iter().zip(values).map(|(row, value)| {
            let mut row = row.clone();
            row[self.position] = coerce(&self.ty, value)?;
            Ok(row)
        });
        converted.collect()
    }
}
