//! Where the catalog lies in the key space, and how its values are written.
//!
//! ```text
//!   [0][1][0]                          → the last id given to a database or table
//!   [0][2][0] name                     → a database
//!   [0][3][0] [database] name          → a relation: a table, the table that an index belongs to, or a sequence
//!   [0][4][0] prefix of dropped keys   → nothing: to be reclaimed
//!   [0][5][0] [database]               → the settings that its sessions begin with
//!   [0][6][0] [database]               → it is dropped, in a key space other than that of the names: nothing, or which one
//!   [0][7][0] [database] name          → a procedure
//! ```
//!
//! Each key space has all of that but the names of databases and their settings, which are in that of Replicated Commit alone. A
//! database of another protocol that is dropped is noted there under 6, and what it holds is dropped later, in its own key space,
//! where that note stays: nobody may create anything in it any more.
//!
//! Tables, indexes and sequences share their names, as in PostgreSQL. A value is a format byte and the structure in JSON. A later version may add
//! fields, which are left out where they say nothing; one that this version does not know is an error, since it may be a rule that rows
//! have to keep. Decoding is total, and checks what the rest of the crate relies on.

use crate::error::{SqlError, SqlResult};
use crate::schema::{DatabaseDescriptor, DatabaseId, IndexId, ProcedureDescriptor, SequenceDescriptor, TableDescriptor, TableId};
use crate::storage::index_prefix;
use rhumb_core::{Key, KeyRange, Value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The database id under which the catalog lies.
const CATALOG: DatabaseId = DatabaseId(0);
const COUNTER: TableId = TableId(1);
const DATABASES: TableId = TableId(2);
const RELATIONS: TableId = TableId(3);
const GARBAGE: TableId = TableId(4);
const SETTINGS: TableId = TableId(5);
const DROPPED: TableId = TableId(6);
const PROCEDURES: TableId = TableId(7);
/// The first byte of every value that this version writes.
const FORMAT: u8 = 2;

/// What a name in the catalog stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// A database.
    Database(#[serde(with = "shared")] Arc<DatabaseDescriptor>),
    /// A table.
    Table(#[serde(with = "shared")] Arc<TableDescriptor>),
    /// An index of the table of this name.
    Index(String),
    /// The settings that the sessions of a database begin with.
    Settings(BTreeMap<String, String>),
    /// A sequence.
    Sequence(#[serde(with = "shared")] Arc<SequenceDescriptor>),
    /// A procedure.
    Procedure(#[serde(with = "shared")] Arc<ProcedureDescriptor>),
}

/// A shared structure is written as the structure. By hand, since serde's own feature for it is one of the whole build.
mod shared {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;

    pub(super) fn serialize<T: Serialize, S: Serializer>(shared: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
        T::serialize(shared, serializer)
    }

    pub(super) fn deserialize<'a, T: Deserialize<'a>, D: Deserializer<'a>>(deserializer: D) -> Result<Arc<T>, D::Error> {
        T::deserialize(deserializer).map(Arc::new)
    }
}

pub(super) fn counter_key() -> Key {
    Key::new(index_prefix(CATALOG, COUNTER, IndexId(0)))
}

pub(super) fn database_key(name: &str) -> Key {
    named(DATABASES, &[], name)
}

pub(super) fn databases() -> KeyRange {
    KeyRange::prefix(&index_prefix(CATALOG, DATABASES, IndexId(0)))
}

pub(super) fn relation_key(database: DatabaseId, name: &str) -> Key {
    named(RELATIONS, &database.0.to_be_bytes(), name)
}

pub(super) fn relations(database: DatabaseId) -> KeyRange {
    KeyRange::prefix(&named(RELATIONS, &database.0.to_be_bytes(), "").0)
}

pub(super) fn procedure_key(database: DatabaseId, name: &str) -> Key {
    named(PROCEDURES, &database.0.to_be_bytes(), name)
}

pub(super) fn procedures(database: DatabaseId) -> KeyRange {
    KeyRange::prefix(&named(PROCEDURES, &database.0.to_be_bytes(), "").0)
}

pub(super) fn settings_key(database: DatabaseId) -> Key {
    Key::new([&index_prefix(CATALOG, SETTINGS, IndexId(0))[..], &database.0.to_be_bytes()].concat())
}

/// The key that says that a database is dropped, under which the key space of the names has which protocol it had.
pub(super) fn dropped_key(database: DatabaseId) -> Key {
    Key::new([&index_prefix(CATALOG, DROPPED, IndexId(0))[..], &database.0.to_be_bytes()].concat())
}

pub(super) fn dropped() -> KeyRange {
    KeyRange::prefix(&index_prefix(CATALOG, DROPPED, IndexId(0)))
}

/// The database in a key made by [`dropped_key`].
pub(super) fn dropped_database(key: &Key) -> Option<DatabaseId> {
    let id = key.0.strip_prefix(&index_prefix(CATALOG, DROPPED, IndexId(0))[..])?;
    Some(DatabaseId(u32::from_be_bytes(id.try_into().ok()?)))
}

pub(super) fn garbage() -> KeyRange {
    KeyRange::prefix(&index_prefix(CATALOG, GARBAGE, IndexId(0)))
}

/// The key that says that the keys with this prefix are to be reclaimed.
pub(super) fn garbage_key(prefix: &[u8]) -> Key {
    Key::new([&index_prefix(CATALOG, GARBAGE, IndexId(0)), prefix].concat())
}

/// The prefix in a key made by [`garbage_key`].
pub(super) fn garbage_prefix(key: &Key) -> &[u8] {
    key.0.strip_prefix(&index_prefix(CATALOG, GARBAGE, IndexId(0))[..]).unwrap_or_default()
}

/// The first 4 bytes of the keys of a database, or the first 8 of those of a table.
pub(super) fn data_prefix(database: DatabaseId, table: Option<TableId>) -> Vec<u8> {
    let mut prefix = database.0.to_be_bytes().to_vec();
    prefix.extend(table.into_iter().flat_map(|table| table.0.to_be_bytes()));
    prefix
}

fn named(table: TableId, scope: &[u8], name: &str) -> Key {
    Key::new([&index_prefix(CATALOG, table, IndexId(0)), scope, name.as_bytes()].concat())
}

pub(super) fn encode<T: Serialize>(structure: &T) -> SqlResult<Value> {
    let mut bytes = vec![FORMAT];
    serde_json::to_writer(&mut bytes, structure).map_err(|error| SqlError::internal(format!("cannot encode a descriptor: {error}")))?;
    Ok(Value::new(bytes))
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> SqlResult<T> {
    let corrupted = |why: &str| SqlError::corrupted("a catalog entry", why);
    match bytes.split_first() {
        Some((&FORMAT, body)) => serde_json::from_slice(body).map_err(|error| corrupted(&error.to_string())),
        Some(_) => Err(corrupted("it was written in a format that this version does not know")),
        None => Err(corrupted("it is empty")),
    }
}

/// The value of an entry.
pub fn encode_entry(entry: &Entry) -> SqlResult<Value> {
    encode(entry)
}

/// Reads an entry, and checks its positions, ids and types. Total: bytes that no version of Rhumb wrote are an error
/// (XX001).
pub fn decode_entry(bytes: &[u8]) -> SqlResult<Entry> {
    let entry = decode(bytes)?;
    match &entry {
        Entry::Table(table) if !table.is_sound() => Err(SqlError::corrupted("a table descriptor", "it contradicts itself")),
        Entry::Sequence(sequence) if !sequence.is_sound() => Err(SqlError::corrupted("a sequence", "it contradicts itself")),
        Entry::Procedure(procedure) if !procedure.is_sound() => Err(SqlError::corrupted("a procedure", "it contradicts itself")),
        _ => Ok(entry),
    }
}
