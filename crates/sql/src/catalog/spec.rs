//! What a `CREATE` statement asks for, before names are checked and ids given.

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
