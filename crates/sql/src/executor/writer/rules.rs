//! What rows of a table have to keep.

use crate::engine::Engine;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::defaults::Defaults;
use crate::executor::evaluate::Compiled;
use crate::schema::{ForeignKey, Index, TableDescriptor};
use crate::storage::{self, Row, canonical, key_by};
use crate::txn::{Noted, Reference};
use crate::types::{Datum, SqlType, coerce};
use rhumb_core::Key;
use std::sync::Arc;

/// What rows of a table have to keep.
#[derive(Debug)]
pub struct Rules {
    /// The table.
    pub table: Arc<TableDescriptor>,
    /// The conditions of its `CHECK` constraints, in their order, each true where it is not false.
    pub checks: Vec<Compiled>,
    /// What its foreign keys reference, in their order.
    pub parents: Vec<Parent>,
    /// The constraints that reference it.
    pub children: Vec<Child>,
    /// What a constraint of it may set columns to.
    pub defaults: Option<Defaults>,
}

/// What a foreign key references.
#[derive(Clone, Debug)]
pub struct Parent {
    /// The table.
    pub table: Arc<TableDescriptor>,
    /// Its unique index; `None` is the primary key.
    pub index: Option<Index>,
    /// For each column of that, the place of the column of the foreign key that equals it.
    pub order: Vec<usize>,
}

/// A foreign key of which a table is the parent.
#[derive(Debug)]
pub struct Child {
    /// Whose: its place among the rules of the writer.
    pub rules: usize,
    /// Its place among the foreign keys there.
    pub constraint: usize,
    /// The positions of the columns that it references, in the order of its own.
    pub columns: Vec<usize>,
}

impl Rules {
    /// Refuses rows that break a `CHECK` constraint, or are NULL where none of these expects it. Errors 23502, 23514.
    pub(super) fn check<'a>(&self, engine: &Engine, rows: usize, row: impl Fn(usize) -> &'a Row) -> SqlResult<()> {
        if self.checks.is_empty() {
            return Ok(());
        }
        // Conditions are made for columns that are not NULL where they must not be.
        (0..rows).try_for_each(|position| storage::check_row(&self.table, row(position)))?;
        for (check, condition) in self.table.checks.iter().zip(&self.checks) {
            let kept = condition.select(engine, rows, |position, input| &row(position)[input])?;
            if let Some(position) = kept.iter().position(|kept| !kept) {
                let message = format!("new row for relation \"{}\" violates check constraint \"{}\"", self.table.name, check.name);
                return Err(SqlError::new(SqlState::CheckViolation, message)
                    .with_detail(storage::failing_row(&self.table, row(position)))
                    .with_constraint(&check.name));
            }
        }
        Ok(())
    }

    /// What rows reference, each with the place of its row; of rows that were there before, under the same key, what they did not.
    pub(super) fn references<'a>(&self, rows: impl Iterator<Item = (Option<&'a Row>, &'a Row)>) -> SqlResult<Vec<(usize, Reference)>> {
        let mut references = Vec::new();
        for (row, (old, new)) in rows.enumerate() {
            let same = |columns: &[usize]| old.is_some_and(|old| columns.iter().all(|&column| old[column] == new[column]));
            for (constraint, foreign) in self.table.foreign_keys.iter().enumerate() {
                if same(&foreign.columns) && same(&self.table.primary_key) {
                    continue;
                }
                references.extend(self.reference(constraint, new)?.map(|reference| (row, reference)));
            }
        }
        Ok(references)
    }

    /// What a row references by a foreign key; `None` if that is NULL.
    pub(super) fn reference(&self, constraint: usize, row: &Row) -> SqlResult<Option<Reference>> {
        let foreign = &self.table.foreign_keys[constraint];
        if foreign.columns.iter().any(|&column| row[column].is_null()) {
            return Ok(None);
        }
        let values = values_of(foreign, row);
        let key = self.key(constraint, &values)?;
        let noted = Noted::Row(storage::key_of(&self.table, row)?);
        Ok(Some(Reference { child: self.table.clone(), constraint, values, key, noted }))
    }

    /// The key of the row that has these values, in the order of the foreign key; `None` if none can have them.
    pub(super) fn key(&self, constraint: usize, values: &[Datum]) -> SqlResult<Option<Key>> {
        let (Parent { table, index, order }, foreign) = (&self.parents[constraint], &self.table.foreign_keys[constraint]);
        let columns = index.as_ref().map_or(&table.primary_key, |index| &index.columns);
        let own = |place: usize| &self.table.columns[foreign.columns[place]].ty;
        let theirs = columns.iter().zip(order).map(|(&column, &place)| same_as(own(place), &table.columns[column].ty, &values[place]));
        let Some(theirs) = theirs.collect::<Option<Vec<Datum>>>() else { return Ok(None) };
        match key_by(table, index.as_ref(), &theirs) {
            // Nor has any row a key that is too long for one.
            Err(error) if error.state() == SqlState::ProgramLimitExceeded => Ok(None),
            key => key,
        }
    }
}

/// The values of a foreign key in a row.
pub(super) fn values_of(foreign: &ForeignKey, row: &Row) -> Vec<Datum> {
    foreign.columns.iter().map(|&column| canonical(&row[column])).collect()
}

/// The value of the type `to` that equals one of the type `from`; `None` if there is none.
pub(super) fn same_as(from: &SqlType, to: &SqlType, value: &Datum) -> Option<Datum> {
    let same = canonical(&coerce(to, value.clone()).ok()?);
    let back = canonical(&coerce(from, same.clone()).ok()?);
    (back == canonical(value)).then_some(same)
}
