//! Point reads.

use crate::catalog::{Index, TableDescriptor};
use crate::error::SqlResult;
use crate::table::Row;
use crate::types::Datum;
use rhumb_commit::transaction::Transaction;

/// The rows with these primary keys, in that order, in one round. A key is the values of the primary key's columns in
/// the key's order, of their columns' types. A key with a NULL has no row.
pub async fn get_by_primary_key(txn: &mut dyn Transaction, table: &TableDescriptor, keys: &[Vec<Datum>]) -> SqlResult<Vec<Option<Row>>> {
    let _ = (txn, table, keys);
    todo!()
}

/// The rows with these keys in a unique index, in that order, in two rounds.
pub async fn get_by_index(
    txn: &mut dyn Transaction,
    table: &TableDescriptor,
    index: &Index,
    keys: &[Vec<Datum>],
) -> SqlResult<Vec<Option<Row>>> {
    let _ = (txn, table, index, keys);
    todo!()
}
