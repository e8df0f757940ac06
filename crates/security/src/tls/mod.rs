//! TLS as listeners and clients use it: `rustls` with the provider `ring`, versions 1.2 and 1.3.
//!
//! ```text
//!   files ──load, reload──▶ Tls ──▶ Acceptor (one per port) ──handshake, bounded──▶ Stream
//!                            └────▶ connect: to a site by its name ──────────────▶ Stream
//!   Client: the command line's, which has no site ───────────────────────────────▶ Stream
//! ```
//! A connection lasts no longer than the certificates that were shown on it (`lease.rs`).
//!
//! Sessions are not resumed: each connection shows its certificate, so that one which is no longer believed lets nobody in.

mod acceptor;
mod client;
mod config;
mod handshakes;
mod lease;
mod moving;
mod provider;
mod stream;
mod verifiers;

pub use acceptor::{Acceptor, HANDSHAKE_MAX, HandshakeError};
pub use client::{Client, ClientError};
pub use config::Port;
pub use handshakes::HANDSHAKES_MAX;
pub use moving::Moving;
pub use stream::{Reader, Stream, Writer};
pub use verifiers::CHAIN_MAX;

use crate::certificate::Certificate;
use crate::files::{self, FileError};
use crate::identity::Identity;
use crate::name::SiteName;
use config::Configs;
use lease::Lease;
use rustls_pki_types::{CertificateDer, ServerName};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::watch;
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
    #[error("{} is not to be believed by the authorities in {}: {reason}", .path.display(), .authorities.display())]
    Unbelieved { path: PathBuf, authorities: PathBuf, reason: String },
}

fn or_nothing(names: &[String]) -> String {
    if names.is_empty() { "no name".to_owned() } else { names.join(", ") }
}

/// What a site serves and connects with. Reads its files anew without a connection noticing: new ones go by the new files.
pub struct Tls {
    files: Files,
    name: SiteName,
    current: RwLock<Arc<Current>>,
    changed: watch::Sender<()>,
    /// What was last said about files that cannot be used, so that it is said once.
    said: Mutex<Option<String>>,
}

struct Current {
    configs: Configs,
    certificate: Certificate,
    /// That certificate, and those that go with it.
    chain: Vec<CertificateDer<'static>>,
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
        Ok(Arc::new(Tls { files, name, current: RwLock::new(Arc::new(current)), changed: watch::Sender::new(()), said: Mutex::default() }))
    }

    /// Reads the files anew. A certificate that nobody would believe takes the place of none.
    pub fn reload(&self) -> Reload {
        // Held all the while: of two readers the later goes by the later files.
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let present = self.current().digest;
        let loaded = Current::load(&self.files, &self.name).and_then(|loaded| {
            if loaded.digest != present {
                loaded.check(&self.files, &self.name, SystemTime::now())?;
            }
            Ok(loaded)
        });
        match loaded {
            Ok(loaded) if loaded.digest == present => {
                *said = None;
                Reload::Same
            }
            Ok(loaded) => {
                *said = None;
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded);
                self.changed.send_replace(());
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

    /// Whether the site could go by these authorities, a PEM text, with the certificate that it has: if not they are older or others, and who goes by them
    /// believes its own cluster no more.
    pub fn check_authorities(&self, pem: &str) -> Result<(), TlsError> {
        let current = self.current();
        let texts = Texts { authorities: pem.as_bytes().to_vec(), ..Texts::read(&self.files)? };
        let Certificate { from, until, .. } = current.certificate;
        // That it has ended is not for the authorities to say.
        let at = SystemTime::now().clamp(from, until);
        let loaded = Current::of(&texts, &self.files, &self.name)?;
        // A cross certificate leads to an older CA as well, and those that are made later come without.
        if !loaded.authorities.iter().any(|authority| loaded.certificate.is_signed_by(authority)) {
            let Files { certificate: path, authorities, .. } = self.files.clone();
            return Err(TlsError::Unbelieved { path, authorities, reason: "none of them has signed it".to_owned() });
        }
        loaded.check(&self.files, &self.name, at)
    }

    /// Whether the site could go by this certificate and key, a PEM text, from now on.
    pub fn check_identity(&self, pem: &str) -> Result<(), TlsError> {
        let (certificate, key) = (pem.as_bytes().to_vec(), pem.as_bytes().to_vec());
        let texts = Texts { certificate, key, authorities: files::read(&self.files.authorities)? };
        Current::of(&texts, &self.files, &self.name)?.check(&self.files, &self.name, SystemTime::now())
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
    pub async fn connect(self: &Arc<Self>, stream: TcpStream, name: &SiteName) -> io::Result<Stream> {
        let host = ServerName::try_from(name.to_string()).map_err(io::Error::other)?;
        let changes = self.changes();
        let connector = TlsConnector::from(self.current().configs.client());
        let stream = connector.connect(host, stream).await?;
        let stream = Stream::encrypted(stream, |chain| Lease::new(Arc::clone(self), changes, chain));
        if stream.is_of(name) {
            Ok(stream)
        } else {
            Err(io::Error::other(format!("the certificate there does not bear just the name {name}")))
        }
    }

    /// Tells when authorities that are believed may have changed, from now on.
    fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Whether what the other end of a connection has shown is believed now.
    fn believes(&self, chain: &[CertificateDer<'_>]) -> bool {
        self.current().configs.check_client(chain, SystemTime::now()).is_ok()
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

/// What the files hold.
struct Texts {
    authorities: Vec<u8>,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Texts {
    fn read(Files { authorities, certificate, key }: &Files) -> Result<Texts, FileError> {
        let authorities = files::read(authorities)?;
        let text = files::read_private(key)?;
        // What is replaced whole is read whole.
        let certificate = if certificate == key { text.clone() } else { files::read(certificate)? };
        Ok(Texts { authorities, certificate, key: text })
    }
}

impl Current {
    fn load(files: &Files, name: &SiteName) -> Result<Current, TlsError> {
        Current::of(&Texts::read(files)?, files, name)
    }

    fn of(texts: &Texts, files: &Files, name: &SiteName) -> Result<Current, TlsError> {
        let Files { authorities: path, certificate, key } = files;
        let mut digest = Sha256::new();
        [&texts.authorities, &texts.certificate, &texts.key].into_iter().for_each(|text| digest.update(Sha256::digest(text)));
        let authorities = crate::identity::chain_of(path, &texts.authorities)?;
        let identity = Identity::of((certificate, &texts.certificate), (key, &texts.key))?;
        let wrong = |path: &PathBuf, reason: String| TlsError::Certificate { path: path.clone(), reason };
        let own = identity.certificate().map_err(|error| wrong(certificate, error.to_string()))?;
        if !own.sites().contains(name) {
            return Err(TlsError::OtherSite { path: certificate.clone(), bears: own.names, name: name.clone() });
        }
        let read = authorities.iter().map(|der| Certificate::read(der)).collect::<Result<_, _>>();
        let read = read.map_err(|error| wrong(path, error.to_string()))?;
        let configs = Configs::new(&authorities, &identity).map_err(|reason| wrong(certificate, reason))?;
        Ok(Current { configs, certificate: own, chain: identity.chain, authorities: read, digest: digest.finalize().into() })
    }

    /// Whether sites that go by the same authorities believe the certificate at `now`, whichever side connects.
    fn check(&self, files: &Files, name: &SiteName, now: SystemTime) -> Result<(), TlsError> {
        let unbelieved =
            |reason: String| TlsError::Unbelieved { path: files.certificate.clone(), authorities: files.authorities.clone(), reason };
        let name = ServerName::try_from(name.to_string()).map_err(|error| unbelieved(error.to_string()))?;
        let checked = self.configs.check_client(&self.chain, now);
        checked.and_then(|()| self.configs.check_server(&self.chain, &name, now)).map_err(unbelieved)
    }
}

#[cfg(test)]
mod tests;
