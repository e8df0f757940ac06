//! Verifiers of certificates that look at short chains alone.
//!
//! A path from a certificate to an authority is searched among all those that were shown with it, before anybody has proved anything: with hundreds of the
//! same name that takes a tenth of a second, each time. Real chains are short: a certificate, a cross certificate or an intermediate CA or two, and the CA itself.

use super::provider::provider;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DistinguishedName, Error, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::Arc;

/// The most certificates that are looked at: the own one and those that lead from it to an authority.
pub const CHAIN_MAX: usize = 5;

/// The part of a verifier that proves who holds a certificate's key: the same for all.
macro_rules! verify_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &rustls_pki_types::CertificateDer<'_>,
            signed: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            let algorithms = $crate::tls::provider::provider().signature_verification_algorithms;
            rustls::crypto::verify_tls12_signature(message, certificate, signed, &algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &rustls_pki_types::CertificateDer<'_>,
            signed: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            let algorithms = $crate::tls::provider::provider().signature_verification_algorithms;
            rustls::crypto::verify_tls13_signature(message, certificate, signed, &algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            $crate::tls::provider::provider().signature_verification_algorithms.supported_schemes()
        }
    };
}
pub(super) use verify_signatures;

/// Refuses a certificate that comes with more than `others` ought to be.
pub fn check_length(others: &[CertificateDer<'_>]) -> Result<(), Error> {
    if others.len() < CHAIN_MAX { Ok(()) } else { Err(Error::General(format!("more than {CHAIN_MAX} certificates were shown"))) }
}

/// What a listener goes by. Who shows no certificate is let in unless one `must` be shown.
pub fn of_clients(roots: Arc<RootCertStore>, must: bool) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
    let verifier = if must { verifier } else { verifier.allow_unauthenticated() };
    Ok(Arc::new(OfClients(verifier.build().map_err(|error| error.to_string())?)))
}

/// What goes by names, for whoever connects.
pub fn of_servers(roots: Arc<RootCertStore>) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider()).build();
    Ok(Arc::new(OfServers(verifier.map_err(|error| error.to_string())?)))
}

#[derive(Debug)]
struct OfClients(Arc<dyn ClientCertVerifier>);

#[derive(Debug)]
struct OfServers(Arc<WebPkiServerVerifier>);

impl ClientCertVerifier for OfClients {
    fn offer_client_auth(&self) -> bool {
        self.0.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.0.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        check_length(intermediates)?;
        self.0.verify_client_cert(end_entity, intermediates, now)
    }

    verify_signatures!();
}

impl ServerCertVerifier for OfServers {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        check_length(intermediates)?;
        self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    verify_signatures!();
}
