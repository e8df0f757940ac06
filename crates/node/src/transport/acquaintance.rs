//! What this site says of itself to a peer, and what it makes of what the peer says.

use crate::credentials::Credentials;
use crate::failure::Failure;
use crate::incarnation::{Counts, IncarnationError, IncarnationId, Incarnations, Progress};
use crate::secret::Secret;
use crate::transport::frame::Hello;
use rhumb_config::Setup;
use rhumb_core::SiteId;
use rhumb_security::name::SiteName;
use rhumb_security::tls::{Acceptor, HandshakeError, Port, Stream, Tls};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;

/// How connections between sites are encrypted.
struct Encryption {
    tls: Arc<Tls>,
    acceptor: Acceptor,
    names: BTreeMap<SiteId, SiteName>,
}

/// This site, as it makes itself known to others.
pub struct Acquaintance {
    cluster: u64,
    site: SiteId,
    secret: Secret,
    encryption: Option<Encryption>,
    incarnations: Arc<Incarnations>,
    failure: Failure,
}

impl Acquaintance {
    /// That of the site of `setup`, which ends with `failure` if somebody knows it otherwise.
    pub fn new(setup: &Setup, credentials: Credentials, incarnations: Incarnations, failure: Failure) -> Acquaintance {
        let Credentials { secret, tls } = credentials;
        let names = setup.tls.as_ref().map(|tls| tls.names.clone()).unwrap_or_default();
        let encryption = tls.map(|tls| Encryption { acceptor: tls.acceptor(Port::Peer), tls, names });
        let incarnations = Arc::new(incarnations);
        Acquaintance { cluster: setup.fingerprint(), site: setup.site, secret, encryption, incarnations, failure }
    }

    /// Makes a connection to `peer` out of `stream`. Where connections are encrypted, the other end has the certificate of `peer`.
    pub async fn connect(&self, stream: TcpStream, peer: SiteId) -> io::Result<Stream> {
        match &self.encryption {
            Some(Encryption { tls, names, .. }) => tls.connect(stream, &names[&peer]).await,
            None => Ok(stream.into()),
        }
    }

    /// Makes a connection out of one that somebody has made. Where connections are encrypted, the other end has a certificate of the cluster.
    pub async fn accept(&self, stream: TcpStream) -> Result<Stream, HandshakeError> {
        match &self.encryption {
            // How many, and for how long, is bounded with the rest of the proof.
            Some(Encryption { acceptor, .. }) => acceptor.handshake(stream).await,
            None => Ok(stream.into()),
        }
    }

    /// True unless connections are encrypted and the other end of `stream` has not the certificate of `site`.
    pub fn is_certified(&self, stream: &Stream, site: SiteId) -> bool {
        self.encryption.as_ref().is_none_or(|encryption| encryption.names.get(&site).is_some_and(|name| stream.is_of(name)))
    }

    /// The present incarnation.
    pub fn incarnation(&self) -> IncarnationId {
        self.incarnations.now()
    }

    /// How often its stores have synced in that.
    pub fn counts(&self) -> Counts {
        self.incarnations.counts()
    }

    /// The secret by which sites of the cluster know each other.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// What it says to `peer`.
    pub fn hello(&self, peer: SiteId) -> Hello {
        Hello {
            cluster: self.cluster,
            site: self.site,
            to: peer,
            incarnation: self.incarnations.now(),
            heard: self.incarnations.heard(peer),
        }
    }

    /// True if `theirs` is of the same cluster.
    pub fn is_of_cluster(&self, theirs: &Hello) -> bool {
        theirs.cluster == self.cluster
    }

    /// True if `theirs` is meant for this site.
    pub fn is_for_me(&self, theirs: &Hello) -> bool {
        theirs.to == self.site
    }

    /// Whether this site is the one that the peer called `name` has heard of last. If not it ends.
    pub fn check(&self, name: &str, theirs: &Hello) -> Result<(), String> {
        self.incarnations.check(name, &theirs.heard).inspect_err(|why| self.failure.report(why.clone()))
    }

    /// Notes on disk in which incarnation `peer` is heard. If that cannot be, the site ends.
    pub async fn note(&self, peer: SiteId, incarnation: IncarnationId) -> io::Result<()> {
        if self.incarnations.heard(peer).incarnation == incarnation {
            return Ok(());
        }
        self.on_disk(move |incarnations| incarnations.note(peer, incarnation)).await
    }

    /// Remembers how far `peer` says that it has come in `incarnation`; on disk once that is [saved](Acquaintance::save).
    pub fn hear(&self, peer: SiteId, incarnation: IncarnationId, counts: Counts) {
        self.incarnations.hear(peer, &Progress { incarnation, counts });
    }

    /// Has the disk know what was heard. If that cannot be, the site ends.
    pub async fn save(&self) -> io::Result<()> {
        self.on_disk(Incarnations::save).await
    }

    /// Notes that the site has stopped well.
    pub async fn end(&self) -> io::Result<()> {
        self.on_disk(Incarnations::end).await
    }

    async fn on_disk(&self, write: impl FnOnce(&Incarnations) -> Result<(), IncarnationError> + Send + 'static) -> io::Result<()> {
        let incarnations = Arc::clone(&self.incarnations);
        let written = tokio::task::spawn_blocking(move || write(&incarnations)).await.map_err(io::Error::other)?;
        written.map_err(|error| {
            self.failure.report(error.to_string());
            io::Error::other(error)
        })
    }
}
