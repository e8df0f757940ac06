//! Rows that are inserted in one round.

use crate::storage::Row;
use crate::types::Datum;

/// The most rows of a batch.
const ROWS_MAX: usize = 1_000;
/// The bytes of its rows from which on a batch is full. They are in memory at once, more than once while they are encoded.
const BYTES_FULL: usize = 4 << 20;

/// Rows that wait to be inserted together.
#[derive(Debug, Default)]
pub struct Batch {
    rows: Vec<Row>,
    bytes: usize,
}

impl Batch {
    /// Adds a row.
    pub fn push(&mut self, row: Row) {
        self.bytes += row.iter().map(Datum::size).sum::<usize>();
        self.rows.push(row);
    }

    /// True if it is time to insert them.
    pub fn is_full(&self) -> bool {
        self.rows.len() >= ROWS_MAX || self.bytes >= BYTES_FULL
    }

    /// Its rows, which leave it empty.
    pub fn take(&mut self) -> Vec<Row> {
        std::mem::take(self).rows
    }
}
