//! Where the rows and index entries of a table lie in the key space.
//!
//! ```text
//!   row            [database][table][0    ] primary key columns                      → the other columns
//!   unique entry   [database][table][index] its columns                              → primary key columns
//!   other entry    [database][table][index] its columns · primary key columns        → primary key columns
//! ```
//!
//! Ids are 4 bytes, big-endian. An entry of a unique index with a NULL is of the last kind, since NULLs are not equal.

use crate::error::{SqlError, SqlResult};
use crate::schema::{DatabaseId, Index, IndexId, TableDescriptor, TableId};
use crate::storage::key_codec::{self, Malformed};
use crate::storage::{Row, row_codec};
use crate::types::Datum;
use rhumb_core::{Key, Value};

/// The index id of the primary key.
pub const PRIMARY: IndexId = IndexId(0);
/// The most bytes of a key.
pub const KEY_BYTES_MAX: usize = 4_096;
const PREFIX_BYTES: usize = 12;

/// What all keys of an index begin with.
pub(crate) fn index_prefix(database: DatabaseId, table: TableId, index: IndexId) -> Vec<u8> {
    [database.0, table.0, index.0].into_iter().flat_map(u32::to_be_bytes).collect()
}

/// Appends the encodings of `values` as the columns at `positions`.
pub(super) fn push_columns<'a>(
    out: &mut Vec<u8>,
    table: &TableDescriptor,
    positions: &[usize],
    values: impl Iterator<Item = &'a Datum>,
) -> SqlResult<()> {
    for (position, value) in positions.iter().zip(values) {
        key_codec::encode(out, &table.columns[*position].ty, value)?;
    }
    Ok(())
}

/// The key of the row whose primary key has these values.
pub(super) fn row_key<'a>(table: &TableDescriptor, values: impl Iterator<Item = &'a Datum>) -> SqlResult<Key> {
    let mut bytes = index_prefix(table.database, table.id, PRIMARY);
    push_columns(&mut bytes, table, &table.primary_key, values)?;
    bounded(bytes, &table.primary_key_name)
}

/// The key of a row.
pub(crate) fn key_of(table: &TableDescriptor, row: &Row) -> SqlResult<Key> {
    row_key(table, table.primary_key.iter().map(|position| &row[*position]))
}

/// The value of a row.
pub(super) fn value_of(table: &TableDescriptor, row: &Row) -> SqlResult<Value> {
    let columns = table.columns.iter().zip(row).enumerate().filter(|(position, _)| !table.primary_key.contains(position));
    row_codec::encode(columns.map(|(_, column)| column)).map(Value::new)
}

/// The row under a key. Total: bytes that no version of Rhumb wrote are an error (XX001).
pub fn decode_row(table: &TableDescriptor, key: &Key, value: &Value) -> SqlResult<Row> {
    let malformed = |why: Malformed| SqlError::corrupted(format_args!("a row of table \"{}\" under key {key}", table.name), why);
    let mut row: Row = table.columns.iter().map(row_codec::absent).collect::<Result<_, _>>().map_err(malformed)?;
    let mut input = key.0.get(PREFIX_BYTES..).ok_or(Malformed("the key is too short")).map_err(malformed)?;
    for position in &table.primary_key {
        row[*position] = key_codec::decode(&mut input, &table.columns[*position].ty).map_err(malformed)?;
    }
    if !input.is_empty() {
        return Err(malformed(Malformed("the key is too long")));
    }
    let beside_the_key = |position, value| {
        if table.primary_key.contains(&position) {
            return Err(Malformed("its value holds a column of its key"));
        }
        row[position] = value;
        Ok(())
    };
    row_codec::decode(&value.0, &table.columns, beside_the_key).map_err(malformed)?;
    Ok(row)
}

/// The key and the value of a row.
#[cfg(feature = "fuzzing")]
pub(crate) fn encode_row(table: &TableDescriptor, row: &Row) -> SqlResult<(Key, Value)> {
    Ok((key_of(table, row)?, value_of(table, row)?))
}

/// The key that a row has in a unique index, given the values of the index's columns; `None` if one is NULL.
pub(super) fn unique_key<'a>(
    table: &TableDescriptor,
    index: &Index,
    values: impl Iterator<Item = &'a Datum> + Clone,
) -> SqlResult<Option<Key>> {
    if values.clone().any(Datum::is_null) {
        return Ok(None);
    }
    let mut bytes = index_prefix(table.database, table.id, index.id);
    push_columns(&mut bytes, table, &index.columns, values)?;
    bounded(bytes, &index.name).map(Some)
}

/// The key of a row's entry in an index.
pub(super) fn entry_key(table: &TableDescriptor, index: &Index, row: &Row) -> SqlResult<Key> {
    let values = index.columns.iter().map(|position| &row[*position]);
    if index.unique
        && let Some(key) = unique_key(table, index, values.clone())?
    {
        return Ok(key);
    }
    let mut bytes = index_prefix(table.database, table.id, index.id);
    push_columns(&mut bytes, table, &index.columns, values)?;
    push_columns(&mut bytes, table, &table.primary_key, table.primary_key.iter().map(|position| &row[*position]))?;
    bounded(bytes, &index.name)
}

/// The value of an index entry of the row under `key`.
pub(super) fn entry_value(key: &Key) -> Value {
    let mut bytes = vec![row_codec::FORMAT];
    bytes.extend(&key.0[PREFIX_BYTES..]);
    Value::new(bytes)
}

/// The key of the row that an index entry points to.
pub(super) fn entry_target(table: &TableDescriptor, index: &Index, value: &Value) -> SqlResult<Key> {
    let mut input = &value.0[..];
    row_codec::check_format(&mut input).map_err(|why| SqlError::corrupted(format_args!("an entry of index \"{}\"", index.name), why))?;
    let mut bytes = index_prefix(table.database, table.id, PRIMARY);
    bytes.extend(input);
    Ok(Key::new(bytes))
}

fn bounded(bytes: Vec<u8>, index: &str) -> SqlResult<Key> {
    if bytes.len() > KEY_BYTES_MAX {
        let message = format!("index row size {} exceeds maximum {KEY_BYTES_MAX} for index \"{index}\"", bytes.len());
        return Err(SqlError::too_large(message).with_hint("Values longer than that cannot be indexed."));
    }
    Ok(Key::new(bytes))
}
