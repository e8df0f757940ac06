//! What a connection remembers between commands, and what a server counts.

use crate::error::CommandError;
use crate::parse::Names;
use rhumb_core::SiteId;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// What a client said of itself, and what it used last.
#[derive(Debug)]
pub struct Session {
    /// The number of the connection at this server.
    pub id: u64,
    /// Where the client is.
    pub peer: SocketAddr,
    /// What it calls itself; empty if it did not say.
    pub name: String,
    /// The library it uses; empty if it did not say.
    pub library_name: String,
    /// That library's version; empty if it did not say.
    pub library_version: String,
    /// It began a transaction, which was refused; what belongs to that is refused too, up to its end.
    pub in_transaction: bool,
    /// Names of quotas it used.
    pub names: Names,
}

impl Session {
    /// The session of a connection just made.
    pub fn new(id: u64, peer: SocketAddr) -> Session {
        let (name, library_name, library_version) = (String::new(), String::new(), String::new());
        Session { id, peer, name, library_name, library_version, in_transaction: false, names: Names::default() }
    }

    /// Why the command of that name is not carried out, if that is for a transaction. Libraries send a transaction
    /// whole: if only its beginning were refused, its operations would be done behind their user's back.
    pub fn refuses(&self, name: &[u8]) -> Option<CommandError> {
        let is = |word: &str| word.as_bytes().eq_ignore_ascii_case(name);
        match self.in_transaction {
            false => is("MULTI").then_some(CommandError::Transaction),
            true if is("EXEC") || is("DISCARD") => Some(CommandError::Discarded),
            true if is("RESET") || is("QUIT") => None,
            true => Some(CommandError::InTransaction),
        }
    }
}

/// What is told of a server.
#[derive(Debug)]
pub struct Vitals {
    /// When it began to serve.
    pub since: Instant,
    /// Connections at a time at the most.
    pub connections_max: usize,
    site_names: BTreeMap<SiteId, String>,
    connected: AtomicUsize,
    accepted: AtomicU64,
    refused: AtomicU64,
    commands: AtomicU64,
}

/// One connection; counted while it lives.
#[derive(Debug)]
pub struct Place<'a>(&'a Vitals);

impl Vitals {
    /// Those of a server that begins now.
    pub fn new(connections_max: usize, site_names: BTreeMap<SiteId, String>) -> Vitals {
        Vitals {
            since: Instant::now(),
            connections_max,
            site_names,
            connected: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            commands: AtomicU64::new(0),
        }
    }

    /// What people call a site.
    pub fn site_name(&self, site: SiteId) -> String {
        self.site_names.get(&site).cloned().unwrap_or_else(|| site.to_string())
    }

    /// A place for one more connection and its number, if there is one.
    pub fn enter(&self) -> Option<(Place<'_>, u64)> {
        if self.connected.fetch_add(1, Ordering::Relaxed) >= self.connections_max {
            self.connected.fetch_sub(1, Ordering::Relaxed);
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some((Place(self), self.accepted.fetch_add(1, Ordering::Relaxed) + 1))
    }

    /// Counts commands carried out.
    pub fn add_commands(&self, count: u64) {
        self.commands.fetch_add(count, Ordering::Relaxed);
    }

    /// Connections now.
    pub fn connected(&self) -> usize {
        self.connected.load(Ordering::Relaxed)
    }

    /// Connections ever made, those turned away not counted.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Connections turned away.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Commands carried out.
    pub fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.connected.fetch_sub(1, Ordering::Relaxed);
    }
}
