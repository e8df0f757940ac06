//! Where databases live: a key space for each commit protocol.
//!
//! ```text
//!   the default protocol   names, protocols and settings of all databases · relations and rows of its own databases
//!   any other              relations and rows of its own databases
//! ```
//!
//! A transaction runs in one key space, so all that it depends on lies there: what a database holds is with its protocol, the
//! table descriptors among it. Which databases there are is for all protocols in one place. A session belongs to one database: it
//! looks its own up there as it begins, and what it does then happens in its [`Home`].

use crate::catalog::{Catalog, CatalogView};
use crate::error::SqlResult;
use crate::protocols::{Administration, Gateways, PROTOCOLS, Protocol};
use crate::schema::DatabaseDescriptor;
use rhumb_commit::transaction::Gateway;
use rhumb_core::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The key space of a protocol, as the sessions of a site share it.
pub struct Keyspace {
    /// Where transactions begin.
    pub gateway: Arc<dyn Gateway>,
    /// The descriptors read so far.
    pub catalog: Arc<Catalog>,
}

impl Keyspace {
    fn new(gateway: Arc<dyn Gateway>) -> Arc<Keyspace> {
        Arc::new(Keyspace { gateway, catalog: Catalog::new() })
    }
}

/// The key spaces of a site.
pub struct Keyspaces {
    /// Where the names of all databases are.
    pub system: Arc<Keyspace>,
    /// Those of the other protocols.
    apart: Vec<(Protocol, Arc<Keyspace>)>,
    gateways: Gateways,
}

impl Keyspaces {
    /// Those behind `gateways`.
    pub fn new(gateways: Gateways) -> Keyspaces {
        let apart = gateways.apart().map(|(protocol, gateway)| (protocol, Keyspace::new(gateway.clone()))).collect();
        Keyspaces { system: Keyspace::new(gateways.replicated_commit.clone()), apart, gateways }
    }

    /// What is administered of a protocol; `None` if this site holds no databases of it, or nothing is.
    pub fn administration(&self, protocol: Protocol) -> Option<Arc<dyn Administration>> {
        self.gateways.administration(protocol)
    }

    /// Where statements about databases run.
    pub fn system(&self) -> Home {
        Home { keyspace: self.system.clone(), database: None, seen: Arc::default() }
    }

    /// Where the transactions of a session of `database` run. Error 0A000 if this site does not hold it.
    pub fn home(&self, database: &Arc<DatabaseDescriptor>) -> SqlResult<Home> {
        let protocol = database.protocol()?;
        if protocol.holds_names() {
            return Ok(self.system());
        }
        let keyspace = self.apart.iter().find(|(held, _)| *held == protocol).map(|(_, keyspace)| keyspace.clone());
        Ok(Home { keyspace: keyspace.ok_or_else(|| protocol.not_held())?, database: Some(database.clone()), seen: Arc::default() })
    }
}

/// The commits, and snapshots, that a session was told of.
#[derive(Debug, Default)]
struct Seen {
    /// The timestamp of the newest.
    newest: AtomicU64,
    /// That of the last one told.
    last: AtomicU64,
}

/// Where a session's transactions run.
#[derive(Clone)]
pub struct Home {
    keyspace: Arc<Keyspace>,
    /// The database, where it is not to be found in the key space itself.
    database: Option<Arc<DatabaseDescriptor>>,
    /// Which commits the session was told of.
    seen: Arc<Seen>,
}

impl Home {
    /// Where transactions begin.
    pub fn gateway(&self) -> &dyn Gateway {
        &*self.keyspace.gateway
    }

    /// True if databases are created, altered and dropped here.
    pub fn is_system(&self) -> bool {
        self.database.is_none()
    }

    /// The name of the protocol.
    pub fn protocol(&self) -> &str {
        self.database.as_ref().map_or(PROTOCOLS[0].0, |database| &database.protocol)
    }

    /// The catalog as one transaction uses it.
    pub fn view(&self) -> CatalogView {
        let view = self.keyspace.catalog.view();
        match &self.database {
            Some(database) => view.within(database.clone()),
            None => view,
        }
    }

    /// The newest commit, or snapshot, that the session was told of.
    pub fn seen(&self) -> Timestamp {
        Timestamp::from_bits(self.seen.newest.load(Ordering::Relaxed))
    }

    /// The one that it was told of last.
    pub fn last(&self) -> Timestamp {
        Timestamp::from_bits(self.seen.last.load(Ordering::Relaxed))
    }

    /// The session is told of a commit, or of a snapshot.
    pub fn saw(&self, at: Timestamp) {
        self.seen.newest.fetch_max(at.bits(), Ordering::Relaxed);
        self.seen.last.store(at.bits(), Ordering::Relaxed);
    }
}
