//! Point reads.

use crate::error::{SqlError, SqlResult};
use crate::schema::{Index, TableDescriptor};
use crate::storage::Row;
use crate::storage::layout::{decode_row, entry_target, row_key, unique_key};
use crate::types::Datum;
use rhumb_commit::transaction::{Transaction, TxnError};
use rhumb_core::{Key, Value};
use std::collections::BTreeMap;

/// The most keys asked for in one round.
const GET_KEYS_MAX: usize = 16_384;

/// The rows with the first of these primary keys, in that order, in one round: with all of them, unless they have more than
/// [`READ_BYTES_MAX`](rhumb_commit::transaction::READ_BYTES_MAX); with one at least. A key is the values of the primary key's columns in the
/// key's order, of their columns' types. A key with a NULL has no row.
pub async fn get_by_primary_key(txn: &mut dyn Transaction, table: &TableDescriptor, keys: &[Vec<Datum>]) -> SqlResult<Vec<Option<Row>>> {
    let keys: Vec<Option<Key>> = keys.iter().map(|values| primary_key(table, values)).collect::<SqlResult<_>>()?;
    get_rows(txn, table, &keys).await
}

/// The rows with the first of these keys in a unique index, likewise, in two rounds. A key is the values of the index's columns;
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

/// The rows under the first of these keys, in that order, in one round.
async fn get_rows(txn: &mut dyn Transaction, table: &TableDescriptor, keys: &[Option<Key>]) -> SqlResult<Vec<Option<Row>>> {
    let asked: Vec<Key> = keys.iter().flatten().cloned().collect();
    let mut found = if asked.is_empty() { Vec::new() } else { txn.get_some(&asked).await? }.into_iter();
    let row = |key: &Option<Key>| match key {
        None => Some(Ok(None)),
        Some(_) => found.next().map(|row| row.value.map(|value| decode_row(table, &row.key, &value)).transpose()),
    };
    keys.iter().map_while(row).collect()
}

/// The values of those of `keys` that have one, all at once, so they must be small; in one round, or in none if there are no keys.
async fn get_values(txn: &mut dyn Transaction, keys: impl Iterator<Item = &Key>) -> SqlResult<BTreeMap<Key, Value>> {
    let mut values = BTreeMap::new();
    let keep = |key, value| {
        values.insert(key, value);
        Ok(())
    };
    each_value(txn, keys, keep).await?;
    Ok(values)
}

/// Hands over the value of each of `keys` that has one. However large they are, only a page of them is here at once; what fits into a page
/// takes one round.
pub(crate) async fn each_value(
    txn: &mut dyn Transaction,
    keys: impl Iterator<Item = &Key>,
    mut take: impl FnMut(Key, Value) -> SqlResult<()>,
) -> SqlResult<()> {
    let keys: Vec<Key> = keys.cloned().collect();
    let mut rest = keys.as_slice();
    while !rest.is_empty() {
        let rows = txn.get_some(&rest[..rest.len().min(GET_KEYS_MAX)]).await?;
        rest = &rest[rows.len()..];
        for row in rows {
            if let Some(value) = row.value {
                take(row.key, value)?;
            }
        }
    }
    Ok(())
}

/// The error for an index entry whose row is not there. Entry and row were read in two rounds: unless both were read at
/// one timestamp, another transaction may have deleted the row in between, and this one would not have committed.
pub(super) fn dangling(txn: &dyn Transaction, index: &Index) -> SqlError {
    if txn.is_of_one_moment() {
        SqlError::corrupted(format_args!("index \"{}\"", index.name), "an entry points to a row that does not exist")
    } else {
        TxnError::Conflict(format!("a row changed while it was read through index \"{}\"", index.name).into()).into()
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
