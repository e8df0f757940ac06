//! Databases, and the commit protocol that each declares.

use crate::catalog::DatabaseId;
use serde::{Deserialize, Serialize};

/// The database that always exists.
pub const DEFAULT_DATABASE: &str = "rhumb";
/// The commit protocols that a database can declare; the first is the default.
pub const PROTOCOLS: &[&str] = &["replicated_commit"];

/// A database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseDescriptor {
    /// Names it in keys.
    pub id: DatabaseId,
    /// Its name.
    pub name: String,
    /// How its transactions commit: one of [`PROTOCOLS`].
    pub protocol: String,
}
