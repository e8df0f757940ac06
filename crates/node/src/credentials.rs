//! What a site proves itself with to others: the secret of the cluster, and certificates where connections are encrypted.

use crate::secret::Secret;
use rhumb_security::tls::Tls;
use std::sync::Arc;

/// What a site proves itself with.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The secret of the cluster.
    pub secret: Secret,
    /// The certificates; none on the loopback in plain text.
    pub tls: Option<Arc<Tls>>,
}

impl From<Secret> for Credentials {
    fn from(secret: Secret) -> Credentials {
        Credentials { secret, tls: None }
    }
}
