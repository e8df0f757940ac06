//! Databases, and the commit protocol that each declares.

use super::DatabaseId;
use crate::error::{SqlError, SqlResult};
use serde::{Deserialize, Serialize};

/// The database that always exists.
pub const DEFAULT_DATABASE: &str = "rhumb";
/// The commit protocols that a database can declare; the first is the default.
pub const PROTOCOLS: [(&str, Protocol); 3] =
    [("replicated_commit", Protocol::ReplicatedCommit), ("catenae", Protocol::Catenae), ("quad", Protocol::Quad)];

/// A commit protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Votes of regions on every commit.
    ReplicatedCommit,
    /// One-shot transactions, by epochs.
    Catenae,
    /// Locks and two rounds in quorums that follow load and distance.
    Quad,
}

impl Protocol {
    /// Its name.
    pub fn name(self) -> &'static str {
        let known = PROTOCOLS.iter().find(|(_, protocol)| *protocol == self);
        known.expect("all protocols have names").0
    }
}

/// The id of the database that always exists.
const DEFAULT_DATABASE_ID: DatabaseId = DatabaseId(1);

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

impl DatabaseDescriptor {
    /// The database that always exists. It has no row in the catalog.
    pub(crate) fn default_database() -> DatabaseDescriptor {
        DatabaseDescriptor { id: DEFAULT_DATABASE_ID, name: DEFAULT_DATABASE.into(), protocol: PROTOCOLS[0].0.into() }
    }

    /// Its protocol. Error 0A000 if this version does not know it.
    pub fn protocol(&self) -> SqlResult<Protocol> {
        let known = PROTOCOLS.iter().find(|(name, _)| *name == self.protocol).map(|(_, protocol)| *protocol);
        known.ok_or_else(|| SqlError::unsupported(format!("this version does not know the commit protocol \"{}\"", self.protocol)))
    }
}
