//! A private key, the request by which an authority is asked for a certificate of it, and both in one file.
//!
//! One file, so that it is replaced whole: a key beside the certificate of another key would serve nobody. Clients of OpenSSL, psql among them, read both
//! out of it.

use crate::certificate::{self, Certificate};
use crate::files::{self, FileError};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::path::Path;
use thiserror::Error;

/// A private key that has no certificate yet.
pub struct Key(KeyPair);

/// The system gave no key.
#[derive(Debug, Error)]
#[error("no key can be made: {0}")]
pub struct KeyError(rcgen::Error);

impl Key {
    /// A new one: ECDSA on P-256, which every client knows.
    pub fn new() -> Result<Key, KeyError> {
        KeyPair::generate().map(Key).map_err(KeyError)
    }

    /// The one in a PEM text; `None` if there is none.
    pub fn of(pem: &[u8]) -> Option<Key> {
        let der = PrivateKeyDer::from_pem_slice(pem).ok()?;
        KeyPair::try_from(&der).ok().map(Key)
    }

    /// The request for a certificate of it, as PEM. Names are for the authority to give.
    pub fn request(&self) -> Result<String, KeyError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.serialize_request(&self.0).and_then(|request| request.pem()).map_err(KeyError)
    }

    /// The text of a file with this key and its certificates, the own one first.
    pub fn file(&self, chain_pem: &str) -> String {
        format!("{chain_pem}{}", self.0.serialize_pem())
    }

    /// The same without a certificate yet.
    pub fn pem(&self) -> String {
        self.0.serialize_pem()
    }

    pub(crate) fn pair(&self) -> &KeyPair {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// A key with its certificate and those that lead to the authority.
pub struct Identity {
    /// Its own certificate first.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key.
    pub key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads the certificates in `certificate` and the key in `key`, which may be the same file.
    pub fn load(certificate: &Path, key: &Path) -> Result<Identity, FileError> {
        let pem = files::read_private(key)?;
        // What is replaced whole is read whole.
        let certificates = if certificate == key { pem.clone() } else { files::read(certificate)? };
        Identity::of((certificate, &certificates), (key, &pem))
    }

    /// The same out of what these files hold.
    pub fn of((path, certificates): (&Path, &[u8]), (key_path, key): (&Path, &[u8])) -> Result<Identity, FileError> {
        let chain = chain_of(path, certificates)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| FileError::content(key_path, "holds no private key in PEM"))?;
        Ok(Identity { chain, key })
    }

    /// What its own certificate says.
    pub fn certificate(&self) -> Result<Certificate, certificate::Unreadable> {
        Certificate::read(&self.chain[0])
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// The certificates in a file, at least one.
pub fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    chain_of(path, &files::read(path)?)
}

/// The same out of what the file holds.
pub(crate) fn chain_of(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let chain = certificate::all_of(pem).map_err(|error| FileError::content(path, error.to_string()))?;
    if chain.is_empty() { Err(FileError::content(path, "holds no certificate in PEM")) } else { Ok(chain) }
}
