//! Foreign keys as descriptors have them.

use serde::{Deserialize, Serialize};

/// What becomes of rows that reference a row which goes, or whose key changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// It is refused, if they are still there at the end of the statement, or of the transaction if the constraint is deferred.
    #[default]
    NoAction,
    /// It is refused, if they are still there at the end of the statement, be what they reference there again or not.
    Restrict,
    /// They go too, or take the new key.
    Cascade,
    /// Their columns become NULL.
    SetNull,
    /// Their columns become their defaults.
    SetDefault,
}

impl Action {
    /// How SQL says it.
    pub fn words(self) -> &'static str {
        match self {
            Action::NoAction => "NO ACTION",
            Action::Restrict => "RESTRICT",
            Action::Cascade => "CASCADE",
            Action::SetNull => "SET NULL",
            Action::SetDefault => "SET DEFAULT",
        }
    }
}

/// A `FOREIGN KEY` constraint, in the descriptor of the table that references another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignKey {
    /// Its name, which no other constraint of its table has.
    pub name: String,
    /// The positions of its columns.
    pub columns: Vec<usize>,
    /// The name of the table that they reference.
    pub parent: String,
    /// The ids of the columns there that they equal, in the same order; all columns of its primary key or of a unique index.
    pub parent_columns: Vec<u32>,
    /// What becomes of rows whose parent goes.
    #[serde(default)]
    pub on_delete: Action,
    /// What becomes of rows whose parent gets another key.
    #[serde(default)]
    pub on_update: Action,
    /// True if the transaction may have it checked at its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deferrable: bool,
    /// True if it is checked at the end of the transaction, unless that says otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub initially_deferred: bool,
}

/// That another table, or the table itself, references one: in the descriptor of the one referenced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Referrer {
    /// The name of the table that has the constraint.
    pub child: String,
    /// The name of the constraint.
    pub constraint: String,
}
