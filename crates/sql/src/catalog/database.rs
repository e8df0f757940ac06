//! `CREATE`, `ALTER` and `DROP DATABASE`, and which databases there are.

use crate::catalog::CatalogView;
use crate::catalog::layout::{self, Entry, data_prefix, database_key, dropped_key, garbage_key, procedures, relations, settings_key};
use crate::catalog::names::check_name;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::protocols::PROTOCOLS;
use crate::schema::{DEFAULT_DATABASE, DatabaseDescriptor, DatabaseId};
use rhumb_commit::transaction::Transaction;
use rhumb_core::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

impl CatalogView {
    /// `CREATE DATABASE name WITH (protocol = …)`. Errors: 42P04; 22023 for an unknown protocol.
    pub async fn create_database(&mut self, txn: &mut dyn Transaction, name: &str, protocol: Option<&str>) -> SqlResult<()> {
        check_name(name)?;
        let protocol = protocol.unwrap_or(PROTOCOLS[0].0);
        let known = PROTOCOLS.map(|(name, _)| name);
        if !known.contains(&protocol) {
            return Err(SqlError::new(SqlState::InvalidParameterValue, format!("unknown commit protocol \"{protocol}\""))
                .with_hint(format!("The known protocols are: {}.", known.join(", "))));
        }
        let key = database_key(name);
        if name == DEFAULT_DATABASE || self.read_fresh(txn, std::slice::from_ref(&key)).await?[0].is_some() {
            return Err(SqlError::duplicate_database(name));
        }
        let id = DatabaseId(self.allocate_id(txn).await?);
        let database = DatabaseDescriptor { id, name: name.into(), protocol: protocol.into() };
        self.write(txn, key, &Entry::Database(Arc::new(database)))
    }

    /// `DROP DATABASE`: with all of its tables and procedures. False if there was none and `if_exists`. Errors: 3D000; 55006 for the
    /// database that always exists.
    pub async fn drop_database(&mut self, txn: &mut dyn Transaction, name: &str, if_exists: bool) -> SqlResult<bool> {
        if name == DEFAULT_DATABASE {
            return Err(SqlError::new(SqlState::ObjectInUse, format!("cannot drop the default database \"{name}\"")));
        }
        let key = database_key(name);
        let Some(Entry::Database(database)) = self.read_fresh(txn, std::slice::from_ref(&key)).await?.remove(0) else {
            return if if_exists { Ok(false) } else { Err(SqlError::undefined_database(name)) };
        };
        for named in [relations(database.id), procedures(database.id)] {
            for (key, _) in self.scan_entries(txn, named).await? {
                self.remove(txn, key)?;
            }
        }
        self.remove(txn, key)?;
        self.remove(txn, settings_key(database.id))?;
        // What it holds goes where it is: here, or where its protocol keeps it.
        let protocol = database.protocol()?;
        if protocol.holds_names() {
            txn.put(garbage_key(&data_prefix(database.id, None)), Value::default())?;
        } else {
            txn.put(dropped_key(database.id), protocol.note_of_dropped())?;
        }
        Ok(true)
    }

    /// `ALTER DATABASE`: changes the settings that its sessions begin with. Error 3D000.
    pub async fn alter_database(
        &mut self,
        txn: &mut dyn Transaction,
        name: &str,
        change: impl FnOnce(&mut BTreeMap<String, String>) + Send,
    ) -> SqlResult<()> {
        let key = settings_key(self.fresh_database(txn, name).await?.id);
        let mut settings = match self.read_fresh(txn, std::slice::from_ref(&key)).await?.remove(0) {
            Some(Entry::Settings(settings)) => settings,
            _ => BTreeMap::new(),
        };
        change(&mut settings);
        self.write(txn, key, &Entry::Settings(settings))
    }

    /// The settings that sessions of a database begin with, as the nearest replica has them or, if that is newer, this
    /// gateway. Elsewhere a change may so be seen a moment later; but a session begins without a trip, and where no majority
    /// can be reached.
    pub async fn database_settings(&mut self, txn: &mut dyn Transaction, id: DatabaseId) -> SqlResult<BTreeMap<String, String>> {
        match self.newest_known(txn, &settings_key(id)).await? {
            Some(Entry::Settings(settings)) => Ok(settings),
            _ => Ok(BTreeMap::new()),
        }
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
