//! Databases.

use super::DatabaseId;
use crate::error::{SqlError, SqlResult};
use crate::protocols::{PROTOCOLS, Protocol};
use serde::{Deserialize, Serialize};

/// The database that always exists.
pub const DEFAULT_DATABASE: &str = "rhumb";
/// The id of the database that always exists.
const DEFAULT_DATABASE_ID: DatabaseId = DatabaseId(1);

/// A database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseDescriptor {
    /// Names it in keys.
    pub id: DatabaseId,
    /// Its name.
    pub name: String,
    /// How its transactions commit: one of [`PROTOCOLS`].
    pub protocol: String,
}

impl DatabaseDescriptor {
    /// The database that always exists. It has no row in the catalog.
    pub(crate) fn default_database() -> DatabaseDescriptor {
        DatabaseDescriptor { id: DEFAULT_DATABASE_ID, name: DEFAULT_DATABASE.into(), protocol: PROTOCOLS[0].0.into() }
    }

    /// Its protocol. Error 0A000 if this version does not know it.
    pub fn protocol(&self) -> SqlResult<Protocol> {
        Protocol::named(&self.protocol)
            .ok_or_else(|| SqlError::unsupported(format!("this version does not know the commit protocol \"{}\"", self.protocol)))
    }
}
