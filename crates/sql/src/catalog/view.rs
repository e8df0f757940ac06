//! The catalog as one transaction reads and writes it.

use crate::catalog::Catalog;
use crate::catalog::cache::Known;
use crate::catalog::layout::{
    Entry, counter_key, database_key, decode, decode_entry, dropped_key, encode, encode_entry, relation_key, relations,
};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::planted::{self, Planted};
use crate::schema::{DEFAULT_DATABASE, DatabaseDescriptor, SequenceDescriptor, TableDescriptor, TableId};
use rhumb_commit::transaction::{ReadMode, Transaction, TxnError};
use rhumb_core::{Key, KeyRange, Row, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Entries read in one round by a listing.
const LISTING_PAGE: usize = 2_048;
/// The id before the first that is given out: 0 is the catalog, 1 the default database.
const LAST_RESERVED_ID: u32 = 1;

/// One transaction's use of the catalog. It answers from the gateway's cache, or this region's replica, where that is
/// sound, sees what the transaction itself created or dropped, and remembers what it used, so that a conflict can drop
/// it from the cache.
///
/// A stale read sees the catalog of its own time, so it neither uses the cache nor fills it.
#[derive(Debug)]
pub struct CatalogView {
    catalog: Arc<Catalog>,
    /// The one database that there is for it, where the names of databases are in another key space.
    database: Option<Arc<DatabaseDescriptor>>,
    /// What this transaction was told already.
    used: BTreeMap<Key, Used>,
    /// What it created, or dropped (`None`): to be read from its own writes.
    changed: Arc<BTreeMap<Key, Option<Entry>>>,
    /// True if this region's replica may be asked.
    asks_nearby: bool,
    /// True if a majority is to be asked for all.
    distrusts_cache: bool,
    /// The sequences that it has altered, or whose counters it has read, be it that it has undone that since.
    counted: BTreeSet<TableId>,
    /// What it showed. Nobody else uses that before a commit has validated it.
    nearby: Vec<(Key, Timestamp, Entry)>,
}

/// What a transaction had created and dropped at some point.
#[derive(Clone, Debug)]
pub struct Changes(Arc<BTreeMap<Key, Option<Entry>>>);

/// A descriptor that a transaction uses.
#[derive(Debug)]
struct Used {
    entry: Entry,
    /// A majority was asked for it in this transaction: what else may be older than that.
    of_majority: bool,
}

impl Catalog {
    /// The catalog as one transaction uses it: begin one view with each transaction.
    pub fn view(self: &Arc<Catalog>) -> CatalogView {
        CatalogView::new(self.clone())
    }
}

impl CatalogView {
    pub(super) fn new(catalog: Arc<Catalog>) -> CatalogView {
        CatalogView {
            catalog,
            database: None,
            used: BTreeMap::new(),
            changed: Arc::default(),
            asks_nearby: false,
            distrusts_cache: false,
            counted: BTreeSet::new(),
            nearby: Vec::new(),
        }
    }

    /// The same view, which spares an optimistic transaction the trip to a majority: what the cache lacks it looks up at
    /// this region's replica. Should that one lag, the transaction ends in a conflict, so only one that then runs again
    /// may have it so.
    pub fn asking_nearby(mut self) -> CatalogView {
        self.asks_nearby = true;
        self
    }

    /// The same view, within a database whose name is not kept in this key space.
    pub fn within(mut self, database: Arc<DatabaseDescriptor>) -> CatalogView {
        self.database = Some(database);
        self
    }

    /// Has a majority asked for all descriptors from here on, or not any more: for definitions, which hold for longer than a transaction.
    pub fn distrust_cache(&mut self, distrusts: bool) {
        self.distrusts_cache = distrusts;
    }

    /// True if the names of databases are kept in this key space.
    pub fn lists_databases(&self) -> bool {
        self.database.is_none()
    }

    /// The database of that name. Error 3D000.
    pub async fn database(&mut self, txn: &mut dyn Transaction, name: &str) -> SqlResult<Arc<DatabaseDescriptor>> {
        match &self.database {
            Some(database) if database.name == name => return Ok(database.clone()),
            Some(_) => return Err(SqlError::undefined_database(name)),
            None => {}
        }
        if name == DEFAULT_DATABASE {
            return Ok(Arc::new(DatabaseDescriptor::default_database()));
        }
        match self.lookup(txn, database_key(name)).await? {
            Some(Entry::Database(database)) => Ok(database),
            _ => Err(SqlError::undefined_database(name)),
        }
    }

    /// The table of that name. Errors: 3D000, 42P01; 42809 for the name of an index.
    pub async fn table(&mut self, txn: &mut dyn Transaction, database: &str, name: &str) -> SqlResult<Arc<TableDescriptor>> {
        let database = self.database(txn, database).await?;
        match self.lookup(txn, relation_key(database.id, name)).await? {
            Some(Entry::Table(table)) => Ok(table),
            Some(entry) => {
                let detail = if let Entry::Sequence(_) = entry { "This is a sequence." } else { "This is an index." };
                Err(SqlError::new(SqlState::WrongObjectType, format!("cannot open relation \"{name}\"")).with_detail(detail))
            }
            None => Err(SqlError::undefined_table(name)),
        }
    }

    /// All tables and all sequences of a database by name, read afresh.
    pub async fn tables_and_sequences(
        &mut self,
        txn: &mut dyn Transaction,
        database: &str,
    ) -> SqlResult<(Vec<Arc<TableDescriptor>>, Vec<Arc<SequenceDescriptor>>)> {
        let database = self.database(txn, database).await?;
        let (mut tables, mut sequences) = (Vec::new(), Vec::new());
        for (_, entry) in self.scan_entries(txn, relations(database.id)).await? {
            match entry {
                Entry::Table(table) => tables.push(table),
                Entry::Sequence(sequence) => sequences.push(sequence),
                _ => {}
            }
        }
        Ok((tables, sequences))
    }

    /// All tables of a database by name, read afresh.
    pub async fn tables(&mut self, txn: &mut dyn Transaction, database: &str) -> SqlResult<Vec<Arc<TableDescriptor>>> {
        self.tables_and_sequences(txn, database).await.map(|(tables, _)| tables)
    }

    /// True if a descriptor came from the cache or from this region's replica alone, so that an error of planning (class
    /// 42 or 3D) may be the fault of a stale one: then `invalidate` and plan again, once, before telling the client.
    pub fn may_be_stale(&self) -> bool {
        self.used.values().any(|used| !used.of_majority)
    }

    /// True if the transaction created or dropped something.
    pub fn changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// What the transaction created.
    pub(super) fn made(&self) -> impl Iterator<Item = &Entry> {
        self.changed.values().flatten()
    }

    pub(super) fn note_counted(&mut self, sequence: TableId) {
        self.counted.insert(sequence);
    }

    pub(super) fn has_counted(&self, sequence: TableId) -> bool {
        self.counted.contains(&sequence)
    }

    /// What the transaction created and dropped so far, to be [gone back to](Self::go_back_to).
    pub fn changes(&self) -> Changes {
        Changes(self.changed.clone())
    }

    /// Only these changes count any more: the transaction has undone all that it wrote since.
    pub fn go_back_to(&mut self, changes: &Changes) {
        self.changed = changes.0.clone();
        // A definition may have been interrupted.
        self.distrusts_cache = false;
    }

    /// Puts into the cache what this view created or read nearby, and drops from it what it dropped. Call it once the
    /// transaction has committed at `at`.
    pub fn committed(&mut self, at: Timestamp) {
        for (key, version, entry) in self.nearby.drain(..) {
            self.catalog.insert(key, version, entry);
        }
        for (key, entry) in Arc::unwrap_or_clone(std::mem::take(&mut self.changed)) {
            match entry {
                Some(entry) => self.catalog.insert(key, at, entry),
                None => self.catalog.suspect(std::iter::once(&key)),
            }
        }
    }

    /// Drops from the cache all that this view used or changed; a majority is asked for it next. Call it when the
    /// transaction did not commit and [`CatalogView::changed`] holds, or a conflict was the reason. What a majority was asked
    /// for in this transaction stays: run again, the transaction need not ask once more, and reads its rows at once, while
    /// they are as new as its snapshot.
    pub fn invalidate(&mut self) {
        let stale = self.used.iter().filter(|(_, used)| !used.of_majority).map(|(key, _)| key);
        self.catalog.suspect(stale.chain(self.changed.keys()));
        self.used.clear();
        self.nearby.clear();
    }

    pub(super) async fn lookup(&mut self, txn: &mut dyn Transaction, key: Key) -> SqlResult<Option<Entry>> {
        if let Some(used) = self.used.get(&key).filter(|used| used.of_majority || !self.distrusts_cache) {
            return Ok(Some(used.entry.clone()));
        }
        let cacheable = !matches!(txn.mode(), ReadMode::Stale(_)) && !self.changed.contains_key(&key);
        if cacheable
            && !self.distrusts_cache
            && let Some(entry) = self.lookup_nearby(txn, &key).await?
        {
            self.used.insert(key, Used { entry: entry.clone(), of_majority: false });
            return Ok(Some(entry));
        }
        let row = get_from_majority(txn, std::slice::from_ref(&key)).await?.remove(0);
        let Some(value) = row.value else { return Ok(None) };
        let entry = decode_entry(&value.0)?;
        if cacheable {
            self.catalog.insert(key.clone(), row.version, entry.clone());
        }
        if !self.changed.contains_key(&key) {
            self.used.insert(key, Used { entry: entry.clone(), of_majority: true });
        }
        Ok(Some(entry))
    }

    /// The entry as the cache or this region's replica has it: without a trip, and validated when the transaction commits.
    /// What is absent here may only not have arrived yet.
    async fn lookup_nearby(&mut self, txn: &mut dyn Transaction, key: &Key) -> SqlResult<Option<Entry>> {
        match self.catalog.get(key) {
            Some(Known::Entry(_, entry)) if planted::breaks(Planted::StaleDescriptors) => Ok(Some(entry)),
            Some(Known::Entry(version, entry)) => {
                txn.expect(key.clone(), version);
                Ok(Some(entry))
            }
            None if self.asks_nearby && txn.mode().is_optimistic() => {
                let row = txn.get(std::slice::from_ref(key)).await?.remove(0);
                let Some(value) = row.value else {
                    // Should the two reads differ, the transaction ends in a conflict; run again, it makes one of them.
                    self.catalog.suspect(std::iter::once(key));
                    return Ok(None);
                };
                let entry = decode_entry(&value.0)?;
                self.nearby.push((key.clone(), row.version, entry.clone()));
                Ok(Some(entry))
            }
            Some(Known::Suspect) | None => Ok(None),
        }
    }

    /// The entry as the nearest replica or the cache has it, whichever is newer.
    pub(super) async fn newest_known(&mut self, txn: &mut dyn Transaction, key: &Key) -> SqlResult<Option<Entry>> {
        let row = txn.get(std::slice::from_ref(key)).await?.remove(0);
        match (self.catalog.get(key), row.value) {
            (Some(Known::Entry(version, entry)), _) if version >= row.version => Ok(Some(entry)),
            (_, Some(value)) => decode_entry(&value.0).map(Some),
            (_, None) => Ok(None),
        }
    }

    /// The entries under these keys as they are now, past the cache.
    pub(super) async fn read_fresh(&mut self, txn: &mut dyn Transaction, keys: &[Key]) -> SqlResult<Vec<Option<Entry>>> {
        let rows = get_from_majority(txn, keys).await?;
        rows.into_iter().map(|row| row.value.map(|value| decode_entry(&value.0)).transpose()).collect()
    }

    /// The database of that name as it is now, past the cache, so that the transaction depends on its existence.
    pub(super) async fn fresh_database(&mut self, txn: &mut dyn Transaction, name: &str) -> SqlResult<Arc<DatabaseDescriptor>> {
        if let Some(database) = self.database.clone().filter(|database| database.name == name) {
            let dropped = get_from_majority(txn, &[dropped_key(database.id)]).await?.remove(0);
            return if dropped.value.is_none() { Ok(database) } else { Err(SqlError::undefined_database(name)) };
        }
        if name == DEFAULT_DATABASE {
            return Ok(Arc::new(DatabaseDescriptor::default_database()));
        }
        match self.read_fresh(txn, &[database_key(name)]).await?.remove(0) {
            Some(Entry::Database(database)) => Ok(database),
            _ => Err(SqlError::undefined_database(name)),
        }
    }

    pub(super) async fn scan_entries(&mut self, txn: &mut dyn Transaction, mut range: KeyRange) -> SqlResult<Vec<(Key, Entry)>> {
        let mut entries = Vec::new();
        loop {
            let page = txn.scan(range, LISTING_PAGE, false).await?;
            for row in page.rows {
                if let Some(value) = row.value {
                    entries.push((row.key, decode_entry(&value.0)?));
                }
            }
            match page.rest {
                Some(rest) => range = rest,
                None => return Ok(entries),
            }
        }
    }

    /// An id that no database or table ever had.
    pub(super) async fn allocate_id(&mut self, txn: &mut dyn Transaction) -> SqlResult<u32> {
        let row = get_from_majority(txn, &[counter_key()]).await?.remove(0);
        let last: u32 = row.value.map_or(Ok(LAST_RESERVED_ID), |value| decode(&value.0))?;
        let id = last.checked_add(1).ok_or_else(|| SqlError::too_large("all ids of databases and tables have been used"))?;
        txn.put(counter_key(), encode(&id)?)?;
        Ok(id)
    }

    pub(super) fn write(&mut self, txn: &mut dyn Transaction, key: Key, entry: &Entry) -> SqlResult<()> {
        txn.put(key.clone(), encode_entry(entry)?)?;
        self.mark_changed(key, Some(entry.clone()));
        Ok(())
    }

    pub(super) fn remove(&mut self, txn: &mut dyn Transaction, key: Key) -> SqlResult<()> {
        txn.delete(key.clone())?;
        self.mark_changed(key, None);
        Ok(())
    }

    fn mark_changed(&mut self, key: Key, entry: Option<Entry>) {
        self.used.remove(&key);
        Arc::make_mut(&mut self.changed).insert(key, entry);
    }
}

/// Reads what must not be missed because this region's replica lags: from a majority, even if the transaction reads
/// optimistically otherwise.
pub(super) async fn get_from_majority(txn: &mut dyn Transaction, keys: &[Key]) -> Result<Vec<Row>, TxnError> {
    let mode = txn.mode();
    if !mode.is_optimistic() {
        return txn.get(keys).await;
    }
    txn.set_mode(ReadMode::Locking)?;
    let rows = txn.get(keys).await;
    txn.set_mode(mode)?;
    rows
}
