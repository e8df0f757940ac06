//! Rows as operations that a commit carries out: what is written without having been read.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::{IndexId, TableDescriptor};
use crate::storage::Row;
use crate::storage::key_codec::to_integer;
use crate::storage::layout::{PRIMARY, entry_key, entry_value, key_of, value_of};
use crate::storage::row_codec::payload;
use crate::storage::write::{check_row, duplicate};
use crate::types::{Datum, SqlType};
use rhumb_commit::one_shot::operation::Operation;
use rhumb_core::fields::{By, Change};

/// What inserts a row, each operation with the key that it claims.
pub fn insertion(table: &TableDescriptor, row: &Row) -> SqlResult<Vec<(Operation, IndexId)>> {
    check_row(table, row)?;
    let key = key_of(table, row)?;
    let mut operations = vec![(Operation::Insert { key: key.clone(), value: value_of(table, row)? }, PRIMARY)];
    for index in &table.indexes {
        let (entry, value) = (entry_key(table, index, row)?, entry_value(&key));
        let entry = if index.unique { Operation::Insert { key: entry, value } } else { Operation::Write { key: entry, value } };
        operations.push((entry, index.id));
    }
    Ok(operations)
}

/// The error of a row whose key in `index` is taken.
pub fn taken(table: &TableDescriptor, index: IndexId, row: &Row) -> SqlError {
    duplicate(table, index, row)
}

/// True if a column may change in a row without anything else changing or having to be looked at, and holds nothing but its value.
pub fn stands_alone(table: &TableDescriptor, column: usize) -> bool {
    !table.primary_key.contains(&column)
        && !table.indexes.iter().any(|index| index.columns.contains(&column))
        && !table.checks.iter().any(|check| check.columns.contains(&column))
        && !table.foreign_keys.iter().any(|foreign| foreign.columns.contains(&column))
        && table.columns[column].missing.is_none()
}

/// The column becomes `value`, which is as the column stores it.
pub fn setting(table: &TableDescriptor, column: usize, value: &Datum) -> SqlResult<Change> {
    let definition = &table.columns[column];
    let bytes = if value.is_null() { None } else { Some(payload(&definition.ty, value)?.into()) };
    Ok(Change { field: definition.id, by: By::Setting(bytes) })
}

/// `value`, which is as the column stores it, is added to the column or taken from it. `None` if columns of its type are not added to so.
pub fn adding(table: &TableDescriptor, column: usize, value: &Datum, negative: bool) -> Option<Change> {
    let definition = &table.columns[column];
    let (least, most) = bounds(&definition.ty)?;
    let amount = to_integer(&definition.ty, value)?;
    let amount = if negative { amount.checked_neg()? } else { amount };
    Some(Change { field: definition.id, by: By::Adding { amount, least, most } })
}

/// The integers that a column of the type may hold, if it is one of those that are added to exactly.
pub fn bounds(ty: &SqlType) -> Option<(i128, i128)> {
    Some(match ty {
        SqlType::Int2 => (i16::MIN.into(), i16::MAX.into()),
        SqlType::Int4 => (i32::MIN.into(), i32::MAX.into()),
        SqlType::Int8 => (i64::MIN.into(), i64::MAX.into()),
        SqlType::Numeric(_) => {
            let beyond = 10i128.pow(u32::from(ty.decimal_shape().0));
            (1 - beyond, beyond - 1)
        }
        _ => return None,
    })
}

/// The error of a sum that a column of the type cannot hold.
pub fn overflow(ty: &SqlType) -> SqlError {
    match ty {
        SqlType::Numeric(_) => SqlError::new(SqlState::NumericValueOutOfRange, "numeric field overflow"),
        ty => SqlError::out_of_range(ty.name()),
    }
}
