//! References that are looked at when a statement ends, or the transaction does.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::{ForeignKey, TableDescriptor, TableId};
use crate::storage::{self, Row, canonical, decode_row, each_value, each_with};
use crate::types::{Datum, to_text};
use rhumb_commit::transaction::Transaction;
use rhumb_core::Key;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The most references that a transaction looks at when it commits.
const REFERENCES_MAX: usize = 100_000;

/// That rows of a table with these values reference a row.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The table that has the foreign key.
    pub child: Arc<TableDescriptor>,
    /// Its place among the foreign keys there.
    pub constraint: usize,
    /// The values of its columns.
    pub values: Vec<Datum>,
    /// The key of the row referenced; `None`: none can have it, or none may.
    pub key: Option<Key>,
    /// Why it is looked at.
    pub noted: Noted,
}

/// Why a reference is looked at.
#[derive(Clone, Debug)]
pub enum Noted {
    /// A row was written that references: its key.
    Row(Key),
    /// A row that may be referenced is gone, or has another key: the old one, as messages show it.
    Gone(String),
}

impl Reference {
    fn foreign(&self) -> &ForeignKey {
        &self.child.foreign_keys[self.constraint]
    }
}

/// Looks whether what is referenced is there: in one round if it is, in a second for rows written whose parents are not, and in a scan for
/// each key that is gone. Error 23503.
pub async fn check_references(txn: &mut dyn Transaction, references: &[Reference]) -> SqlResult<()> {
    let keys: BTreeSet<Key> = references.iter().filter_map(|reference| reference.key.clone()).collect();
    let there = storage::existing(txn, &keys).await?;
    let missing: Vec<&Reference> =
        references.iter().filter(|reference| reference.key.as_ref().is_none_or(|key| !there.contains(key))).collect();
    if let Some(reference) = broken_by_row(txn, &missing).await? {
        return Err(not_present(reference));
    }
    let mut gone: BTreeMap<(TableId, usize), Vec<&Reference>> = BTreeMap::new();
    for reference in missing.into_iter().filter(|reference| matches!(reference.noted, Noted::Gone(_))) {
        gone.entry((reference.child.id, reference.constraint)).or_default().push(reference);
    }
    for references in gone.into_values() {
        let (child, foreign) = (&references[0].child, references[0].foreign());
        let wanted: HashSet<Vec<Datum>> = references.iter().map(|reference| reference.values.clone()).collect();
        let mut found = None;
        let first = |rows: Vec<Row>| {
            found = rows.into_iter().next();
            Ok(ControlFlow::Break(()))
        };
        each_with(txn, child, &foreign.columns, &wanted, first).await?;
        let Some(row) = found else { continue };
        let values: Vec<Datum> = foreign.columns.iter().map(|&column| canonical(&row[column])).collect();
        return Err(still_referenced(references.iter().find(|reference| reference.values == values).unwrap_or(&references[0])));
    }
    Ok(())
}

/// The first of these whose row is there still, as it was written.
async fn broken_by_row<'a>(txn: &mut dyn Transaction, missing: &[&'a Reference]) -> SqlResult<Option<&'a Reference>> {
    let mut of_row: HashMap<Key, Vec<usize>> = HashMap::new();
    for (place, reference) in missing.iter().enumerate() {
        if let Noted::Row(key) = &reference.noted {
            of_row.entry(key.clone()).or_default().push(place);
        }
    }
    let keys: BTreeSet<Key> = of_row.keys().cloned().collect();
    let mut broken: Option<usize> = None;
    let look = |key: Key, value| {
        for &place in &of_row[&key] {
            let reference = missing[place];
            let row = decode_row(&reference.child, &key, &value)?;
            let columns = reference.foreign().columns.iter().zip(&reference.values);
            if columns.into_iter().all(|(&column, value)| canonical(&row[column]) == *value) {
                broken = Some(broken.map_or(place, |known| known.min(place)));
            }
        }
        Ok(())
    };
    each_value(txn, keys.iter(), look).await?;
    Ok(broken.map(|place| missing[place]))
}

/// The error of a row that references one which is not there: 23503.
pub fn not_present(reference: &Reference) -> SqlError {
    let (child, foreign) = (&reference.child, reference.foreign());
    let columns: Vec<&str> = foreign.columns.iter().map(|&column| child.columns[column].name.as_str()).collect();
    let text = |(&column, value): (&usize, &Datum)| to_text(&child.columns[column].ty, value).unwrap_or_default();
    let values: Vec<String> = foreign.columns.iter().zip(&reference.values).map(text).collect();
    let message = format!("insert or update on table \"{}\" violates foreign key constraint \"{}\"", child.name, foreign.name);
    let detail = format!("Key ({})=({}) is not present in table \"{}\".", columns.join(", "), values.join(", "), foreign.parent);
    SqlError::new(SqlState::ForeignKeyViolation, message).with_detail(detail).with_constraint(&foreign.name)
}

/// The error of a row that is gone and is referenced: 23503.
fn still_referenced(reference: &Reference) -> SqlError {
    let (child, foreign) = (&reference.child.name, reference.foreign());
    let key = if let Noted::Gone(key) = &reference.noted { key.as_str() } else { "" };
    let message = format!(
        "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{child}\"",
        foreign.parent, foreign.name
    );
    SqlError::new(SqlState::ForeignKeyViolation, message)
        .with_detail(format!("Key {key} is still referenced from table \"{child}\"."))
        .with_constraint(&foreign.name)
}

/// The references that a transaction looks at when it commits, and what it says of constraints meanwhile. To be copied for a savepoint.
#[derive(Clone, Debug, Default)]
pub struct Deferred {
    pending: Arc<Vec<Reference>>,
    /// What `SET CONSTRAINTS` said, the last word last: of the constraint of this name, or of all; true if it is deferred.
    said: Arc<Vec<(Option<String>, bool)>>,
}

/// The most names that `SET CONSTRAINTS` may say something of in a transaction.
const SAID_MAX: usize = 10_000;

impl Deferred {
    /// True if a reference is to be looked at by the commit.
    pub fn defers(&self, reference: &Reference) -> bool {
        let foreign = reference.foreign();
        let restricted = matches!(reference.noted, Noted::Gone(_)) && reference.key.is_none();
        let named = |name: &Option<String>| name.as_ref().is_none_or(|name| *name == foreign.name);
        let said = self.said.iter().rev().find(|(name, _)| named(name)).map(|(_, deferred)| *deferred);
        foreign.deferrable && !restricted && said.unwrap_or(foreign.initially_deferred)
    }

    /// Notes one. Error 54000.
    pub fn add(&mut self, reference: Reference) -> SqlResult<()> {
        if self.pending.len() >= REFERENCES_MAX {
            let message = format!("a transaction looks at no more than {REFERENCES_MAX} references when it commits");
            return Err(SqlError::new(SqlState::ProgramLimitExceeded, message).with_hint("Split the transaction into several."));
        }
        Arc::make_mut(&mut self.pending).push(reference);
        Ok(())
    }

    /// `SET CONSTRAINTS`: of these, or of all if none are named. What is not deferred any more is looked at. Errors 23503, 54000.
    pub async fn set(&mut self, txn: &mut dyn Transaction, names: &[String], deferred: bool) -> SqlResult<()> {
        if names.is_empty() {
            self.said = Arc::new(vec![(None, deferred)]);
        }
        let said = Arc::make_mut(&mut self.said);
        for name in names {
            said.retain(|(known, _)| known.as_ref() != Some(name));
            said.push((Some(name.clone()), deferred));
        }
        if said.len() > SAID_MAX {
            return Err(SqlError::new(
                SqlState::ProgramLimitExceeded,
                format!("a transaction says something of at most {SAID_MAX} constraints"),
            ));
        }
        let (later, now): (Vec<Reference>, Vec<Reference>) = self.pending.iter().cloned().partition(|reference| self.defers(reference));
        check_references(txn, &now).await?;
        self.pending = Arc::new(later);
        Ok(())
    }

    /// Looks at all of them. Error 23503.
    pub async fn check(&mut self, txn: &mut dyn Transaction) -> SqlResult<()> {
        check_references(txn, &self.pending).await?;
        self.pending = Arc::default();
        Ok(())
    }

    /// Refuses to change a table while references of it, or to it, are still to be looked at. Error 55006.
    pub fn refuse_change(&self, statement: &str, table: &str) -> SqlResult<()> {
        let touches = |reference: &Reference| reference.child.name == table || reference.foreign().parent == table;
        if !self.pending.iter().any(touches) {
            return Ok(());
        }
        let message = format!("cannot {statement} \"{table}\" because it has pending trigger events");
        Err(SqlError::new(SqlState::ObjectInUse, message)
            .with_hint("Its foreign keys are still to be looked at: SET CONSTRAINTS ALL IMMEDIATE does so."))
    }
}
