//! A table as the planner and the row layer see it.

use super::{DatabaseId, ForeignKey, Identity, IndexId, OwnedSequence, Referrer, TableId};
use crate::types::SqlType;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Names it in stored rows. Never used twice in its table.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub ty: SqlType,
    /// False for NOT NULL.
    pub nullable: bool,
    /// The expression, in SQL, of the value of rows that give none.
    pub default: Option<String>,
    /// What may be given to it, if it is an identity column: a sequence of its table gives it values then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// True for the row id of a table without a primary key, which `SELECT *` does not show.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// The value, as rows hold it, of rows that were written before the column was added; `None` is NULL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u8>>,
}

impl Column {
    /// A column that may be NULL and has no default.
    pub fn new(id: u32, name: impl Into<String>, ty: SqlType) -> Column {
        Column { id, name: name.into(), ty, nullable: true, default: None, identity: None, hidden: false, missing: None }
    }
}

/// A `CHECK` constraint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Its name, which no other constraint of its table has.
    pub name: String,
    /// The condition, in SQL, that must not be false for any row.
    pub condition: String,
    /// The positions of the columns that it names in [`TableDescriptor::columns`].
    pub columns: Vec<usize>,
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Names it in keys.
    pub id: IndexId,
    /// Its name.
    pub name: String,
    /// True if no two rows may have the same values, none of them NULL.
    pub unique: bool,
    /// True if it is that of a `UNIQUE` constraint, and goes only with that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub constraint: bool,
    /// The positions of its columns in [`TableDescriptor::columns`].
    pub columns: Vec<usize>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableDescriptor {
    /// The database it belongs to.
    pub database: DatabaseId,
    /// Names it in keys.
    pub id: TableId,
    /// Its name.
    pub name: String,
    /// Its columns; a row has one value for each, in this order.
    pub columns: Vec<Column>,
    /// The positions of the primary key's columns, at least one.
    pub primary_key: Vec<usize>,
    /// The name of the primary key's constraint; empty if the key is the hidden row id.
    pub primary_key_name: String,
    /// Its secondary indexes.
    pub indexes: Vec<Index>,
    /// Its `CHECK` constraints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Its `FOREIGN KEY` constraints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_keys: Vec<ForeignKey>,
    /// The constraints of tables that reference it, itself among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub referenced_by: Vec<Referrer>,
    /// The sequences that go with its columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequences: Vec<OwnedSequence>,
    /// The id of the next column.
    pub(crate) next_column: u32,
    /// The id of the next index.
    pub(crate) next_index: u32,
}

impl TableDescriptor {
    /// All columns, the hidden one included, as Arrow fields.
    pub fn arrow_schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.columns.iter().map(|column| column.ty.field(&column.name, column.nullable)).collect::<Vec<_>>()))
    }

    /// The position of the column of that name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The positions of the columns that `SELECT *` shows.
    pub fn visible_columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.columns.iter().enumerate().filter(|(_, column)| !column.hidden).map(|(position, _)| position)
    }

    /// The primary key (`None`) or the unique index whose columns are just these, in whatever order.
    pub fn unique_over(&self, columns: &[usize]) -> Option<Option<&Index>> {
        let just_these = |key: &[usize]| key.len() == columns.len() && columns.iter().all(|column| key.contains(column));
        if just_these(&self.primary_key) {
            return Some(None);
        }
        self.indexes.iter().find(|index| index.unique && just_these(&index.columns)).map(Some)
    }

    /// The sequence that gives an identity column its values.
    pub fn identity_sequence(&self, column: usize) -> Option<&str> {
        let Column { id, identity: Some(_), .. } = &self.columns[column] else { return None };
        self.sequences.iter().find(|owned| owned.identity && owned.column == *id).map(|owned| owned.name.as_str())
    }

    /// The position of the column with that id.
    pub fn position_of(&self, id: u32) -> Option<usize> {
        self.columns.iter().position(|column| column.id == id)
    }

    /// The positions of the columns with these ids; `None` if one is not there.
    pub fn positions_of(&self, ids: &[u32]) -> Option<Vec<usize>> {
        ids.iter().map(|id| self.position_of(*id)).collect()
    }

    /// The index of that name.
    pub fn index(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// True if it has a constraint of that name.
    pub(crate) fn has_constraint(&self, name: &str) -> bool {
        let keys = self.indexes.iter().filter(|index| index.constraint).map(|index| &index.name);
        let foreign_keys = self.foreign_keys.iter().map(|key| &key.name);
        let all = keys.chain(self.checks.iter().map(|check| &check.name)).chain(foreign_keys).chain([&self.primary_key_name]);
        all.filter(|known| !known.is_empty()).any(|known| known == name)
    }

    /// The names of its columns by position, as far as clients may name them: that of the hidden one is empty.
    pub(crate) fn nameable(&self) -> Vec<&str> {
        self.columns.iter().map(|column| if column.hidden { "" } else { column.name.as_str() }).collect()
    }

    /// The names of its indexes, the primary key's included if it has one.
    pub(crate) fn index_names(&self) -> impl Iterator<Item = &str> {
        let primary = Some(self.primary_key_name.as_str()).filter(|name| !name.is_empty());
        primary.into_iter().chain(self.indexes.iter().map(|index| index.name.as_str()))
    }

    /// A column of a key or an index whose values have no order there: an array, or an interval.
    pub(crate) fn unordered_key_column(&self) -> Option<&Column> {
        let positions = self.primary_key.iter().chain(self.indexes.iter().flat_map(|index| &index.columns));
        positions
            .filter_map(|position| self.columns.get(*position))
            .find(|column| matches!(column.ty, SqlType::Array(_) | SqlType::Interval))
    }

    /// True if all positions, ids and types are as the rest of the crate relies on: a descriptor read from the store is
    /// not used before this was checked.
    pub(crate) fn is_sound(&self) -> bool {
        let key = |positions: &[usize]| !positions.is_empty() && positions.iter().all(|position| *position < self.columns.len());
        self.database.0 > 0
            && self.columns.windows(2).all(|pair| pair[0].id < pair[1].id)
            && self.columns.iter().all(|column| column.id < self.next_column)
            && self.columns.iter().all(|column| column.ty.is_sound())
            && self.unordered_key_column().is_none()
            && key(&self.primary_key)
            && self.primary_key.iter().all(|position| !self.columns[*position].nullable)
            && self.primary_key.iter().any(|position| self.columns[*position].hidden) == self.primary_key_name.is_empty()
            && self.columns.iter().map(|column| &column.name).collect::<BTreeSet<_>>().len() == self.columns.len()
            && self.indexes.iter().all(|index| key(&index.columns) && (1..self.next_index).contains(&index.id.0))
            && self.indexes.iter().flat_map(|index| &index.columns).all(|position| !self.columns[*position].hidden)
            && self.checks.iter().flat_map(|check| &check.columns).all(|position| *position < self.columns.len())
            && (0..self.columns.len()).all(|column| self.columns[column].identity.is_none() || self.identity_sequence(column).is_some())
            && self.sequences.iter().all(|owned| self.position_of(owned.column).is_some())
            && self.foreign_keys.iter().all(|foreign| key(&foreign.columns) && foreign.columns.len() == foreign.parent_columns.len())
    }
}
