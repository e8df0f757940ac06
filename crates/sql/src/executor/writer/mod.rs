//! Rows on their way into a table, under all of its constraints. Whatever writes rows does so through here.
//!
//! ```text
//!   rows ─▶ CHECK ─▶ storage: NOT NULL, unique keys, entries of indexes; in the same round the keys that the rows reference
//!              └─▶ follow: rows of other tables that reference what is gone ─▶ changed as their constraint says, and so on
//!   the statement ends ─▶ settle: is all there that is still referenced?
//! ```
//! What is not there while rows are written may be there when the statement ends, so it is looked for again then; or by the
//! [commit](crate::txn::TransactionHandle::commit), if the constraint is deferred.

mod follow;
mod rules;

pub use rules::{Child, Parent, Rules};

use crate::engine::Engine;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::planted::{self, Planted};
use crate::schema::TableDescriptor;
use crate::storage::{self, Beside, Cursor, Inserted, OnConflict, Row, ScanSpec, SearchedIndex};
use crate::txn::{Active, Reference, check_references, not_present};
use follow::Gone;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// The most references that a statement looks at when it ends.
const UNSETTLED_MAX: usize = 500_000;

/// Writes rows of a table.
#[derive(Debug)]
pub struct Writer {
    /// The table.
    pub table: Arc<TableDescriptor>,
    /// Its rules, and then those of tables whose rows may change along with its own.
    rules: Vec<Rules>,
}

/// What a statement has referenced, or taken from under references, and not found so far.
#[derive(Debug, Default)]
pub struct Unsettled(Vec<Reference>);

impl Writer {
    /// A writer by these rules, the first of which are those of its table.
    pub fn new(rules: Vec<Rules>) -> Writer {
        Writer { table: rules[0].table.clone(), rules }
    }

    /// True if writing looks at rows of other tables, or at other rows of this one.
    pub fn references(&self) -> bool {
        !self.table.foreign_keys.is_empty()
    }

    /// True if other rows may have to change, or forbid it, when a row of the table goes.
    pub fn is_referenced(&self) -> bool {
        !self.table.referenced_by.is_empty() && !planted::breaks(Planted::ReferencesLeft)
    }

    /// Inserts rows, as [`storage::insert`] does. Error 23514, too.
    pub async fn insert(
        &self,
        engine: &Engine,
        active: &mut Active,
        rows: &[Row],
        on_conflict: &OnConflict,
        unsettled: &mut Unsettled,
    ) -> SqlResult<Inserted> {
        let rules = &self.rules[0];
        rules.check(engine, rows.len(), |row| &rows[row])?;
        let references = rules.references(rows.iter().map(|row| (None, row)))?;
        let mut beside = beside(&references);
        let inserted = storage::insert(active.txn.as_mut(), &self.table, rows, on_conflict, &mut beside).await?;
        let written: HashSet<usize> = inserted.written.iter().copied().collect();
        unsettled.note(references.into_iter().filter(|(row, _)| written.contains(row)), &beside)?;
        Ok(inserted)
    }

    /// Replaces rows, as [`storage::update`] does, and changes or deletes those that reference what is gone as their constraints say. Errors 23503
    /// and 23514, too.
    pub async fn update(&self, engine: &Engine, active: &mut Active, changes: &[(Row, Row)], unsettled: &mut Unsettled) -> SqlResult<()> {
        self.change(engine, active, 0, changes, unsettled).await?;
        if !self.is_referenced() {
            return Ok(());
        }
        // Most updates leave the columns alone that others reference.
        let referenced: BTreeSet<usize> = self.rules[0].children.iter().flat_map(|child| child.columns.iter().copied()).collect();
        let changed = changes.iter().filter(|(old, new)| referenced.iter().any(|&column| old[column] != new[column]));
        let rows = changed.map(|(old, new)| (old.clone(), Some(new.clone()))).collect();
        self.follow(engine, active, Gone::of(rows), unsettled).await
    }

    /// Deletes rows, as [`storage::delete`] does, and changes or deletes those that reference them as their constraints say. Errors 23503 and 23514.
    pub async fn delete(&self, engine: &Engine, active: &mut Active, rows: &[Row], unsettled: &mut Unsettled) -> SqlResult<()> {
        storage::delete(active.txn.as_mut(), &self.table, rows)?;
        if !self.is_referenced() {
            return Ok(());
        }
        let rows = rows.iter().map(|row| (row.clone(), None)).collect();
        self.follow(engine, active, Gone::of(rows), unsettled).await
    }

    /// The statement ends: what it has not found is looked for once more, or by the commit if the constraint is deferred. Error 23503.
    pub async fn settle(&self, active: &mut Active, Unsettled(references): Unsettled) -> SqlResult<()> {
        let mut now = Vec::new();
        for reference in references {
            if active.deferred.defers(&reference) {
                active.deferred.add(reference)?;
            } else {
                now.push(reference);
            }
        }
        check_references(active.txn.as_mut(), &now.iter().collect::<Vec<_>>()).await
    }

    /// Refuses rows that break a `CHECK` constraint of the table. Error 23514.
    pub fn check<'a>(&self, engine: &Engine, rows: usize, row: impl Fn(usize) -> &'a Row) -> SqlResult<()> {
        self.rules[0].check(engine, rows, row)
    }

    /// Refuses a foreign key that rows of the table break already. Error 23503.
    pub async fn check_rows(&self, active: &mut Active, constraint: usize) -> SqlResult<()> {
        let mut cursor = Cursor::open(self.table.clone(), ScanSpec::all(SearchedIndex::Primary))?;
        loop {
            let page = cursor.next_page(active.txn.as_mut()).await?;
            if page.is_empty() {
                return Ok(());
            }
            let references = page.iter().map(|row| self.rules[0].reference(constraint, row));
            let references: Vec<Reference> = references.filter_map(Result::transpose).collect::<SqlResult<_>>()?;
            let keys = references.iter().filter_map(|reference| reference.key.clone()).collect();
            let found = storage::existing(active.txn.as_mut(), &keys).await?;
            let is_broken = |reference: &&Reference| reference.key.as_ref().is_none_or(|key| !found.contains(key));
            if let Some(broken) = references.iter().find(is_broken) {
                return Err(not_present(broken));
            }
        }
    }

    async fn change(
        &self,
        engine: &Engine,
        active: &mut Active,
        at: usize,
        changes: &[(Row, Row)],
        unsettled: &mut Unsettled,
    ) -> SqlResult<()> {
        let rules = &self.rules[at];
        rules.check(engine, changes.len(), |row| &changes[row].1)?;
        let references = rules.references(changes.iter().map(|(old, new)| (Some(old), new)))?;
        let mut beside = beside(&references);
        storage::update(active.txn.as_mut(), &rules.table, changes, &mut beside).await?;
        unsettled.note(references, &beside)
    }
}

impl Unsettled {
    /// Keeps those whose rows were not found.
    fn note(&mut self, references: impl IntoIterator<Item = (usize, Reference)>, beside: &Beside) -> SqlResult<()> {
        let missing = |reference: &Reference| reference.key.as_ref().is_none_or(|key| !beside.found.contains(key));
        references.into_iter().map(|(_, reference)| reference).filter(missing).try_for_each(|reference| self.push(reference))
    }

    /// Keeps one. Error 54000.
    fn push(&mut self, reference: Reference) -> SqlResult<()> {
        if self.0.len() >= UNSETTLED_MAX {
            let message = format!("a statement looks at no more than {UNSETTLED_MAX} references at its end");
            return Err(SqlError::new(SqlState::ProgramLimitExceeded, message).with_hint("Write fewer rows in one statement."));
        }
        self.0.push(reference);
        Ok(())
    }
}

/// The keys to be looked up along with those of the rows.
fn beside(references: &[(usize, Reference)]) -> Beside {
    Beside { wanted: references.iter().filter_map(|(_, reference)| reference.key.clone()).collect(), ..Beside::default() }
}
