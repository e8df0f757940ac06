//! Databases, and the commit protocol that each declares.

use crate::catalog::layout::{self, Entry, data_prefix, database_key, garbage_key, relations};
use crate::catalog::names::check_name;
use crate::catalog::{CatalogView, DatabaseId};
use crate::error::{SqlError, SqlResult, SqlState};
use rhumb_commit::transaction::Transaction;
use rhumb_core::Value;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The database that always exists.
pub const DEFAULT_DATABASE: &str = "rhumb";
/// The commit protocols that a database can declare; the first is the default.
pub const PROTOCOLS: &[&str] = &["replicated_commit"];
/// The id of the database that always exists.
pub(super) const DEFAULT_DATABASE_ID: DatabaseId = DatabaseId(1);

/// A database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseDescriptor {
    /// Names it in keys.
    pub id: DatabaseId,
    /// Its name.
    pub name: String,
    /// How its transactions commit: one of [`PROTOCOLS`].
    pub protocol: String,
}

impl DatabaseDescriptor {
    /// The database that always exists. It has no row in the catalog.
    pub(super) fn default_database() -> DatabaseDescriptor {
        DatabaseDescriptor { id: DEFAULT_DATABASE_ID, name: DEFAULT_DATABASE.into(), protocol: PROTOCOLS[0].into() }
    }
}

impl CatalogView {
    /// `CREATE DATABASE name WITH (protocol = …)`. Errors: 42P04; 22023 for an unknown protocol.
    pub async fn create_database(&mut self, txn: &mut dyn Transaction, name: &str, protocol: Option<&str>) -> SqlResult<()> {
        check_name(name)?;
        let protocol = protocol.unwrap_or(PROTOCOLS[0]);
        if !PROTOCOLS.contains(&protocol) {
            return Err(SqlError::new(SqlState::InvalidParameterValue, format!("unknown commit protocol \"{protocol}\""))
                .with_hint(format!("The known protocols are: {}.", PROTOCOLS.join(", "))));
        }
        let key = database_key(name);
        if name == DEFAULT_DATABASE || self.read_fresh(txn, std::slice::from_ref(&key)).await?[0].is_some() {
            return Err(SqlError::duplicate_database(name));
        }
        let id = DatabaseId(self.allocate_id(txn).await?);
        let database = DatabaseDescriptor { id, name: name.into(), protocol: protocol.into() };
        self.write(txn, key, &Entry::Database(Arc::new(database)))
    }

    /// `DROP DATABASE`: with all of its tables. False if there was none and `if_exists`. Errors: 3D000; 55006 for the
    /// database that always exists.
    pub async fn drop_database(&mut self, txn: &mut dyn Transaction, name: &str, if_exists: bool) -> SqlResult<bool> {
        if name == DEFAULT_DATABASE {
            return Err(SqlError::new(SqlState::ObjectInUse, format!("cannot drop the default database \"{name}\"")));
        }
        let key = database_key(name);
        let Some(Entry::Database(database)) = self.read_fresh(txn, std::slice::from_ref(&key)).await?.remove(0) else {
            return if if_exists { Ok(false) } else { Err(SqlError::undefined_database(name)) };
        };
        for (relation, _) in self.scan_entries(txn, relations(database.id)).await? {
            self.remove(txn, relation)?;
        }
        self.remove(txn, key)?;
        txn.put(garbage_key(&data_prefix(database.id, None)), Value::default())?;
        Ok(true)
    }

    /// All databases by name, read afresh.
    pub async fn databases(&mut self, txn: &mut dyn Transaction) -> SqlResult<Vec<Arc<DatabaseDescriptor>>> {
        let mut all = vec![Arc::new(DatabaseDescriptor::default_database())];
        for (_, entry) in self.scan_entries(txn, layout::databases()).await? {
            if let Entry::Database(database) = entry {
                all.push(database);
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }
}
