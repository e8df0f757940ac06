//! From what a `CREATE TABLE` asks for to a descriptor.

use crate::catalog::names::{COLUMNS_MAX, candidates, check_name, key_positions};
use crate::catalog::{CheckSpec, TableSpec};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::{Check, Column, DatabaseId, Index, IndexId, TableDescriptor, TableId};
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
            nullable: column.nullable && !primary_key.contains(&(id as usize - 1)),
            default: column.default.clone(),
            ..Column::new(id, &column.name, column.ty)
        })
        .collect();
    if spec.primary_key.is_none() {
        let id = columns.len() as u32 + 1;
        columns.push(Column { nullable: false, hidden: true, ..Column::new(id, ROW_ID_COLUMN, ROW_ID_TYPE) });
    }
    let indexes: Vec<Index> = (1..)
        .zip(spec.unique.iter().zip(unique_names))
        .map(|(id, (key, name))| {
            Ok(Index { id: IndexId(id), name, unique: true, constraint: true, columns: key_positions(&names, &key.columns)? })
        })
        .collect::<SqlResult<_>>()?;
    let (next_column, next_index) = (columns.len() as u32 + 1, indexes.len() as u32 + 1);
    let (name, checks) = (spec.name.clone(), Vec::new());
    let mut table = TableDescriptor {
        database,
        id,
        name,
        columns,
        primary_key,
        primary_key_name,
        indexes,
        checks,
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        sequences: Vec::new(),
        next_column,
        next_index,
    };
    for check in &spec.checks {
        add_check(&mut table, check)?;
    }
    Ok(table)
}

/// Adds a `CHECK` constraint, under the name asked for or the first of PostgreSQL's that is free. Errors: 42703, 42710.
pub(super) fn add_check(table: &mut TableDescriptor, spec: &CheckSpec) -> SqlResult<()> {
    let position = |name: &String| {
        let position = table.column(name).filter(|position| !table.columns[*position].hidden);
        position.ok_or_else(|| SqlError::undefined_column(name))
    };
    let columns: Vec<usize> = spec.columns.iter().map(position).collect::<SqlResult<_>>()?;
    let named = if let [one] = spec.columns.as_slice() { std::slice::from_ref(one) } else { &[] };
    let names = candidates(spec.name.as_deref(), &table.name, named, "check")?;
    let name = names.iter().find(|name| !table.has_constraint(name)).ok_or_else(|| duplicate_constraint(&table.name, &names[0]))?;
    table.checks.push(Check { name: name.clone(), condition: spec.condition.clone(), columns });
    Ok(())
}

/// 42710.
pub(super) fn duplicate_constraint(table: &str, name: &str) -> SqlError {
    SqlError::new(SqlState::DuplicateObject, format!("constraint \"{name}\" for relation \"{table}\" already exists"))
}
