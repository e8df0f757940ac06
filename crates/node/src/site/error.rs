//! Why a site's process ends.

use super::owner::OwnerError;
use crate::incarnation::IncarnationError;
use crate::secret::SecretError;
use rhumb_config::ConfigError;
use rhumb_security::tls::TlsError;
use rhumb_store::StoreError;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// Why a site's process ended otherwise than by being told to.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum RunError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{key}: {address} is in use by another process; stop that one, or choose another port")]
    InUse { key: &'static str, address: SocketAddr },
    #[error("{key}: cannot listen on {address}: {reason}")]
    Listen { key: &'static str, address: SocketAddr, reason: io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Owner(#[from] OwnerError),
    #[error(transparent)]
    Incarnations(#[from] IncarnationError),
    #[error("secret_file: {0}")]
    Secret(#[from] SecretError),
    #[error("tls: {0}")]
    Tls(#[from] TlsError),
    #[error("the system gives the site no {what}: {reason}")]
    System { what: &'static str, reason: io::Error },
    #[error("the site cannot go on: {0}")]
    Failed(String),
    #[error("clients can no longer be served: {0}")]
    Serve(io::Error),
}

impl RunError {
    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Config(_) | RunError::Secret(_) | RunError::Tls(_) | RunError::Owner(OwnerError::Changed { .. }) => 2,
            _ => 1,
        }
    }
}
