//! What a `CREATE` statement asks for, before names are checked and ids given.

use crate::schema::{Action, Identity};
use crate::types::SqlType;

/// A table to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ColumnSpec>,
    /// Its primary key; without one the table gets a hidden row id.
    pub primary_key: Option<KeySpec>,
    /// Its `UNIQUE` constraints.
    pub unique: Vec<KeySpec>,
    /// Its `CHECK` constraints.
    pub checks: Vec<CheckSpec>,
    /// Its `FOREIGN KEY` constraints.
    pub foreign_keys: Vec<ForeignKeySpec>,
}

/// A column of a table to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub ty: SqlType,
    /// False for NOT NULL. A column of the primary key is NOT NULL whatever is said here.
    pub nullable: bool,
    /// The expression, in SQL, of the value of rows that give none.
    pub default: Option<String>,
    /// The sequence that gives it values instead, if it has one of its own.
    pub generated: Option<GeneratedSpec>,
}

/// A column that a sequence of its own gives values: `serial`, or an identity column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedSpec {
    /// What may be given to an identity column.
    pub identity: Option<Identity>,
    /// The name of the sequence; `None` for the one that PostgreSQL would choose.
    pub name: Option<String>,
    /// The sequence.
    pub options: SequenceOptions,
}

/// What is said of a sequence; `None` where nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceOptions {
    /// Its type.
    pub ty: Option<SqlType>,
    /// The first number.
    pub start: Option<i64>,
    /// The number to go on from; `Some(None)` is the first.
    pub restart: Option<Option<i64>>,
    /// What a number is more than the one before it.
    pub increment: Option<i64>,
    /// The least number; `Some(None)` is that of its type and direction.
    pub min: Option<Option<i64>>,
    /// The greatest number; likewise.
    pub max: Option<Option<i64>>,
    /// How many numbers a site takes at a time.
    pub cache: Option<i64>,
    /// Whether the first follows the last.
    pub cycle: Option<bool>,
    /// The table and the column that it goes with; `Some(None)` is none.
    pub owned_by: Option<Option<(String, String)>>,
}

/// A `PRIMARY KEY` or `UNIQUE` constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// Its name; `None` for the one that PostgreSQL would choose.
    pub name: Option<String>,
    /// The names of its columns.
    pub columns: Vec<String>,
}

/// A `CHECK` constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSpec {
    /// Its name; `None` for the one that PostgreSQL would choose.
    pub name: Option<String>,
    /// The condition, in SQL.
    pub condition: String,
    /// The columns that it names.
    pub columns: Vec<String>,
}

/// A `FOREIGN KEY` constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKeySpec {
    /// Its name; `None` for the one that PostgreSQL would choose.
    pub name: Option<String>,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The table that they reference.
    pub parent: String,
    /// The columns there; none for those of the primary key.
    pub parent_columns: Vec<String>,
    /// What becomes of rows whose parent goes.
    pub on_delete: Action,
    /// What becomes of rows whose parent gets another key.
    pub on_update: Action,
    /// True for `DEFERRABLE`.
    pub deferrable: bool,
    /// True for `INITIALLY DEFERRED`.
    pub initially_deferred: bool,
}

/// An index to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSpec {
    /// Its name; `None` for the one that PostgreSQL would choose.
    pub name: Option<String>,
    /// Its table.
    pub table: String,
    /// True for `CREATE UNIQUE INDEX`, and for a `UNIQUE` constraint.
    pub unique: bool,
    /// True for a constraint.
    pub constraint: bool,
    /// The names of its columns.
    pub columns: Vec<String>,
}
