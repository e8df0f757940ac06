//! The cryptography beneath TLS.

use rustls::crypto::{CryptoProvider, ring};
use std::sync::Arc;

/// What signs, encrypts and draws random numbers.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
