//! The catalog as one transaction reads and writes it.

use crate::catalog::{Catalog, DatabaseDescriptor, IndexSpec, TableDescriptor, TableSpec};
use crate::error::SqlResult;
use rhumb_commit::transaction::Transaction;
use std::sync::Arc;

/// One transaction's use of the catalog. It answers from the gateway's cache where that is sound, sees what the
/// transaction itself created or dropped, and remembers what it used, so that a conflict can drop it from the cache.
pub struct CatalogView {
    pub(super) catalog: Arc<Catalog>,
}

#[allow(unused_variables, clippy::todo, missing_docs)]
impl CatalogView {
    /// The database of that name. Error 3D000.
    pub async fn database(&mut self, txn: &mut dyn Transaction, name: &str) -> SqlResult<Arc<DatabaseDescriptor>> {
        todo!()
    }

    /// The table of that name. Errors 3D000, 42P01, and 42809 for the name of an index.
    pub async fn table(&mut self, txn: &mut dyn Transaction, database: &str, name: &str) -> SqlResult<Arc<TableDescriptor>> {
        todo!()
    }

    /// All databases by name, read afresh.
    pub async fn databases(&mut self, txn: &mut dyn Transaction) -> SqlResult<Vec<Arc<DatabaseDescriptor>>> {
        todo!()
    }

    /// All tables of a database by name, read afresh.
    pub async fn tables(&mut self, txn: &mut dyn Transaction, database: &str) -> SqlResult<Vec<Arc<TableDescriptor>>> {
        todo!()
    }

    /// `CREATE DATABASE`. Errors 42P04, 22023 for an unknown protocol.
    pub async fn create_database(&mut self, txn: &mut dyn Transaction, name: &str, protocol: Option<&str>) -> SqlResult<()> {
        todo!()
    }

    /// `DROP DATABASE`. False if there was none and `if_exists`.
    pub async fn drop_database(&mut self, txn: &mut dyn Transaction, name: &str, if_exists: bool) -> SqlResult<bool> {
        todo!()
    }

    /// `CREATE TABLE`. False if it existed and `if_not_exists`.
    pub async fn create_table(
        &mut self,
        txn: &mut dyn Transaction,
        database: &str,
        spec: &TableSpec,
        if_not_exists: bool,
    ) -> SqlResult<bool> {
        todo!()
    }

    /// `DROP TABLE`. False if there was none and `if_exists`.
    pub async fn drop_table(&mut self, txn: &mut dyn Transaction, database: &str, name: &str, if_exists: bool) -> SqlResult<bool> {
        todo!()
    }

    /// `CREATE INDEX`, filling it from the rows there are. False if it existed and `if_not_exists`.
    pub async fn create_index(
        &mut self,
        txn: &mut dyn Transaction,
        database: &str,
        spec: &IndexSpec,
        if_not_exists: bool,
    ) -> SqlResult<bool> {
        todo!()
    }

    /// `DROP INDEX`. False if there was none and `if_exists`.
    pub async fn drop_index(&mut self, txn: &mut dyn Transaction, database: &str, name: &str, if_exists: bool) -> SqlResult<bool> {
        todo!()
    }

    /// True if a descriptor came from the cache, so that an error of planning (class 42) may be the fault of a stale
    /// one: then `invalidate` and plan again, once.
    pub fn used_cache(&self) -> bool {
        todo!()
    }

    /// Drops from the cache all that this view used or changed. Call it when the transaction ended in a conflict, and
    /// after the commit of one for which `changed` holds.
    pub fn invalidate(&mut self) {
        todo!()
    }

    /// True if the transaction created or dropped something.
    pub fn changed(&self) -> bool {
        todo!()
    }
}
