//! `CREATE INDEX` and `DROP INDEX`.

use crate::catalog::layout::{Entry, relation_key};
use crate::catalog::names::{candidates, check_keys, choose, key_positions};
use crate::catalog::{CatalogView, IndexSpec};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::{Index, IndexId, TableDescriptor};
use crate::storage::fill_index;
use rhumb_commit::transaction::{Transaction, TxnError};
use std::sync::Arc;

impl CatalogView {
    /// `CREATE INDEX`, filling it from the rows there are, all in this transaction. False if the name is taken and
    /// `if_not_exists`. Errors: 3D000, 42P01, 42P07, 42703; 23505 if the rows break a unique index, 54000 if there are
    /// too many of them.
    pub async fn create_index(
        &mut self,
        txn: &mut dyn Transaction,
        database: &str,
        spec: &IndexSpec,
        if_not_exists: bool,
    ) -> SqlResult<bool> {
        let database = self.fresh_database(txn, database).await?;
        let table = self.fresh_table(txn, database.id, &spec.table).await?;
        let columns = key_positions(&table.nameable(), &spec.columns)?;
        let names = candidates(spec.name.as_deref(), &spec.table, &spec.columns, if spec.constraint { "key" } else { "idx" })?;
        let mut taken = self.taken_names(txn, database.id, &names).await?;
        taken.extend(names.iter().filter(|name| spec.constraint && table.has_constraint(name)).cloned());
        let name = match choose(&names, &taken) {
            Err(_) if if_not_exists && spec.name.is_some() => return Ok(false),
            chosen => chosen?,
        };
        let IndexSpec { unique, constraint, .. } = *spec;
        let index = Index { id: IndexId(table.next_index), name: name.clone(), unique, constraint, columns };
        let mut table = TableDescriptor::clone(&table);
        table.next_index += 1;
        table.indexes.push(index.clone());
        check_keys(&table)?;
        let table = Arc::new(table);
        fill_index(txn, &table, &index).await?;
        self.write(txn, relation_key(database.id, &name), &Entry::Index(spec.table.clone()))?;
        self.write(txn, relation_key(database.id, &spec.table), &Entry::Table(table))?;
        Ok(true)
    }

    /// `DROP INDEX`. False if there was none and `if_exists`. Errors: 3D000, 42704; 42809 for the name of a table; 2BP01
    /// for the index of a primary key; 40001 if its table was changed meanwhile.
    pub async fn drop_index(
        &mut self,
        txn: &mut dyn Transaction,
        database: &str,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> SqlResult<bool> {
        let table = match self.table_of_index(txn, database, name).await {
            Err(error) if if_exists && error.state() == SqlState::UndefinedObject => return Ok(false),
            found => found?,
        };
        let mut table = TableDescriptor::clone(&table);
        let Some(position) = table.indexes.iter().position(|index| index.name == name) else {
            return Err(of_constraint(&table, name));
        };
        if table.indexes[position].constraint {
            return Err(of_constraint(&table, name));
        }
        self.take_index(txn, &mut table, position)?;
        let what = format!("index {name}");
        self.settle_references(txn, &mut table, cascade, (&what, &what)).await?;
        self.alter(txn, table)?;
        Ok(true)
    }

    /// The table that an index of that name belongs to, as it is now. Errors: 3D000, 42704, 42809; 40001 if one of the two was changed meanwhile.
    pub async fn table_of_index(&mut self, txn: &mut dyn Transaction, database: &str, name: &str) -> SqlResult<Arc<TableDescriptor>> {
        let database = self.fresh_database(txn, database).await?;
        let table = match self.read_fresh(txn, &[relation_key(database.id, name)]).await?.remove(0) {
            Some(Entry::Index(table)) => table,
            Some(_) => return Err(SqlError::new(SqlState::WrongObjectType, format!("\"{name}\" is not an index"))),
            None => return Err(SqlError::undefined_index(name)),
        };
        // The two are read one after the other: where they do not fit together, another transaction has changed one of them meanwhile.
        let changed =
            || SqlError::from(TxnError::Conflict(format!("table {table} has changed while its index {name} was looked up").into()));
        match self.fresh_table(txn, database.id, &table).await {
            Err(error) if error.state() == SqlState::UndefinedTable => Err(changed()),
            Ok(found) if !found.index_names().any(|index| index == name) => Err(changed()),
            found => found,
        }
    }
}

/// 2BP01.
fn of_constraint(table: &TableDescriptor, name: &str) -> SqlError {
    let message = format!("cannot drop index {name} because constraint {name} on table {} requires it", table.name);
    SqlError::new(SqlState::DependentObjectsStillExist, message)
        .with_hint(format!("You can drop constraint {name} on table {} instead.", table.name))
}
