//! The client of who has no site: the command line's, and that of a site which is about to join.
//!
//! A site is asked by a name that its certificate bears, or by an address. No certificate names an address, so there any site of the cluster is believed:
//! a certificate for serving, by an authority that is believed, with the name of a site. Who is about to join knows the CA by its fingerprint alone.

use super::config::{roots, said};
use super::lease::Lease;
use super::provider::provider;
use super::verifiers::{check_length, of_servers, verify_signatures};
use super::{Files, Stream, TlsError};
use crate::certificate::{self, Certificate, Fingerprint};
use crate::identity::{Identity, chain};
use rustls::client::Resumption;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::fmt;
use std::io;
use std::sync::Arc;
use thiserror::Error as ThisError;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A client.
#[derive(Clone)]
pub struct Client(TlsConnector);

/// Why there is no such client.
#[derive(Debug, ThisError)]
#[allow(missing_docs)]
pub enum ClientError {
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("TLS cannot be used: {0}")]
    Config(String),
}

impl Client {
    /// One that believes the authorities of `files` and shows the certificate there.
    pub fn load(files: &Files) -> Result<Client, ClientError> {
        let authorities = chain(&files.authorities).map_err(TlsError::from)?;
        let identity = Identity::load(&files.certificate, &files.key).map_err(TlsError::from)?;
        let roots = roots(&authorities).map_err(ClientError::Config)?;
        Client::new(Believed::Roots(of_servers(roots).map_err(ClientError::Config)?), Some(&identity))
    }

    /// One that believes the authority of this fingerprint, and has no certificate yet.
    pub fn pinned(authority: Fingerprint) -> Result<Client, ClientError> {
        Client::new(Believed::Pinned(authority), None)
    }

    fn new(believed: Believed, identity: Option<&Identity>) -> Result<Client, ClientError> {
        let config = |error: Error| ClientError::Config(said(error));
        let versions = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().map_err(config)?;
        let verified = versions.dangerous().with_custom_certificate_verifier(Arc::new(believed));
        let mut built = match identity {
            Some(identity) => verified.with_client_auth_cert(identity.chain.clone(), identity.key.clone_key()).map_err(config)?,
            None => verified.with_no_client_auth(),
        };
        built.resumption = Resumption::disabled();
        Ok(Client(TlsConnector::from(Arc::new(built))))
    }

    /// Makes a connection to `host`, a name or an address, out of `stream`.
    pub async fn connect(&self, stream: TcpStream, host: &str) -> io::Result<Stream> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| io::Error::other(format!("`{host}` is no name of a host")))?;
        Ok(Stream::encrypted(self.0.connect(name, stream).await?, |_| Lease::unlimited()))
    }
}

/// Whose certificates are believed.
enum Believed {
    Roots(Arc<dyn ServerCertVerifier>),
    Pinned(Fingerprint),
}

impl fmt::Debug for Believed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Believed")
    }
}

impl Believed {
    fn verifier(&self, chain: &[CertificateDer<'_>]) -> Result<Arc<dyn ServerCertVerifier>, Error> {
        match self {
            Believed::Roots(verifier) => Ok(Arc::clone(verifier)),
            Believed::Pinned(fingerprint) => {
                let authority = chain.iter().find(|der| certificate::fingerprint(der) == *fingerprint);
                let authority = authority.ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
                let mut roots = RootCertStore::empty();
                roots.add(authority.clone().into_owned())?;
                of_servers(Arc::new(roots)).map_err(Error::General)
            }
        }
    }
}

impl ServerCertVerifier for Believed {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        check_length(intermediates)?;
        let verifier = self.verifier(intermediates)?;
        let name = match server_name {
            ServerName::IpAddress(_) => {
                let read = Certificate::read(end_entity).map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
                let site = read.sites().into_iter().next().ok_or(Error::InvalidCertificate(CertificateError::NotValidForName))?;
                ServerName::try_from(site.to_string()).map_err(|_| Error::InvalidCertificate(CertificateError::NotValidForName))?
            }
            name => name.clone(),
        };
        verifier.verify_server_cert(end_entity, intermediates, &name, ocsp_response, now)
    }

    verify_signatures!();
}
