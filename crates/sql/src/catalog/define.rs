//! From what a `CREATE TABLE` asks for to a descriptor.

use crate::catalog::TableSpec;
use crate::catalog::names::{COLUMNS_MAX, check_name, key_positions};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::{Column, DatabaseId, Index, IndexId, TableDescriptor, TableId};
use crate::storage::{ROW_ID_COLUMN, ROW_ID_TYPE};

/// Refuses what cannot be a table. Errors: 42622, 42701, 42703, 54011.
pub(super) fn check(spec: &TableSpec) -> SqlResult<()> {
    check_name(&spec.name)?;
    if spec.columns.len() > COLUMNS_MAX {
        return Err(SqlError::new(SqlState::TooManyColumns, format!("tables can have at most {COLUMNS_MAX} columns")));
    }
    for (position, column) in spec.columns.iter().enumerate() {
        check_name(&column.name)?;
        if column.name == ROW_ID_COLUMN {
            let message = format!("column name \"{ROW_ID_COLUMN}\" conflicts with a system column name");
            return Err(SqlError::new(SqlState::DuplicateColumn, message));
        }
        if spec.columns[..position].iter().any(|earlier| earlier.name == column.name) {
            return Err(SqlError::duplicate_column(&column.name));
        }
    }
    let names: Vec<&str> = spec.columns.iter().map(|column| column.name.as_str()).collect();
    for key in spec.primary_key.iter().chain(&spec.unique) {
        key_positions(&names, &key.columns)?;
    }
    Ok(())
}

/// The descriptor of a checked table, with these names for its primary key and its `UNIQUE` constraints.
pub(super) fn describe(
    spec: &TableSpec,
    database: DatabaseId,
    id: TableId,
    primary_key_name: String,
    unique_names: Vec<String>,
) -> SqlResult<TableDescriptor> {
    let names: Vec<&str> = spec.columns.iter().map(|column| column.name.as_str()).collect();
    let primary_key = match &spec.primary_key {
        Some(key) => key_positions(&names, &key.columns)?,
        None => vec![spec.columns.len()],
    };
    let mut columns: Vec<Column> = (1..)
        .zip(&spec.columns)
        .map(|(id, column)| Column {
            id,
            name: column.name.clone(),
            ty: column.ty,
            nullable: column.nullable && !primary_key.contains(&(id as usize - 1)),
            default: column.default.clone(),
            hidden: false,
        })
        .collect();
    if spec.primary_key.is_none() {
        let id = columns.len() as u32 + 1;
        columns.push(Column { id, name: ROW_ID_COLUMN.into(), ty: ROW_ID_TYPE, nullable: false, default: None, hidden: true });
    }
    let indexes: Vec<Index> = (1..)
        .zip(spec.unique.iter().zip(unique_names))
        .map(|(id, (key, name))| Ok(Index { id: IndexId(id), name, unique: true, columns: key_positions(&names, &key.columns)? }))
        .collect::<SqlResult<_>>()?;
    let next_index = indexes.len() as u32 + 1;
    Ok(TableDescriptor { database, id, name: spec.name.clone(), columns, primary_key, primary_key_name, indexes, next_index })
}
