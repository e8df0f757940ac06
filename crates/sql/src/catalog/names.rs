//! Names: how long they may be, which are chosen for constraints and indexes that have none, and the columns they mean.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::TableDescriptor;
use std::collections::BTreeSet;

/// The most bytes of a name, as in PostgreSQL.
pub const NAME_BYTES_MAX: usize = 63;
/// The most columns of a table, as in PostgreSQL.
pub const COLUMNS_MAX: usize = 1_600;
/// The most columns of a key or index, as in PostgreSQL.
pub const KEY_COLUMNS_MAX: usize = 32;
/// How many names are tried for an index that has none.
const CANDIDATES: usize = 16;

/// Refuses an empty or overlong name.
pub(crate) fn check_name(name: &str) -> SqlResult<()> {
    if name.is_empty() {
        return Err(SqlError::syntax("zero-length delimited identifier"));
    }
    if name.len() > NAME_BYTES_MAX {
        let message = format!("identifier \"{name}\" is longer than {NAME_BYTES_MAX} bytes");
        return Err(SqlError::new(SqlState::NameTooLong, message));
    }
    Ok(())
}

/// The names that may be given to a relation: the one asked for, or those that PostgreSQL would try, in that order.
pub(super) fn candidates(asked: Option<&str>, table: &str, columns: &[String], suffix: &str) -> SqlResult<Vec<String>> {
    if let Some(name) = asked {
        check_name(name)?;
        return Ok(vec![name.to_string()]);
    }
    let parts: Vec<&str> = std::iter::once(table).chain(columns.iter().map(String::as_str)).collect();
    let stem = parts.join("_");
    let name = |number: usize| {
        let ending = if number == 0 { format!("_{suffix}") } else { format!("_{suffix}{number}") };
        let room = NAME_BYTES_MAX - ending.len();
        let end = (0..=room.min(stem.len())).rev().find(|end| stem.is_char_boundary(*end)).unwrap_or(0);
        stem[..end].to_string() + &ending
    };
    Ok((0..CANDIDATES).map(name).collect())
}

/// The first of `candidates` that is not in `taken`. Error 42P07.
pub(super) fn choose(candidates: &[String], taken: &BTreeSet<String>) -> SqlResult<String> {
    let free = candidates.iter().find(|name| !taken.contains(*name)).cloned();
    free.ok_or_else(|| SqlError::duplicate_table(&candidates[0]))
}

/// Refuses keys and indexes of columns whose values have no order there. Error 0A000.
pub fn check_keys(table: &TableDescriptor) -> SqlResult<()> {
    match table.unordered_key_column() {
        None => Ok(()),
        Some(column) => {
            let message = format!("column \"{}\" of type {} cannot be part of a key or an index", column.name, column.ty);
            Err(SqlError::unsupported(message))
        }
    }
}

/// The positions of a key's columns among the columns called `names`. Errors: 42703, 42701, 54011.
pub(super) fn key_positions(names: &[&str], key: &[String]) -> SqlResult<Vec<usize>> {
    if key.len() > KEY_COLUMNS_MAX {
        let message = format!("cannot have more than {KEY_COLUMNS_MAX} columns in an index");
        return Err(SqlError::new(SqlState::TooManyColumns, message));
    }
    let mut positions = Vec::with_capacity(key.len());
    for column in key {
        let position = names
            .iter()
            .position(|name| name == column)
            .ok_or_else(|| SqlError::new(SqlState::UndefinedColumn, format!("column \"{column}\" named in key does not exist")))?;
        if positions.contains(&position) {
            return Err(SqlError::new(SqlState::DuplicateColumn, format!("column \"{column}\" appears twice in the key")));
        }
        positions.push(position);
    }
    if positions.is_empty() {
        return Err(SqlError::syntax("a key must have at least one column"));
    }
    Ok(positions)
}
