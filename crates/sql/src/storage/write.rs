//! Rows into a table and out of it, with all of its indexes.
//!
//! Uniqueness is checked for the statement as a whole, as the SQL standard has it: `UPDATE t SET id = id + 1` succeeds,
//! because each key that a row takes is one that another row of the statement leaves. PostgreSQL checks row by row and
//! may refuse it.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::planted::{self, Planted};
use crate::schema::{Index, IndexId, TableDescriptor};
use crate::storage::Row;
use crate::storage::layout::{PRIMARY, decode_row, entry_key, entry_target, entry_value, key_of, unique_key, value_of};
use crate::storage::rows::{dangling, each_value};
use crate::types::to_text;
use rhumb_commit::transaction::Transaction;
use rhumb_core::{Key, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What an `INSERT` does with a row whose key exists already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// Fails with 23505.
    Error,
    /// Leaves the row out, whichever unique key is in the way (`None`), or only if it is this one ([`PRIMARY`] or a unique
    /// index); any other key in the way fails.
    DoNothing(Option<IndexId>),
    /// Returns the row that has the same key in this index, for the caller to [`update`]; any other key in the way fails.
    DoUpdate(IndexId),
}

/// What an `INSERT` did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inserted {
    /// The positions of the rows written.
    pub written: Vec<usize>,
    /// Of `DoUpdate`: the position of a row not written, and the existing row in its way.
    pub conflicts: Vec<(usize, Row)>,
}

/// A key that at most one row may have.
struct UniqueKey {
    index: IndexId,
    key: Key,
}

/// The bytes of all rows that `DoUpdate` may meet at once.
const MET_BYTES_MAX: usize = 64 << 20;

/// Values of what `DoUpdate` meets.
#[derive(Default)]
struct Met {
    values: BTreeMap<Key, Value>,
    bytes: usize,
}

impl Met {
    /// Holds on to one more. Error 54000.
    fn hold(&mut self, key: Key, value: Value) -> SqlResult<()> {
        self.bytes += value.0.len();
        if self.bytes > MET_BYTES_MAX {
            let message = format!("the existing rows that ON CONFLICT DO UPDATE meets have more than {} MiB at once", MET_BYTES_MAX >> 20);
            return Err(SqlError::too_large(message).with_hint("Insert fewer rows in one statement."));
        }
        self.values.insert(key, value);
        Ok(())
    }
}

/// Keys that are looked up beside those of rows to be written, in the same round: those of rows that they reference.
#[derive(Debug, Default)]
pub struct Beside {
    /// Which.
    pub wanted: BTreeSet<Key>,
    /// Those of them that there are.
    pub found: BTreeSet<Key>,
}

impl Beside {
    fn note(&mut self, key: &Key) {
        if self.wanted.contains(key) {
            self.found.insert(key.clone());
        }
    }
}

/// Inserts rows, in one round of reads; in two if `DoUpdate` meets rows by a secondary index. Nothing is written if it
/// fails. Errors: 23502, 23505, 21000 if `DoUpdate` meets the same row twice, 54000 if it meets too many bytes.
pub async fn insert(
    txn: &mut dyn Transaction,
    table: &TableDescriptor,
    rows: &[Row],
    on_conflict: &OnConflict,
    beside: &mut Beside,
) -> SqlResult<Inserted> {
    for row in rows {
        check_row(table, row)?;
    }
    let keys: Vec<Vec<UniqueKey>> = rows.iter().map(|row| unique_keys(table, row)).collect::<SqlResult<_>>()?;
    let updates = matches!(on_conflict, OnConflict::DoUpdate(_));
    let arbiters = keys.iter().flatten().filter(|unique| updates && arbitrates(on_conflict, unique.index));
    let arbiters: BTreeSet<&Key> = arbiters.map(|unique| &unique.key).collect();
    let (mut existing, mut held) = (BTreeSet::new(), Met::default());
    let wanted: Vec<Key> = beside.wanted.iter().cloned().collect();
    let note = |key: Key, value: Value| {
        // That there is a row is enough to know of any other.
        if arbiters.contains(&key) {
            held.hold(key.clone(), value)?;
        }
        beside.note(&key);
        existing.insert(key);
        Ok(())
    };
    each_value(txn, keys.iter().flatten().map(|unique| &unique.key).chain(&wanted), note).await?;
    if planted::breaks(Planted::UniqueUnchecked) {
        existing.retain(|key| keys.iter().any(|row_keys| row_keys[0].key == *key));
    }
    let mut claimed = BTreeSet::new();
    let mut inserted = Inserted::default();
    let mut met = Vec::new();
    for (position, row_keys) in keys.iter().enumerate() {
        let taken = |unique: &&UniqueKey| existing.contains(&unique.key) || claimed.contains(&unique.key);
        // The key that ON CONFLICT names decides before any other.
        let arbiter = row_keys.iter().filter(|unique| arbitrates(on_conflict, unique.index)).find(taken);
        match (on_conflict, arbiter) {
            (OnConflict::DoNothing(_), Some(_)) => continue,
            (OnConflict::DoUpdate(_), Some(unique)) => {
                if !claimed.insert(unique.key.clone()) {
                    return Err(affected_twice());
                }
                met.push((position, unique));
                continue;
            }
            _ => {}
        }
        if let Some(unique) = row_keys.iter().find(taken) {
            return Err(duplicate(table, unique.index, &rows[position]));
        }
        claimed.extend(row_keys.iter().map(|unique| unique.key.clone()));
        inserted.written.push(position);
    }
    inserted.conflicts = conflicting_rows(txn, table, &met, &held.values).await?;
    for position in &inserted.written {
        put_row(txn, table, &rows[*position])?;
    }
    Ok(inserted)
}

/// Replaces rows, as this transaction read them, with new ones, in one round of reads if a unique key changes or one is looked up beside, and in
/// none otherwise. Each row at most once. Nothing is written if it fails. Errors: 23502, 23505.
pub async fn update(txn: &mut dyn Transaction, table: &TableDescriptor, changes: &[(Row, Row)], beside: &mut Beside) -> SqlResult<()> {
    let mut freed = BTreeSet::new();
    let mut taken = Vec::new();
    for (position, (old, new)) in changes.iter().enumerate() {
        check_row(table, new)?;
        let before: BTreeSet<Key> = unique_keys(table, old)?.into_iter().map(|unique| unique.key).collect();
        let after = unique_keys(table, new)?;
        let kept: BTreeSet<&Key> = after.iter().map(|unique| &unique.key).filter(|key| before.contains(key)).collect();
        freed.extend(before.iter().filter(|key| !kept.contains(key)).cloned());
        taken.extend(after.into_iter().filter(|unique| !before.contains(&unique.key)).map(|unique| (position, unique)));
    }
    let mut existing = BTreeSet::new();
    let wanted: Vec<Key> = beside.wanted.iter().cloned().collect();
    let note = |key: Key, _| {
        beside.note(&key);
        existing.insert(key);
        Ok(())
    };
    each_value(txn, taken.iter().map(|(_, unique)| &unique.key).filter(|key| !freed.contains(key)).chain(&wanted), note).await?;
    existing.retain(|key| !freed.contains(key));
    let mut claimed = BTreeSet::new();
    for (position, unique) in &taken {
        if existing.contains(&unique.key) || !claimed.insert(&unique.key) {
            return Err(duplicate(table, unique.index, &changes[*position].1));
        }
    }
    // All deletions first: a key may pass from one row to another.
    for (old, new) in changes {
        if key_of(table, old)? != key_of(table, new)? {
            txn.delete(key_of(table, old)?)?;
        }
        for index in &table.indexes {
            let key = entry_key(table, index, old)?;
            if planted::breaks(Planted::EntriesLeft) {
                continue;
            }
            if key != entry_key(table, index, new)? {
                txn.delete(key)?;
            }
        }
    }
    for (old, new) in changes {
        let key = key_of(table, new)?;
        let moved = key != key_of(table, old)?;
        for index in &table.indexes {
            let entry = entry_key(table, index, new)?;
            if moved || entry != entry_key(table, index, old)? {
                txn.put(entry, entry_value(&key))?;
            }
        }
        txn.put(key, value_of(table, new)?)?;
    }
    Ok(())
}

/// Replaces all rows of a table, as this transaction read them, by those that they become in the table as it is altered. Errors: 23502,
/// 23505.
pub fn rewrite(txn: &mut dyn Transaction, before: &TableDescriptor, after: &TableDescriptor, rows: &[(Row, Row)]) -> SqlResult<()> {
    let mut claimed = BTreeSet::new();
    for (_, new) in rows {
        check_row(after, new)?;
        for UniqueKey { index, key } in unique_keys(after, new)? {
            if !claimed.insert(key) {
                return Err(duplicated(after, index, new));
            }
        }
    }
    // All deletions first: a key may pass from one row to another.
    for (old, _) in rows {
        txn.delete(key_of(before, old)?)?;
        for index in &before.indexes {
            txn.delete(entry_key(before, index, old)?)?;
        }
    }
    rows.iter().try_for_each(|(_, new)| put_row(txn, after, new))
}

/// Deletes rows, as this transaction read them, without a read.
pub fn delete(txn: &mut dyn Transaction, table: &TableDescriptor, rows: &[Row]) -> SqlResult<()> {
    for row in rows {
        txn.delete(key_of(table, row)?)?;
        for index in &table.indexes {
            txn.delete(entry_key(table, index, row)?)?;
        }
    }
    Ok(())
}

fn put_row(txn: &mut dyn Transaction, table: &TableDescriptor, row: &Row) -> SqlResult<()> {
    let key = key_of(table, row)?;
    for index in &table.indexes {
        txn.put(entry_key(table, index, row)?, entry_value(&key))?;
    }
    Ok(txn.put(key, value_of(table, row)?)?)
}

/// The keys of a row that no other row may have, the primary key first.
fn unique_keys(table: &TableDescriptor, row: &Row) -> SqlResult<Vec<UniqueKey>> {
    let mut keys = vec![UniqueKey { index: PRIMARY, key: key_of(table, row)? }];
    for index in table.indexes.iter().filter(|index| index.unique) {
        if let Some(key) = unique_key(table, index, index.columns.iter().map(|position| &row[*position]))? {
            keys.push(UniqueKey { index: index.id, key });
        }
    }
    Ok(keys)
}

fn arbitrates(on_conflict: &OnConflict, index: IndexId) -> bool {
    match on_conflict {
        OnConflict::Error => false,
        OnConflict::DoNothing(None) => true,
        OnConflict::DoNothing(Some(named)) | OnConflict::DoUpdate(named) => *named == index,
    }
}

/// The existing rows behind the keys that `DoUpdate` met.
async fn conflicting_rows(
    txn: &mut dyn Transaction,
    table: &TableDescriptor,
    met: &[(usize, &UniqueKey)],
    existing: &BTreeMap<Key, Value>,
) -> SqlResult<Vec<(usize, Row)>> {
    // A key that no row has yet was claimed by a row of this statement.
    let values: Vec<&Value> =
        met.iter().map(|(_, unique)| existing.get(&unique.key).ok_or_else(affected_twice)).collect::<SqlResult<_>>()?;
    let Some((_, first)) = met.first() else { return Ok(Vec::new()) };
    let positions = met.iter().map(|(position, _)| *position);
    let rows: Vec<Row> = match table.indexes.iter().find(|index| index.id == first.index) {
        None => met.iter().zip(values).map(|((_, unique), value)| decode_row(table, &unique.key, value)).collect::<SqlResult<_>>()?,
        Some(index) => {
            let targets: Vec<Key> = values.iter().map(|value| entry_target(table, index, value)).collect::<SqlResult<_>>()?;
            let mut rows = Met::default();
            each_value(txn, targets.iter(), |key, value| rows.hold(key, value)).await?;
            let row = |key| match rows.values.get(key) {
                Some(value) => decode_row(table, key, value),
                None => Err(dangling(txn, index)),
            };
            targets.iter().map(row).collect::<SqlResult<_>>()?
        }
    };
    Ok(positions.zip(rows).collect())
}

/// Refuses a row that has NULL where it must not. Error 23502.
pub fn check_row(table: &TableDescriptor, row: &Row) -> SqlResult<()> {
    if row.len() != table.columns.len() {
        return Err(SqlError::internal(format!("a row of {} values was given to table \"{}\"", row.len(), table.name)));
    }
    match table.columns.iter().zip(row).find(|(column, value)| !column.nullable && value.is_null()) {
        None => Ok(()),
        Some((column, _)) => Err(SqlError::not_null(&table.name, &column.name).with_detail(failing_row(table, row))),
    }
}

/// What PostgreSQL says of a row that a constraint refuses.
pub fn failing_row(table: &TableDescriptor, row: &Row) -> String {
    let values: Vec<String> = table.visible_columns().map(|position| text_of(table, row, position)).collect();
    format!("Failing row contains ({}).", values.join(", "))
}

pub(super) fn duplicate(table: &TableDescriptor, index: IndexId, row: &Row) -> SqlError {
    match table.indexes.iter().find(|candidate| candidate.id == index) {
        None => SqlError::duplicate_key(&table.primary_key_name, &own_key_text(table, &table.primary_key, row)),
        Some(Index { name, columns, .. }) => SqlError::duplicate_key(name, &own_key_text(table, columns, row)),
    }
}

/// The error of rows that have the same key in an index that is made.
pub(super) fn duplicated(table: &TableDescriptor, index: IndexId, row: &Row) -> SqlError {
    let found = table.indexes.iter().find(|candidate| candidate.id == index);
    let (name, columns) = found.map_or((&table.primary_key_name, &table.primary_key), |index| (&index.name, &index.columns));
    SqlError::new(SqlState::UniqueViolation, format!("could not create unique index \"{name}\""))
        .with_detail(format!("Key {} is duplicated.", own_key_text(table, columns, row)))
        .with_constraint(name)
}

fn own_key_text(table: &TableDescriptor, positions: &[usize], row: &Row) -> String {
    let names: Vec<&str> = positions.iter().map(|position| table.columns[*position].name.as_str()).collect();
    key_text(&names, table, positions, row)
}

/// A key as PostgreSQL's messages show it: `(a, b)=(1, x)`; the values are those of the columns at `positions`, whatever they are called.
pub fn key_text(names: &[&str], table: &TableDescriptor, positions: &[usize], row: &Row) -> String {
    let values: Vec<String> = positions.iter().map(|position| text_of(table, row, *position)).collect();
    format!("({})=({})", names.join(", "), values.join(", "))
}

fn text_of(table: &TableDescriptor, row: &Row, position: usize) -> String {
    to_text(&table.columns[position].ty, &row[position]).unwrap_or_else(|| "null".to_string())
}

fn affected_twice() -> SqlError {
    SqlError::new(SqlState::CardinalityViolation, "ON CONFLICT DO UPDATE command cannot affect row a second time")
        .with_hint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
}
