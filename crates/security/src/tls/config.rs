//! The configurations of `rustls`, one per port and one for connecting.

use super::provider::provider;
use super::verifiers::{CHAIN_MAX, of_clients, of_servers};
use crate::identity::Identity;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A kind of port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// For other sites, who show their certificate.
    Peer,
    /// For clients of PostgreSQL, who show theirs. `ALPN` as PostgreSQL has it, which direct TLS takes.
    Sql,
    /// For clients of the Redis protocol, who show theirs.
    Resp,
    /// For HTTP. Who shows no certificate gets in, and is told no more than probes are.
    Http,
}

/// The protocol that clients of PostgreSQL name.
pub const POSTGRES: &[u8] = b"postgresql";
const HTTP: &[u8] = b"http/1.1";

/// All configurations that come of the same files.
pub struct Configs {
    peer: Arc<ServerConfig>,
    sql: Arc<ServerConfig>,
    http: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    clients: Arc<dyn ClientCertVerifier>,
    servers: Arc<dyn ServerCertVerifier>,
}

impl Configs {
    pub fn new(authorities: &[CertificateDer<'static>], identity: &Identity) -> Result<Configs, String> {
        if identity.chain.len() > CHAIN_MAX {
            return Err(format!("holds {} certificates; nobody looks at more than {CHAIN_MAX}", identity.chain.len()));
        }
        let roots = roots(authorities)?;
        let certified = of_clients(Arc::clone(&roots), true)?;
        let servers = of_servers(Arc::clone(&roots))?;
        Ok(Configs {
            peer: server(&certified, identity, None)?,
            sql: server(&certified, identity, Some(POSTGRES))?,
            http: server(&of_clients(roots, false)?, identity, Some(HTTP))?,
            client: Arc::new(client(&servers, identity)?),
            clients: certified,
            servers,
        })
    }

    pub fn server(&self, port: Port) -> Arc<ServerConfig> {
        Arc::clone(match port {
            Port::Peer | Port::Resp => &self.peer,
            Port::Sql => &self.sql,
            Port::Http => &self.http,
        })
    }

    /// Whether a site believes what a client has shown, at `now`.
    pub fn check_client(&self, chain: &[CertificateDer<'_>], now: SystemTime) -> Result<(), String> {
        let (own, others) = chain.split_first().ok_or("no certificate was shown")?;
        self.clients.verify_client_cert(own, others, unix(now)).map(drop).map_err(said)
    }

    /// The same of what a server called `name` has shown.
    pub fn check_server(&self, chain: &[CertificateDer<'_>], name: &ServerName<'_>, now: SystemTime) -> Result<(), String> {
        let (own, others) = chain.split_first().ok_or("no certificate was shown")?;
        self.servers.verify_server_cert(own, others, name, &[], unix(now)).map(drop).map_err(said)
    }

    pub fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.client)
    }
}

/// The authorities, each of which must be one that can be gone by.
pub fn roots(authorities: &[CertificateDer<'static>]) -> Result<Arc<RootCertStore>, String> {
    let mut roots = RootCertStore::empty();
    authorities.iter().try_for_each(|authority| roots.add(authority.clone())).map_err(said)?;
    Ok(Arc::new(roots))
}

fn server(clients: &Arc<dyn ClientCertVerifier>, identity: &Identity, protocol: Option<&[u8]>) -> Result<Arc<ServerConfig>, String> {
    let versions = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().map_err(said)?;
    let verified = versions.with_client_cert_verifier(Arc::clone(clients));
    let mut config = verified.with_single_cert(identity.chain.clone(), identity.key.clone_key()).map_err(said)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols.extend(protocol.map(<[u8]>::to_vec));
    Ok(Arc::new(config))
}

fn client(servers: &Arc<dyn ServerCertVerifier>, identity: &Identity) -> Result<ClientConfig, String> {
    let versions = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().map_err(said)?;
    let verified = versions.dangerous().with_custom_certificate_verifier(Arc::clone(servers));
    let mut config = verified.with_client_auth_cert(identity.chain.clone(), identity.key.clone_key()).map_err(said)?;
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn unix(time: SystemTime) -> UnixTime {
    UnixTime::since_unix_epoch(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

pub fn said(error: rustls::Error) -> String {
    error.to_string()
}
