//! A table in which a site shows a protocol.

use crate::types::SqlType;

/// Its names and columns.
#[derive(Debug)]
pub struct SiteTable {
    /// Its name in the schema `rhumb`.
    pub name: &'static str,
    /// The same with the schema: a name that no table of a database has by chance.
    pub qualified: &'static str,
    /// The names and types of its columns.
    pub columns: &'static [(&'static str, SqlType)],
}
