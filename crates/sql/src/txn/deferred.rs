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
/// How often `SET CONSTRAINTS` may say something in a transaction.
const SAID_MAX: usize = 1_000;

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

/// Looks whether what is referenced is there; if not, whether the rows that were written are there still, and who references what is gone.
/// Error 23503.
pub async fn check_references(txn: &mut dyn Transaction, references: &[&Reference]) -> SqlResult<()> {
    let keys: BTreeSet<Key> = references.iter().filter_map(|reference| reference.key.clone()).collect();
    let there = storage::existing(txn, &keys).await?;
    let is_missing = |reference: &&Reference| reference.key.as_ref().is_none_or(|key| !there.contains(key));
    let missing: Vec<&Reference> = references.iter().copied().filter(is_missing).collect();
    if let Some(reference) = broken_by_row(txn, &missing).await? {
        return Err(not_present(reference));
    }
    // Of constraints that have come and gone meanwhile, too, which share a place.
    let mut gone: BTreeMap<(TableId, &String, &Vec<usize>), Vec<&Reference>> = BTreeMap::new();
    for reference in missing.into_iter().filter(|reference| matches!(reference.noted, Noted::Gone(_))) {
        let ForeignKey { name, columns, .. } = reference.foreign();
        gone.entry((reference.child.id, name, columns)).or_default().push(reference);
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

/// The references that a transaction looks at when it commits, and what it says of constraints meanwhile.
#[derive(Debug, Default)]
pub struct Deferred {
    noted: Vec<Later>,
    /// What `SET CONSTRAINTS` said, the last word last: of the constraint of this name, or of all; true if it is deferred.
    said: Vec<(Option<String>, bool)>,
}

/// A reference that is looked at later.
#[derive(Debug)]
struct Later {
    reference: Reference,
    /// Once it was looked at: how much `SET CONSTRAINTS` had said by then.
    settled: Option<usize>,
}

/// How far a transaction had got with its constraints.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    noted: usize,
    said: usize,
}

impl Deferred {
    /// True if a reference is to be looked at by the commit.
    pub fn defers(&self, reference: &Reference) -> bool {
        let foreign = reference.foreign();
        let restricted = matches!(reference.noted, Noted::Gone(_)) && reference.key.is_none();
        let named = |name: &Option<String>| name.as_ref().is_none_or(|name| *name == foreign.name);
        let said = self.said.iter().rev().find(|(name, _)| named(name)).map(|(_, deferred)| *deferred);
        foreign.deferrable && !restricted && said.unwrap_or(foreign.initially_deferred)
    }

    /// True if nothing is to be looked at.
    pub fn is_settled(&self) -> bool {
        self.noted.iter().all(|later| later.settled.is_some())
    }

    /// Notes one. Error 54000.
    pub fn add(&mut self, reference: Reference) -> SqlResult<()> {
        if self.noted.len() >= REFERENCES_MAX {
            let message = format!("a transaction looks at no more than {REFERENCES_MAX} references when it commits");
            return Err(SqlError::new(SqlState::ProgramLimitExceeded, message).with_hint("Split the transaction into several."));
        }
        self.noted.push(Later { reference, settled: None });
        Ok(())
    }

    /// `SET CONSTRAINTS`: of these, or of all if none are named. What is not deferred any more is looked at. Errors 23503, 54000.
    pub async fn set(&mut self, txn: &mut dyn Transaction, names: &[String], deferred: bool) -> SqlResult<()> {
        if self.said.len() + names.len() >= SAID_MAX {
            let message = format!("a transaction says something of constraints at most {SAID_MAX} times");
            return Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
        }
        match names {
            [] => self.said.push((None, deferred)),
            names => self.said.extend(names.iter().map(|name| (Some(name.clone()), deferred))),
        }
        let now: Vec<usize> = (0..self.noted.len())
            .filter(|&place| self.noted[place].settled.is_none() && !self.defers(&self.noted[place].reference))
            .collect();
        self.look(txn, &now).await
    }

    /// Looks at all of them. Error 23503.
    pub async fn check(&mut self, txn: &mut dyn Transaction) -> SqlResult<()> {
        let open: Vec<usize> = (0..self.noted.len()).filter(|&place| self.noted[place].settled.is_none()).collect();
        self.look(txn, &open).await
    }

    async fn look(&mut self, txn: &mut dyn Transaction, places: &[usize]) -> SqlResult<()> {
        let references: Vec<&Reference> = places.iter().map(|&place| &self.noted[place].reference).collect();
        check_references(txn, &references).await?;
        let said = self.said.len();
        places.iter().for_each(|&place| self.noted[place].settled = Some(said));
        Ok(())
    }

    /// How far it has got, to be [gone back to](Deferred::go_back_to).
    pub fn mark(&self) -> Mark {
        Mark { noted: self.noted.len(), said: self.said.len() }
    }

    /// What was noted since counts no more; what was looked at since is to be looked at again.
    pub fn go_back_to(&mut self, mark: Mark) {
        self.noted.truncate(mark.noted);
        self.said.truncate(mark.said);
        for later in &mut self.noted {
            later.settled = later.settled.filter(|said| *said <= mark.said);
        }
    }

    /// Refuses to change a table while references of it, or to it, are still to be looked at. Error 55006.
    pub fn refuse_change(&self, statement: &str, table: &str) -> SqlResult<()> {
        let touches = |reference: &Reference| reference.child.name == table || reference.foreign().parent == table;
        if !self.noted.iter().any(|later| later.settled.is_none() && touches(&later.reference)) {
            return Ok(());
        }
        let message = format!("cannot {statement} \"{table}\" because it has pending trigger events");
        Err(SqlError::new(SqlState::ObjectInUse, message)
            .with_hint("Its foreign keys are still to be looked at: SET CONSTRAINTS ALL IMMEDIATE does so."))
    }
}
