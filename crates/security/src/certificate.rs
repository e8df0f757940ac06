//! What a certificate says: whose it is, from when until when, and by whom.

use crate::name::SiteName;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thiserror::Error;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The most names of a certificate that are looked at.
pub const NAMES_MAX: usize = 32;

/// The SHA-256 of a certificate.
pub type Fingerprint = [u8; 32];

/// What a certificate says, for people and for renewing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The common name of whom it is of; empty if it has none.
    pub subject: String,
    /// The same of who has signed it.
    pub issuer: String,
    /// The DNS names it bears.
    pub names: Vec<String>,
    /// It holds from then.
    pub from: SystemTime,
    /// Until then.
    pub until: SystemTime,
    /// True if it may sign others.
    pub is_authority: bool,
    /// True if its owner may serve.
    pub serves: bool,
    /// What tells it from every other.
    pub fingerprint: Fingerprint,
    /// The SHA-256 of its public key.
    pub key: Fingerprint,
    /// What it calls its own key, if it says so, as CAs do.
    pub key_id: Option<Vec<u8>>,
    /// What it calls the key that has signed it, if it says so.
    pub signer_id: Option<Vec<u8>>,
}

/// Bytes that are no certificate, or one that this does not go by.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("it is no certificate that can be read: {0}")]
pub struct Unreadable(&'static str);

/// The fingerprint of a certificate.
pub fn fingerprint(certificate: &CertificateDer<'_>) -> Fingerprint {
    Sha256::digest(certificate).into()
}

/// The fingerprint of a public key, of which these are the bits.
pub(crate) fn key_fingerprint(bits: &[u8]) -> Fingerprint {
    Sha256::digest(bits).into()
}

/// All certificates of a PEM text, in order; other parts of it are passed over.
pub fn all_of(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Unreadable> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| Unreadable("its PEM text is broken"))
}

/// The PEM text of a certificate.
pub fn pem_of(certificate: &CertificateDer<'_>) -> String {
    pem_text("CERTIFICATE", certificate)
}

/// A PEM text.
pub(crate) fn pem_text(kind: &str, bytes: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("it is ASCII")).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}

impl Certificate {
    /// Reads one. Whether it is to be believed is for a verifier to say.
    pub fn read(der: &[u8]) -> Result<Certificate, Unreadable> {
        let (rest, certificate) = X509Certificate::from_der(der).map_err(|_| Unreadable("it is not X.509"))?;
        if !rest.is_empty() {
            return Err(Unreadable("something follows it"));
        }
        let alternative = certificate.subject_alternative_name().map_err(|_| Unreadable("it has two lists of names"))?;
        let general = alternative.as_ref().map_or(&[][..], |names| &names.value.general_names);
        if general.len() > NAMES_MAX {
            return Err(Unreadable("it bears too many names"));
        }
        let names = general.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        });
        let usage = certificate.extended_key_usage().map_err(|_| Unreadable("it has two lists of uses"))?;
        let common = |name: &x509_parser::x509::X509Name<'_>| {
            name.iter_common_name().next().and_then(|name| name.as_str().ok()).unwrap_or_default().to_owned()
        };
        let (mut key_id, mut signer_id) = (None, None);
        for extension in certificate.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => key_id = Some(id.0.to_vec()),
                ParsedExtension::AuthorityKeyIdentifier(id) => signer_id = id.key_identifier.as_ref().map(|id| id.0.to_vec()),
                _ => {}
            }
        }
        Ok(Certificate {
            subject: common(certificate.subject()),
            issuer: common(certificate.issuer()),
            names: names.collect(),
            from: time_of(certificate.validity().not_before.timestamp()),
            until: time_of(certificate.validity().not_after.timestamp()),
            is_authority: certificate.is_ca(),
            serves: usage.is_none_or(|usage| usage.value.any || usage.value.server_auth),
            fingerprint: Sha256::digest(der).into(),
            key: key_fingerprint(&certificate.public_key().subject_public_key.data),
            key_id,
            signer_id,
        })
    }

    /// The sites whose names it bears.
    pub fn sites(&self) -> Vec<SiteName> {
        self.names.iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// True if the key of `authority` has signed it, by what both say. Names do not tell: two CAs may have the same.
    pub fn is_signed_by(&self, authority: &Certificate) -> bool {
        self.issuer == authority.subject && self.signer_id == authority.key_id
    }

    /// True once less than a third of its time is left; also before it begins, as one does that was made while a clock was ahead.
    pub fn is_due(&self, now: SystemTime) -> bool {
        if now < self.from {
            return true;
        }
        let whole = self.until.duration_since(self.from).unwrap_or_default();
        self.until.duration_since(now).unwrap_or_default() < whole / 3
    }
}

fn time_of(seconds: i64) -> SystemTime {
    // What is before 1970 has ended all the same.
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
