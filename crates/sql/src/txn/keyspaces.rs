//! Where databases live: a key space for each commit protocol.
//!
//! ```text
//!   replicated_commit   names, protocols and settings of all databases · relations and rows of its own databases
//!   catenae             relations and rows of its own databases
//!   quad                relations and rows of its own databases
//! ```
//!
//! A transaction runs in one key space, so all that it depends on lies there: what a database holds is with its protocol, the
//! table descriptors among it. Which databases there are is for all protocols in one place. A session belongs to one database: it
//! looks its own up there as it begins, and what it does then happens in its [`Home`].

use crate::catalog::{Catalog, CatalogView};
use crate::context::Gateways;
use crate::error::{SqlError, SqlResult};
use crate::schema::{DatabaseDescriptor, Protocol};
use rhumb_catenae::administration::{Administration as EpochAdministration, Epochs};
use rhumb_commit::transaction::Gateway;
use rhumb_core::Timestamp;
use rhumb_quad::administration::{Administration as QuorumAdministration, QuorumView};
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
    /// Replicated Commit, and which databases there are.
    pub system: Arc<Keyspace>,
    catenae: Option<Arc<Keyspace>>,
    quad: Option<Arc<Keyspace>>,
    epochs: Option<Arc<dyn EpochAdministration>>,
    quorums: Option<Arc<dyn QuorumAdministration>>,
}

impl Keyspaces {
    /// Those behind `gateways`.
    pub fn new(gateways: Gateways) -> Keyspaces {
        let Gateways { replicated_commit, catenae, quad, epochs, quorums } = gateways;
        let [catenae, quad] = [catenae, quad].map(|gateway| gateway.map(Keyspace::new));
        Keyspaces { system: Keyspace::new(replicated_commit), catenae, quad, epochs, quorums }
    }

    /// How far this site is with epochs; `None` if it holds no databases of Catenae.
    pub async fn epochs(&self) -> SqlResult<Option<Epochs>> {
        match &self.epochs {
            Some(epochs) => Ok(Some(epochs.epochs().await?)),
            None => Ok(None),
        }
    }

    /// The quorums of databases of QuAD. Error 0A000 if this site holds none.
    pub fn quorums(&self) -> SqlResult<&dyn QuorumAdministration> {
        self.quorums.as_deref().ok_or_else(|| not_held(Protocol::Quad))
    }

    /// The same for whoever shows them; `None` if this site holds no such databases.
    pub async fn quorum_view(&self) -> SqlResult<Option<QuorumView>> {
        match &self.quorums {
            Some(quorums) => Ok(Some(quorums.quorums().await?)),
            None => Ok(None),
        }
    }

    /// Where statements about databases run.
    pub fn system(&self) -> Home {
        Home { keyspace: self.system.clone(), database: None, seen: Arc::default() }
    }

    /// Where the transactions of a session of `database` run. Error 0A000 if this site does not hold it.
    pub fn home(&self, database: &Arc<DatabaseDescriptor>) -> SqlResult<Home> {
        let protocol = database.protocol()?;
        let keyspace = match protocol {
            Protocol::ReplicatedCommit => return Ok(self.system()),
            Protocol::Catenae => self.catenae.as_ref(),
            Protocol::Quad => self.quad.as_ref(),
        };
        let keyspace = keyspace.ok_or_else(|| not_held(protocol))?.clone();
        Ok(Home { keyspace, database: Some(database.clone()), seen: Arc::default() })
    }
}

/// Why there is nothing of a protocol.
fn not_held(protocol: Protocol) -> SqlError {
    let hint = match protocol {
        Protocol::Quad => "Quorums are built of at most 64 sites, and this cluster has more.",
        Protocol::Catenae | Protocol::ReplicatedCommit => "Connect to the first or the second site of a region.",
    };
    SqlError::unsupported(format!("this site holds no databases of protocol \"{}\"", protocol.name())).with_hint(hint)
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
        self.database.as_ref().map_or(Protocol::ReplicatedCommit.name(), |database| &database.protocol)
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
