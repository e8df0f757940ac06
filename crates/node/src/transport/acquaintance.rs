//! What this site says of itself to a peer, and what it makes of what the peer says.

use crate::frame::Hello;
use crate::lives::{Counts, IncarnationId, Lives, LivesError, Progress};
use crate::runtime::Failure;
use crate::secret::Secret;
use rhumb_core::SiteId;
use std::io;
use std::sync::Arc;

/// This site, as it makes itself known to others.
pub struct Acquaintance {
    cluster: u64,
    site: SiteId,
    secret: Secret,
    lives: Arc<Lives>,
    failure: Failure,
}

impl Acquaintance {
    /// That of `site`, which ends with `failure` if somebody knows it otherwise.
    pub fn new(cluster: u64, site: SiteId, secret: Secret, lives: Lives, failure: Failure) -> Acquaintance {
        Acquaintance { cluster, site, secret, lives: Arc::new(lives), failure }
    }

    /// The present incarnation.
    pub fn incarnation(&self) -> IncarnationId {
        self.lives.now()
    }

    /// How often its stores have synced in that.
    pub fn counts(&self) -> Counts {
        self.lives.counts()
    }

    /// The secret by which sites of the cluster know each other.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// What it says to `peer`.
    pub fn hello(&self, peer: SiteId) -> Hello {
        Hello { cluster: self.cluster, site: self.site, to: peer, incarnation: self.lives.now(), heard: self.lives.heard(peer) }
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
        self.lives.check(name, &theirs.heard).inspect_err(|why| self.failure.report(why.clone()))
    }

    /// Notes on disk in which incarnation `peer` is heard. If that cannot be, the site ends.
    pub async fn note(&self, peer: SiteId, incarnation: IncarnationId) -> io::Result<()> {
        if self.lives.heard(peer).incarnation == incarnation {
            return Ok(());
        }
        self.on_disk(move |lives| lives.note(peer, incarnation)).await
    }

    /// Remembers how far `peer` says that it has come in `incarnation`; on disk once that is [saved](Acquaintance::save).
    pub fn hear(&self, peer: SiteId, incarnation: IncarnationId, counts: Counts) {
        self.lives.hear(peer, &Progress { incarnation, counts });
    }

    /// Has the disk know what was heard. If that cannot be, the site ends.
    pub async fn save(&self) -> io::Result<()> {
        self.on_disk(Lives::save).await
    }

    /// Notes that the site has stopped well.
    pub async fn end(&self) -> io::Result<()> {
        self.on_disk(Lives::end).await
    }

    async fn on_disk(&self, write: impl FnOnce(&Lives) -> Result<(), LivesError> + Send + 'static) -> io::Result<()> {
        let lives = Arc::clone(&self.lives);
        let written = tokio::task::spawn_blocking(move || write(&lives)).await.map_err(io::Error::other)?;
        written.map_err(|error| {
            self.failure.report(error.to_string());
            io::Error::other(error)
        })
    }
}
