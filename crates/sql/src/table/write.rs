//! Rows into a table, with all of its indexes.

use crate::catalog::{IndexId, TableDescriptor};
use crate::error::SqlResult;
use crate::table::Row;
use rhumb_commit::transaction::Transaction;

/// What an `INSERT` does with a row whose key exists already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// Fails with 23505.
    Error,
    /// Leaves the row out: any key (`None`), or this key only (`IndexId(0)`: the primary key), other keys fail.
    DoNothing(Option<IndexId>),
    /// Returns the existing row, for the caller to `update`; the key it must be about. Other keys fail.
    DoUpdate(IndexId),
}

/// What an `INSERT` did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inserted {
    /// The positions of the rows written.
    pub written: Vec<usize>,
    /// Of `DoUpdate`: the position of a row not written, and the existing row in its way.
    pub conflicts: Vec<(usize, Row)>,
}

/// Inserts rows, in one round of reads (one more if `DoUpdate` finds conflicts). Nothing is written if it fails.
pub async fn insert(txn: &mut dyn Transaction, table: &TableDescriptor, rows: &[Row], on_conflict: &OnConflict) -> SqlResult<Inserted> {
    let _ = (txn, table, rows, on_conflict);
    todo!()
}

/// Replaces rows, as read by this transaction, with new ones, primary key included, in at most one round of reads.
pub async fn update(txn: &mut dyn Transaction, table: &TableDescriptor, changes: &[(Row, Row)]) -> SqlResult<()> {
    let _ = (txn, table, changes);
    todo!()
}

/// Deletes rows, as read by this transaction, without a read.
pub fn delete(txn: &mut dyn Transaction, table: &TableDescriptor, rows: &[Row]) -> SqlResult<()> {
    let _ = (txn, table, rows);
    todo!()
}
