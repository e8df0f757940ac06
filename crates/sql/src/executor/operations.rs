//! A statement as operations: what a commit carries out on the rows as they are then, without their having been read.
//!
//! ```text
//!   INSERT … VALUES                          insert the row, and its entry of each index
//!   UPDATE … SET n = n + 1 WHERE key = …     amend the row, then read it: was it there, and what RETURNING shows
//!   DELETE … WHERE key = …                   read the row, then delete it
//!   SELECT … WHERE key = …, … LIMIT …        read the row; scan so many of a range
//! ```

use crate::error::{SqlError, SqlResult};
use crate::schema::{IndexId, TableDescriptor};
use crate::storage::{Row, decode_row, operations};
use rhumb_commit::one_shot::execution::{Output, Rejection};
use rhumb_commit::one_shot::operation::Operation;
use rhumb_core::fields::Change;
use rhumb_core::{Key, KeyRange};
use std::sync::Arc;

/// Why a statement cannot be said as operations.
pub type Unfit = &'static str;

/// It has to be read before it is known what to do.
pub const CONDITIONAL: Unfit = "which keys it touches, or what it writes, depends on what is read";
/// It is made of the rows once all is committed, when no error may come any more, be it for the size.
pub const FALLIBLE: Unfit = "what it shows is more than columns as they are, each once";

/// The operations of a statement.
#[derive(Debug)]
pub struct Steps {
    table: Arc<TableDescriptor>,
    operations: Vec<Operation>,
    /// Rows to be inserted.
    inserted: Vec<Row>,
    /// By operation, if it inserts: which of these rows, and the key that it claims.
    claims: Vec<(usize, IndexId)>,
}

impl Steps {
    /// None yet.
    pub fn new(table: Arc<TableDescriptor>) -> Steps {
        Steps { table, operations: Vec::new(), inserted: Vec::new(), claims: Vec::new() }
    }

    /// Inserts a row.
    pub fn insert(&mut self, row: Row) -> SqlResult<()> {
        for (operation, index) in operations::insertion(&self.table, &row)? {
            self.operations.push(operation);
            self.claims.push((self.inserted.len(), index));
        }
        self.inserted.push(row);
        Ok(())
    }

    /// Changes a row that is there.
    pub fn amend(&mut self, key: Key, changes: Vec<Change>) {
        self.operations.push(Operation::Amend { key: key.clone(), changes });
        self.operations.push(Operation::Read { key });
    }

    /// Deletes a row that is there.
    pub fn delete(&mut self, key: Key) {
        self.operations.push(Operation::Read { key: key.clone() });
        self.operations.push(Operation::Delete { key });
    }

    /// Reads a row.
    pub fn read(&mut self, key: Key) {
        self.operations.push(Operation::Read { key });
    }

    /// Reads the first rows of a range.
    pub fn scan(&mut self, range: KeyRange, limit: u32) {
        self.operations.push(Operation::Scan { range, limit });
    }

    /// The operations, in their order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The rows that were inserted, found or read.
    pub(super) fn rows(self, outputs: Vec<Output>) -> SqlResult<Vec<Row>> {
        let Steps { table, inserted, .. } = self;
        let found = outputs.into_iter().flat_map(|output| match output {
            Output::Row(row) => vec![row],
            Output::Rows(rows) => rows,
            Output::Nothing | Output::Number(_) => Vec::new(),
        });
        let found = found.filter_map(|row| row.value.map(|value| decode_row(&table, &row.key, &value)));
        inserted.into_iter().map(Ok).chain(found).collect()
    }

    /// The error of the operation at `place`, which failed.
    pub fn blame(&self, place: usize, why: &Rejection) -> SqlError {
        match why {
            Rejection::Duplicate { .. } if place < self.claims.len() => {
                let (row, index) = self.claims[place];
                operations::taken(&self.table, index, &self.inserted[row])
            }
            Rejection::OutOfBounds { field, .. } => {
                let column = self.table.columns.iter().find(|column| column.id == *field);
                column.map_or_else(|| SqlError::internal(why.to_string()), |column| operations::overflow(&column.ty))
            }
            why => SqlError::corrupted(format_args!("a row of table \"{}\"", self.table.name), why),
        }
    }
}
