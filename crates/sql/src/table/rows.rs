//! Point reads.

use crate::catalog::{Index, TableDescriptor};
use crate::error::{SqlError, SqlResult};
use crate::table::Row;
use crate::table::layout::{decode_row, entry_target, row_key, unique_key};
use crate::types::Datum;
use rhumb_commit::transaction::{Transaction, TxnError};
use rhumb_core::{Key, Value};
use std::collections::BTreeMap;

/// The most keys asked for in one round.
const GET_KEYS_MAX: usize = 16_384;

/// The rows with these primary keys, in that order, in one round. A key is the values of the primary key's columns in
/// the key's order, of their columns' types. A key with a NULL has no row.
pub async fn get_by_primary_key(txn: &mut dyn Transaction, table: &TableDescriptor, keys: &[Vec<Datum>]) -> SqlResult<Vec<Option<Row>>> {
    let keys: Vec<Option<Key>> = keys.iter().map(|values| primary_key(table, values)).collect::<SqlResult<_>>()?;
    get_rows(txn, table, &keys).await
}

/// The rows with these keys in a unique index, in that order, in two rounds. A key is the values of the index's columns;
/// one with a NULL has no row.
pub async fn get_by_index(
    txn: &mut dyn Transaction,
    table: &TableDescriptor,
    index: &Index,
    keys: &[Vec<Datum>],
) -> SqlResult<Vec<Option<Row>>> {
    if !index.unique {
        return Err(SqlError::internal(format!("index \"{}\" is not unique: a point read would miss rows", index.name)));
    }
    let entries: Vec<Option<Key>> = keys
        .iter()
        .map(|values| {
            check_length(values, index.columns.len())?;
            unique_key(table, index, values.iter())
        })
        .collect::<SqlResult<_>>()?;
    let values = get_values(txn, entries.iter().flatten()).await?;
    let targets: Vec<Option<Key>> = entries
        .iter()
        .map(|entry| match entry.as_ref().and_then(|entry| values.get(entry)) {
            Some(value) => entry_target(table, index, value).map(Some),
            None => Ok(None),
        })
        .collect::<SqlResult<_>>()?;
    let rows = get_rows(txn, table, &targets).await?;
    if targets.iter().zip(&rows).any(|(target, row)| target.is_some() && row.is_none()) {
        return Err(dangling(txn, index));
    }
    Ok(rows)
}

/// The rows under these keys, in that order, in one round.
pub(super) async fn get_rows(txn: &mut dyn Transaction, table: &TableDescriptor, keys: &[Option<Key>]) -> SqlResult<Vec<Option<Row>>> {
    let values = get_values(txn, keys.iter().flatten()).await?;
    let row = |key: &Option<Key>| match key.as_ref().and_then(|key| values.get_key_value(key)) {
        Some((key, value)) => decode_row(table, key, value).map(Some),
        None => Ok(None),
    };
    keys.iter().map(row).collect()
}

/// The values of those of `keys` that have one, in one round; in none if there are no keys.
pub(super) async fn get_values(txn: &mut dyn Transaction, keys: impl Iterator<Item = &Key>) -> SqlResult<BTreeMap<Key, Value>> {
    let keys: Vec<Key> = keys.cloned().collect();
    let mut values = BTreeMap::new();
    for batch in keys.chunks(GET_KEYS_MAX) {
        let rows = txn.get(batch).await?;
        values.extend(rows.into_iter().filter_map(|row| row.value.map(|value| (row.key, value))));
    }
    Ok(values)
}

/// The error for an index entry whose row is not there. Entry and row were read in two rounds: unless both were read at
/// one timestamp, another transaction may have deleted the row in between, and this one would not have committed.
pub(super) fn dangling(txn: &dyn Transaction, index: &Index) -> SqlError {
    if txn.is_of_one_moment() {
        SqlError::corrupted(format_args!("index \"{}\"", index.name), "an entry points to a row that does not exist")
    } else {
        TxnError::Conflict(format!("a row changed while it was read through index \"{}\"", index.name)).into()
    }
}

/// The key of the row with this primary key; `None` if a value is NULL: it has no row.
pub fn primary_key(table: &TableDescriptor, values: &[Datum]) -> SqlResult<Option<Key>> {
    check_length(values, table.primary_key.len())?;
    if values.iter().any(Datum::is_null) { Ok(None) } else { row_key(table, values.iter()).map(Some) }
}

fn check_length(values: &[Datum], columns: usize) -> SqlResult<()> {
    if values.len() == columns {
        return Ok(());
    }
    Err(SqlError::internal(format!("a key of {columns} columns was given {} values", values.len())))
}
