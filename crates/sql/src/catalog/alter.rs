//! One change of a table: of its descriptor, with the names and keys that come and go with it.
//!
//! What becomes of its rows is the caller's affair, who knows expressions; columns that are added or dropped need not touch them (see
//! `storage/row_codec.rs`).

use crate::catalog::define::{self, duplicate_constraint};
use crate::catalog::layout::{Entry, garbage_key, relation_key};
use crate::catalog::names::{COLUMNS_MAX, candidates, check_keys, check_name, choose, key_positions};
use crate::catalog::{CatalogView, CheckSpec, ColumnSpec, GeneratedSpec, KeySpec};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::{self, rename_column};
use crate::schema::{Column, TableDescriptor};
use crate::storage::{ROW_ID_COLUMN, ROW_ID_TYPE, index_prefix};
use rhumb_commit::transaction::Transaction;
use rhumb_core::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

impl CatalogView {
    /// The table of that name as it is now, past the cache, to be altered. Errors: 3D000, 42P01, 42809.
    pub async fn table_to_alter(&mut self, txn: &mut dyn Transaction, database: &str, name: &str) -> SqlResult<Arc<TableDescriptor>> {
        let database = self.fresh_database(txn, database).await?;
        self.fresh_table(txn, database.id, name).await
    }

    /// From here on the table is as `table`, which has the name that it had.
    pub fn alter(&mut self, txn: &mut dyn Transaction, table: TableDescriptor) -> SqlResult<Arc<TableDescriptor>> {
        check_keys(&table)?;
        if !table.is_sound() {
            return Err(SqlError::internal(format!("table \"{}\" would contradict itself", table.name)));
        }
        let table = Arc::new(table);
        self.write(txn, relation_key(table.database, &table.name), &Entry::Table(table.clone()))?;
        Ok(table)
    }

    /// `RENAME TO`. Errors: 42622, 42P07.
    pub async fn rename_table(&mut self, txn: &mut dyn Transaction, table: &TableDescriptor, to: &str) -> SqlResult<()> {
        self.claim_name(txn, table, to).await?;
        self.remove(txn, relation_key(table.database, &table.name))?;
        for index in table.index_names() {
            self.write(txn, relation_key(table.database, index), &Entry::Index(to.to_owned()))?;
        }
        let mut renamed = TableDescriptor { name: to.to_owned(), ..table.clone() };
        self.follow_owner(txn, &renamed).await?;
        self.follow_name(txn, &mut renamed, &table.name).await?;
        self.alter(txn, renamed).map(drop)
    }

    /// `RENAME CONSTRAINT`. Errors: 42622, 42704, 42710, 42P07.
    pub async fn rename_constraint(&mut self, txn: &mut dyn Transaction, table: &TableDescriptor, from: &str, to: &str) -> SqlResult<()> {
        if !table.has_constraint(from) {
            return Err(undefined_constraint(table, from));
        }
        if table.has_constraint(to) {
            return Err(duplicate_constraint(&table.name, to));
        }
        check_name(to)?;
        let mut renamed = table.clone();
        if let Some(check) = renamed.checks.iter_mut().find(|check| check.name == from) {
            check.name = to.to_owned();
        } else if let Some(position) = renamed.foreign_keys.iter().position(|foreign| foreign.name == from) {
            self.rename_foreign_key(txn, &mut renamed, position, to).await?;
        } else {
            return self.rename_index(txn, table, from, to).await;
        }
        self.alter(txn, renamed).map(drop)
    }

    /// Renames an index of the table, with the constraint that it is of. Errors: 42622, 42P07.
    pub async fn rename_index(&mut self, txn: &mut dyn Transaction, table: &TableDescriptor, from: &str, to: &str) -> SqlResult<()> {
        self.claim_name(txn, table, to).await?;
        if table.has_constraint(from) && table.has_constraint(to) {
            return Err(duplicate_constraint(&table.name, to));
        }
        let mut table = table.clone();
        match table.indexes.iter_mut().find(|index| index.name == from) {
            Some(index) => index.name = to.to_owned(),
            None if table.primary_key_name == from && !from.is_empty() => table.primary_key_name = to.to_owned(),
            None => return Err(SqlError::undefined_index(from)),
        }
        self.remove(txn, relation_key(table.database, from))?;
        self.write(txn, relation_key(table.database, to), &Entry::Index(table.name.clone()))?;
        self.alter(txn, table).map(drop)
    }

    /// `RENAME COLUMN`. Errors: 42622, 42701, 42703.
    pub fn rename_column(&mut self, txn: &mut dyn Transaction, table: &TableDescriptor, from: &str, to: &str) -> SqlResult<()> {
        let position = visible(table, from)?;
        check_new_column(table, to)?;
        let mut table = table.clone();
        table.columns[position].name = to.to_owned();
        for check in table.checks.iter_mut().filter(|check| check.columns.contains(&position)) {
            let unreadable = |error| SqlError::corrupted("a CHECK constraint", error);
            let mut condition = parser::expression(&check.condition).map_err(unreadable)?;
            rename_column(&mut condition, from, to);
            check.condition = parser::kept(&condition)?;
        }
        self.alter(txn, table).map(drop)
    }

    /// Has a column that there is take its values from a new sequence of its own. Errors: 22023, 42P07.
    pub async fn add_sequence(
        &mut self,
        txn: &mut dyn Transaction,
        table: &TableDescriptor,
        position: usize,
        generated: &GeneratedSpec,
    ) -> SqlResult<Arc<TableDescriptor>> {
        let mut table = table.clone();
        self.generate(txn, &mut table, position, generated, &mut BTreeSet::new()).await?;
        self.alter(txn, table)
    }

    /// `ADD COLUMN`, without its constraints; rows that there are have `missing` in it, as they would hold it. Errors: 42622, 42701, 54011.
    pub fn add_column(
        &mut self,
        txn: &mut dyn Transaction,
        table: &TableDescriptor,
        spec: &ColumnSpec,
        missing: Option<Vec<u8>>,
    ) -> SqlResult<Arc<TableDescriptor>> {
        let table = with_column(table, spec, missing)?;
        self.alter(txn, table)
    }

    /// `DROP COLUMN`, with the indexes over it and the constraints that name it, those of other tables only if `cascade`. Errors: 2BP01, 42703;
    /// 0A000 for a column of the primary key.
    pub async fn drop_column(&mut self, txn: &mut dyn Transaction, table: &TableDescriptor, name: &str, cascade: bool) -> SqlResult<()> {
        let position = visible(table, name)?;
        let id = table.columns[position].id;
        if table.primary_key.contains(&position) {
            return Err(SqlError::unsupported(format!("dropping column \"{name}\", which is part of the primary key, is not supported"))
                .with_hint("Copy the rows into a new table."));
        }
        let mut table = table.clone();
        while let Some(index) = table.indexes.iter().position(|index| index.columns.contains(&position)) {
            self.take_index(txn, &mut table, index)?;
        }
        table.checks.retain(|check| !check.columns.contains(&position));
        while let Some(foreign) = table.foreign_keys.iter().position(|foreign| foreign.columns.contains(&position)) {
            self.take_foreign_key(txn, &mut table, foreign).await?;
        }
        remove_column(&mut table, position);
        self.drop_owned_by_column(txn, &mut table, id, cascade).await?;
        let what = format!("column {name} of table {}", table.name);
        self.settle_references(txn, &mut table, cascade, (&what, &what)).await?;
        self.alter(txn, table).map(drop)
    }

    /// `ADD CHECK`. Errors: 42622, 42703, 42710.
    pub fn add_check(&mut self, txn: &mut dyn Transaction, table: &TableDescriptor, spec: &CheckSpec) -> SqlResult<Arc<TableDescriptor>> {
        let mut table = table.clone();
        define::add_check(&mut table, spec)?;
        self.alter(txn, table)
    }

    /// `ADD PRIMARY KEY` to a table that has a hidden row id: the table as it becomes, whose rows are to be rewritten. Errors: 42622, 42703,
    /// 42701, 42P07, 42P16, 54011.
    pub async fn add_primary_key(
        &mut self,
        txn: &mut dyn Transaction,
        table: &TableDescriptor,
        spec: &KeySpec,
    ) -> SqlResult<Arc<TableDescriptor>> {
        let [hidden] = table.primary_key[..] else { return Err(second_primary_key(table)) };
        if !table.columns[hidden].hidden {
            return Err(second_primary_key(table));
        }
        let names = candidates(spec.name.as_deref(), &table.name, &[], "pkey")?;
        let mut taken = self.taken_names(txn, table.database, &names).await?;
        taken.extend(names.iter().filter(|name| table.has_constraint(name)).cloned());
        let name = choose(&names, &taken)?;
        let mut table = table.clone();
        remove_column(&mut table, hidden);
        let columns: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        table.primary_key = key_positions(&columns, &spec.columns)?;
        for &position in &table.primary_key {
            table.columns[position].nullable = false;
        }
        table.primary_key_name = name.clone();
        self.write(txn, relation_key(table.database, &name), &Entry::Index(table.name.clone()))?;
        self.alter(txn, table)
    }

    /// `DROP CONSTRAINT` of the primary key: the table as it becomes, whose rows are to be rewritten with row ids at their end. Foreign keys that
    /// reference it go if `cascade`. Error 2BP01.
    pub async fn drop_primary_key(
        &mut self,
        txn: &mut dyn Transaction,
        table: &TableDescriptor,
        cascade: bool,
    ) -> SqlResult<Arc<TableDescriptor>> {
        let mut table = table.clone();
        self.remove(txn, relation_key(table.database, &table.primary_key_name))?;
        let name = std::mem::take(&mut table.primary_key_name);
        table.primary_key = vec![table.columns.len()];
        let id = table.next_column;
        table.columns.push(Column { nullable: false, hidden: true, ..Column::new(id, ROW_ID_COLUMN, ROW_ID_TYPE) });
        table.next_column += 1;
        let what = format!("constraint {name} on table {}", table.name);
        self.settle_references(txn, &mut table, cascade, (&what, &format!("index {name}"))).await?;
        self.alter(txn, table)
    }

    /// `DROP CONSTRAINT` of any but the primary key; foreign keys that reference it go if `cascade`. Errors: 2BP01, 42704.
    pub async fn drop_constraint(
        &mut self,
        txn: &mut dyn Transaction,
        table: &TableDescriptor,
        name: &str,
        cascade: bool,
    ) -> SqlResult<()> {
        let mut table = table.clone();
        if let Some(position) = table.checks.iter().position(|check| check.name == name) {
            table.checks.remove(position);
        } else if let Some(position) = table.foreign_keys.iter().position(|foreign| foreign.name == name) {
            self.take_foreign_key(txn, &mut table, position).await?;
        } else if let Some(position) = table.indexes.iter().position(|index| index.constraint && index.name == name) {
            self.take_index(txn, &mut table, position)?;
            let what = format!("constraint {name} on table {}", table.name);
            self.settle_references(txn, &mut table, cascade, (&what, &format!("index {name}"))).await?;
        } else {
            return Err(undefined_constraint(&table, name));
        }
        self.alter(txn, table).map(drop)
    }

    /// Takes an index out of a descriptor: its name is free, and its entries are garbage.
    pub(super) fn take_index(&mut self, txn: &mut dyn Transaction, table: &mut TableDescriptor, position: usize) -> SqlResult<()> {
        let index = table.indexes.remove(position);
        txn.put(garbage_key(&index_prefix(table.database, table.id, index.id)), Value::default())?;
        self.remove(txn, relation_key(table.database, &index.name))
    }

    /// Refuses a name that a relation of the table's database has. Errors: 42622, 42P07.
    async fn claim_name(&mut self, txn: &mut dyn Transaction, table: &TableDescriptor, name: &str) -> SqlResult<()> {
        check_name(name)?;
        let taken = self.taken_names(txn, table.database, &[name.to_owned()]).await?;
        if taken.is_empty() { Ok(()) } else { Err(SqlError::duplicate_table(name)) }
    }
}

/// The table with one more column at its end. Errors: 42622, 42701, 54011.
pub fn with_column(table: &TableDescriptor, spec: &ColumnSpec, missing: Option<Vec<u8>>) -> SqlResult<TableDescriptor> {
    check_new_column(table, &spec.name)?;
    if table.columns.len() >= COLUMNS_MAX {
        return Err(SqlError::new(SqlState::TooManyColumns, format!("tables can have at most {COLUMNS_MAX} columns")));
    }
    let mut table = table.clone();
    let column = Column::new(table.next_column, &spec.name, spec.ty);
    table.columns.push(Column { nullable: spec.nullable, default: spec.default.clone(), missing, ..column });
    table.next_column += 1;
    Ok(table)
}

/// The position of a column that clients see. Error 42703.
pub fn visible(table: &TableDescriptor, name: &str) -> SqlResult<usize> {
    let found = table.column(name).filter(|position| !table.columns[*position].hidden);
    found
        .ok_or_else(|| SqlError::new(SqlState::UndefinedColumn, format!("column \"{name}\" of relation \"{}\" does not exist", table.name)))
}

fn check_new_column(table: &TableDescriptor, name: &str) -> SqlResult<()> {
    check_name(name)?;
    if name == ROW_ID_COLUMN {
        let message = format!("column name \"{name}\" conflicts with a system column name");
        return Err(SqlError::new(SqlState::DuplicateColumn, message));
    }
    if table.column(name).is_some() {
        let message = format!("column \"{name}\" of relation \"{}\" already exists", table.name);
        return Err(SqlError::new(SqlState::DuplicateColumn, message));
    }
    Ok(())
}

/// Takes a column out that no key, index or constraint names; those behind it move up.
fn remove_column(table: &mut TableDescriptor, position: usize) {
    debug_assert!(table.indexes.iter().all(|index| !index.columns.contains(&position)), "no index names it");
    table.columns.remove(position);
    let keys = table.indexes.iter_mut().map(|index| &mut index.columns);
    let keys = keys.chain(table.checks.iter_mut().map(|check| &mut check.columns));
    let keys = keys.chain(table.foreign_keys.iter_mut().map(|foreign| &mut foreign.columns));
    for behind in keys.chain([&mut table.primary_key]).flatten().filter(|other| **other > position) {
        *behind -= 1;
    }
}

fn second_primary_key(table: &TableDescriptor) -> SqlError {
    SqlError::new(SqlState::InvalidTableDefinition, format!("multiple primary keys for table \"{}\" are not allowed", table.name))
}

/// 42704.
pub fn undefined_constraint(table: &TableDescriptor, name: &str) -> SqlError {
    SqlError::new(SqlState::UndefinedObject, format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name))
}
