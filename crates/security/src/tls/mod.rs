//! TLS as listeners and clients use it: `rustls` with the provider `ring`, versions 1.2 and 1.3.
//!
//! ```text
//!   files ──load, reload──▶ Tls ──▶ Acceptor (one per port) ──handshake, bounded──▶ Stream
//!                            └────▶ connect: to a site by its name ──────────────▶ Stream
//!   Client: the command line's, which has no site ───────────────────────────────▶ Stream
//! ```
//! Sessions are not resumed: each connection shows its certificate, so that one which is no longer believed lets nobody in.

mod acceptor;
mod client;
mod config;
mod handshakes;
mod stream;
mod verifiers;

pub use acceptor::{Acceptor, HANDSHAKE_MAX, HandshakeError};
pub use client::{Client, ClientError};
pub use config::Port;
pub use handshakes::HANDSHAKES_MAX;
pub use stream::{Reader, Stream, Writer};
pub use verifiers::CHAIN_MAX;

use crate::certificate::Certificate;
use crate::files::{self, FileError};
use crate::identity::Identity;
use crate::name::SiteName;
use config::Configs;
use rustls_pki_types::ServerName;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The files that TLS goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The certificates of the authorities that are believed.
    pub authorities: PathBuf,
    /// The own certificate, then those that lead to an authority.
    pub certificate: PathBuf,
    /// The key of that; may be the same file.
    pub key: PathBuf,
}

/// Why TLS cannot go by its files.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum TlsError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: {reason}", .path.display())]
    Certificate { path: PathBuf, reason: String },
    #[error("{} is no certificate of this site: it bears {}, and not {name}", .path.display(), or_nothing(.bears))]
    OtherSite { path: PathBuf, bears: Vec<String>, name: SiteName },
}

fn or_nothing(names: &[String]) -> String {
    if names.is_empty() { "no name".to_owned() } else { names.join(", ") }
}

/// What a site serves and connects with. Reads its files anew without a connection noticing: new ones go by the new files.
pub struct Tls {
    files: Files,
    name: SiteName,
    current: RwLock<Arc<Current>>,
    /// What was last said about files that cannot be used, so that it is said once.
    said: Mutex<Option<String>>,
}

struct Current {
    configs: Configs,
    certificate: Certificate,
    authorities: Vec<Certificate>,
    digest: [u8; 32],
}

/// What reading the files anew came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reload {
    /// They are as they were.
    Same,
    /// New connections go by what they hold now.
    Changed,
    /// They cannot be used; connections go on by what they held before. Not said again until they change.
    Broken(String),
}

impl Tls {
    /// That of the site `name`, by its files.
    pub fn load(files: Files, name: SiteName) -> Result<Arc<Tls>, TlsError> {
        let current = Current::load(&files, &name)?;
        Ok(Arc::new(Tls { files, name, current: RwLock::new(Arc::new(current)), said: Mutex::default() }))
    }

    /// Reads the files anew.
    pub fn reload(&self) -> Reload {
        let loaded = Current::load(&self.files, &self.name);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        match loaded {
            Ok(loaded) if loaded.digest == self.current().digest => {
                *said = None;
                Reload::Same
            }
            Ok(loaded) => {
                *said = None;
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded);
                Reload::Changed
            }
            Err(error) => {
                let error = error.to_string();
                if said.as_ref() == Some(&error) {
                    return Reload::Same;
                }
                *said = Some(error.clone());
                Reload::Broken(error)
            }
        }
    }

    /// The name of the site.
    pub fn name(&self) -> &SiteName {
        &self.name
    }

    /// The files.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// What the present certificate says.
    pub fn certificate(&self) -> Certificate {
        self.current().certificate.clone()
    }

    /// What the certificates of the authorities say, in the order of their file.
    pub fn authorities(&self) -> Vec<Certificate> {
        self.current().authorities.clone()
    }

    /// What accepts connections at a port.
    pub fn acceptor(self: &Arc<Self>, port: Port) -> Acceptor {
        Acceptor::new(Arc::clone(self), port)
    }

    /// Makes a connection to the site `name` out of `stream`. The site must have its certificate; this one shows its own.
    pub async fn connect(&self, stream: TcpStream, name: &SiteName) -> io::Result<Stream> {
        let name = ServerName::try_from(name.to_string()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(self.current().configs.client());
        Ok(Stream::from(connector.connect(name, stream).await?))
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Current {
    fn load(files: &Files, name: &SiteName) -> Result<Current, TlsError> {
        let Files { authorities: path, certificate, key } = files;
        let mut digest = Sha256::new();
        for file in [path, certificate] {
            digest.update(Sha256::digest(files::read(file)?));
        }
        digest.update(Sha256::digest(files::read_private(key)?));
        let authorities = crate::identity::chain(path)?;
        let identity = Identity::load(certificate, key)?;
        let wrong = |path: &PathBuf, reason: String| TlsError::Certificate { path: path.clone(), reason };
        let own = identity.certificate().map_err(|error| wrong(certificate, error.to_string()))?;
        if !own.sites().contains(name) {
            return Err(TlsError::OtherSite { path: certificate.clone(), bears: own.names, name: name.clone() });
        }
        let read = authorities.iter().map(|der| Certificate::read(der)).collect::<Result<_, _>>();
        let read = read.map_err(|error| wrong(path, error.to_string()))?;
        let configs = Configs::new(&authorities, &identity).map_err(|reason| wrong(certificate, reason))?;
        Ok(Current { configs, certificate: own, authorities: read, digest: digest.finalize().into() })
    }
}

#[cfg(test)]
mod tests;
