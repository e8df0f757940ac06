//! `CREATE TABLE` and `DROP TABLE`.

use crate::catalog::define::{check, describe};
use crate::catalog::layout::{Entry, data_prefix, garbage_key, relation_key};
use crate::catalog::names::{candidates, check_keys, choose};
use crate::catalog::{CatalogView, TableSpec};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::{DatabaseId, TableDescriptor, TableId};
use rhumb_commit::transaction::Transaction;
use rhumb_core::{Key, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

impl CatalogView {
    /// `CREATE TABLE`. False if the name is taken and `if_not_exists`. Errors: 3D000, 42P07, 42701, 42703, 42622, 54011.
    pub async fn create_table(
        &mut self,
        txn: &mut dyn Transaction,
        database: &str,
        spec: &TableSpec,
        if_not_exists: bool,
    ) -> SqlResult<bool> {
        check(spec)?;
        let database = self.fresh_database(txn, database).await?;
        let primary = match &spec.primary_key {
            Some(key) => candidates(key.name.as_deref(), &spec.name, &[], "pkey")?,
            None => Vec::new(),
        };
        let unique: Vec<Vec<String>> =
            spec.unique.iter().map(|key| candidates(key.name.as_deref(), &spec.name, &key.columns, "key")).collect::<SqlResult<_>>()?;
        let wanted: Vec<String> = std::iter::once(&spec.name).chain(&primary).chain(unique.iter().flatten()).cloned().collect();
        let mut taken = self.taken_names(txn, database.id, &wanted).await?;
        if !taken.insert(spec.name.clone()) {
            return if if_not_exists { Ok(false) } else { Err(SqlError::duplicate_table(&spec.name)) };
        }
        let mut claim = |names: &[String]| {
            let name = choose(names, &taken)?;
            taken.insert(name.clone());
            Ok(name)
        };
        // The hidden row id has no constraint that could be named.
        let primary_name = if primary.is_empty() { String::new() } else { claim(&primary)? };
        let unique_names = unique.iter().map(|names| claim(names)).collect::<SqlResult<Vec<String>>>()?;
        let id = TableId(self.allocate_id(txn).await?);
        let mut table = describe(spec, database.id, id, primary_name, unique_names)?;
        check_keys(&table)?;
        for (position, column) in spec.columns.iter().enumerate() {
            if let Some(generated) = &column.generated {
                self.generate(txn, &mut table, position, generated, &mut taken).await?;
            }
        }
        for name in table.index_names() {
            self.write(txn, relation_key(database.id, name), &Entry::Index(table.name.clone()))?;
        }
        let mut table = Arc::new(table);
        self.write(txn, relation_key(database.id, &spec.name), &Entry::Table(table.clone()))?;
        for foreign in &spec.foreign_keys {
            table = self.add_foreign_key(txn, &table, foreign).await?;
        }
        Ok(true)
    }

    /// `DROP TABLE`: its rows cannot be reached from the commit on, and [`reclaim`](crate::catalog::reclaim) deletes them
    /// later. Foreign keys of others that reference it go if `cascade`, or if their tables are among the `dropped`. False if there was none and
    /// `if_exists`. Errors: 2BP01, 3D000, 42P01, 42809.
    pub async fn drop_table(
        &mut self,
        txn: &mut dyn Transaction,
        database: &str,
        name: &str,
        if_exists: bool,
        dropped: &BTreeSet<String>,
        cascade: bool,
    ) -> SqlResult<bool> {
        let database = self.fresh_database(txn, database).await?;
        let table = match self.fresh_table(txn, database.id, name).await {
            Err(error) if if_exists && error.state() == SqlState::UndefinedTable => return Ok(false),
            found => found?,
        };
        self.part_with(txn, &table, dropped, cascade).await?;
        self.drop_owned(txn, &table, dropped, cascade).await?;
        self.settle_defaults(txn, Some(&table), None).await?;
        for index in table.index_names() {
            self.remove(txn, relation_key(database.id, index))?;
        }
        self.remove(txn, relation_key(database.id, name))?;
        txn.put(garbage_key(&data_prefix(database.id, Some(table.id))), Value::default())?;
        Ok(true)
    }

    /// The table of that name as it is now, past the cache.
    pub(super) async fn fresh_table(
        &mut self,
        txn: &mut dyn Transaction,
        database: DatabaseId,
        name: &str,
    ) -> SqlResult<Arc<TableDescriptor>> {
        match self.read_fresh(txn, &[relation_key(database, name)]).await?.remove(0) {
            Some(Entry::Table(table)) => Ok(table),
            Some(_) => Err(SqlError::new(SqlState::WrongObjectType, format!("\"{name}\" is not a table"))),
            None => Err(SqlError::undefined_table(name)),
        }
    }

    /// Which of `names` relations have already.
    pub(super) async fn taken_names(
        &mut self,
        txn: &mut dyn Transaction,
        database: DatabaseId,
        names: &[String],
    ) -> SqlResult<BTreeSet<String>> {
        let keys: Vec<Key> = names.iter().map(|name| relation_key(database, name)).collect();
        let entries = self.read_fresh(txn, &keys).await?;
        Ok(names.iter().zip(entries).filter(|(_, entry)| entry.is_some()).map(|(name, _)| name.clone()).collect())
    }
}
