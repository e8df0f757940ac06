//! The CA of a cluster: a key that lies in one folder of one machine, and what it signs.
//!
//! ```text
//!   create ──▶ root 1 ──signs──▶ leaves
//!   rotate ──▶ root 2 ──signs──▶ leaves, which are given out with
//!                 ▲               the cross certificate: root 2's key, signed by root 1
//!                 └─ whoever believes root 1 alone believes leaves of root 2 by that, and whoever believes both needs it not
//!   retire ──▶ root 1 is believed no more
//! ```
//! So a rotation is one step, whoever hears of it when: there is no time at which two sites refuse each other. Both roots are believed until the old
//! one is retired.
//!
//! `ca.pem` holds the key, the present root, older roots and cross certificates, and is replaced whole. [`register`] says whom it lets in.
//!
//! Invariants: the CA signs no other CA but its own successor; a name under `rhumb.internal` stands in a certificate only if the caller gives it as
//! the site's own.

pub mod register;

use crate::certificate::{self, Certificate, Fingerprint, pem_of};
use crate::files::{self, FileError};
use crate::identity::{Key, KeyError};
use crate::name::{self, NameError, SiteName};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyUsagePurpose, SanType, SerialNumber,
};
use rustls_pki_types::CertificateDer;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// The file of the CA in its folder.
pub const CA_FILE: &str = "ca.pem";
/// How long a root holds.
const ROOT_HOLDS: Duration = Duration::from_hours(24 * 3_650);
/// How long a certificate holds; its owner renews it when a third of that is left.
pub const LEAF_HOLDS: Duration = Duration::from_hours(24 * 90);
/// Certificates hold from so long before they are made: clocks differ.
const CLOCK_SLACK: Duration = Duration::from_mins(10);
/// The most names that a site may have besides its own.
pub const HOSTS_MAX: usize = 16;
/// The longest request for a certificate, in bytes.
pub const REQUEST_BYTES_MAX: usize = 4 << 10;

/// The CA of a cluster.
pub struct Authority {
    path: PathBuf,
    cluster: String,
    key: Key,
    /// The present root first.
    roots: Vec<CertificateDer<'static>>,
    crosses: Vec<CertificateDer<'static>>,
}

/// Whom a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A site, which serves and connects to others.
    Site {
        /// Its name.
        name: SiteName,
        /// Further names by which clients reach it.
        hosts: Vec<String>,
    },
    /// A person or program, which connects only.
    Client {
        /// Its name: that of a user.
        user: String,
    },
}

impl Subject {
    /// Whom a certificate is of that a CA of this kind has signed.
    pub fn of(certificate: &Certificate) -> Option<Subject> {
        match &certificate.sites()[..] {
            [name] if certificate.serves => {
                let own = name.to_string();
                let hosts = certificate.names.iter().filter(|host| **host != own).cloned().collect();
                Some(Subject::Site { name: name.clone(), hosts })
            }
            [] if !certificate.serves && certificate.names.is_empty() && !certificate.subject.is_empty() => {
                Some(Subject::Client { user: certificate.subject.clone() })
            }
            _ => None,
        }
    }
}

/// Why the CA cannot be used, or does not sign.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum AuthorityError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("{} is there already: a cluster has one CA", .0.display())]
    Exists(PathBuf),
    #[error("the certificate bears {0} names besides the site's own; at most {HOSTS_MAX} are allowed")]
    Hosts(usize),
    #[error("the request for a certificate is none, or is not signed by the key it is about")]
    Request,
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("cannot sign: {0}")]
    Sign(String),
}

impl Authority {
    /// Makes the CA of `cluster` in `folder`, which has none yet.
    pub fn create(folder: &Path, cluster: &str, now: SystemTime) -> Result<Authority, AuthorityError> {
        if !name::is_label(cluster) {
            return Err(NameError::Label(cluster.to_owned()).into());
        }
        let path = folder.join(CA_FILE);
        if path.exists() {
            return Err(AuthorityError::Exists(path));
        }
        files::make_folder(folder)?;
        let key = Key::new()?;
        let root = root_params(cluster, 1, now)?.self_signed(key.pair()).map_err(sign)?;
        let authority = Authority { path, cluster: cluster.to_owned(), key, roots: vec![root.into()], crosses: Vec::new() };
        authority.save()?;
        Ok(authority)
    }

    /// The CA in `folder`.
    pub fn open(folder: &Path) -> Result<Authority, AuthorityError> {
        let path = folder.join(CA_FILE);
        let broken = |what: &str| FileError::content(&path, what);
        let pem = files::read_private(&path)?;
        let key = Key::of(&pem).ok_or_else(|| broken("holds no key"))?;
        let all = certificate::all_of(&pem).map_err(|error| broken(&error.to_string()))?;
        let read = |der: &CertificateDer<'_>| Certificate::read(der).map_err(|error| broken(&error.to_string()));
        let first = read(all.first().ok_or_else(|| broken("holds no certificate"))?)?;
        let cluster = first.subject.split(' ').nth(3).ok_or_else(|| broken("is not of a CA that `rhumb init` made"))?.to_owned();
        let (mut roots, mut crosses) = (Vec::new(), Vec::new());
        for der in all {
            let certificate = read(&der)?;
            if certificate.subject == certificate.issuer { roots.push(der) } else { crosses.push(der) }
        }
        Ok(Authority { path, cluster, key, roots, crosses })
    }

    /// The cluster.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// What tokens know it by.
    pub fn fingerprint(&self) -> Fingerprint {
        certificate::fingerprint(&self.roots[0])
    }

    /// Those whom its sites believe: the present root, then older ones.
    pub fn roots(&self) -> &[CertificateDer<'static>] {
        &self.roots
    }

    /// The same as a PEM text.
    pub fn roots_pem(&self) -> String {
        self.roots.iter().map(pem_of).collect()
    }

    /// Signs the key in `request`, a PEM text, for `subject`, whatever else the request asks for. The PEM text of the certificate, and of those that lead
    /// from it to older roots.
    pub fn sign(&self, request: &str, subject: &Subject, now: SystemTime) -> Result<String, AuthorityError> {
        if request.len() > REQUEST_BYTES_MAX {
            return Err(AuthorityError::Request);
        }
        let mut request = CertificateSigningRequestParams::from_pem(request).map_err(|_| AuthorityError::Request)?;
        request.params = leaf_params(subject, now)?;
        let leaf = request.signed_by(&self.issuer()?).map_err(sign)?;
        let chain = [pem_of(leaf.der())].into_iter().chain(self.crosses.iter().map(pem_of));
        Ok(chain.collect())
    }

    /// A new key with a certificate for `subject`: the text of a file.
    pub fn issue(&self, subject: &Subject, now: SystemTime) -> Result<String, AuthorityError> {
        let key = Key::new()?;
        Ok(key.file(&self.sign(&key.request()?, subject, now)?))
    }

    /// Has a new root take the place of the present one, which stays believed.
    pub fn rotate(&mut self, now: SystemTime) -> Result<(), AuthorityError> {
        let generation = Certificate::read(&self.roots[0]).ok().and_then(|root| root.subject.rsplit(' ').next()?.parse::<u32>().ok());
        let params = root_params(&self.cluster, generation.unwrap_or(1) + 1, now)?;
        let key = Key::new()?;
        let root = params.self_signed(key.pair()).map_err(sign)?;
        let cross = params.signed_by(key.pair(), &self.issuer()?).map_err(sign)?;
        self.roots.insert(0, root.into());
        self.crosses.insert(0, cross.into());
        self.key = key;
        self.save()
    }

    /// Has older roots believed no more. How many there were.
    pub fn retire(&mut self) -> Result<usize, AuthorityError> {
        let older = self.roots.split_off(1).len();
        self.crosses.clear();
        self.save()?;
        Ok(older)
    }

    fn issuer(&self) -> Result<Issuer<'static, &rcgen::KeyPair>, AuthorityError> {
        Issuer::from_ca_cert_der(&self.roots[0], self.key.pair()).map_err(sign)
    }

    fn save(&self) -> Result<(), AuthorityError> {
        let certificates: String = self.roots.iter().chain(&self.crosses).map(pem_of).collect();
        Ok(files::write_private(&self.path, self.key.file(&certificates).as_bytes())?)
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

fn sign(error: rcgen::Error) -> AuthorityError {
    AuthorityError::Sign(error.to_string())
}

fn named(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

fn params(subject: &str, holds: Duration, now: SystemTime) -> Result<CertificateParams, AuthorityError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(subject);
    params.not_before = (now - CLOCK_SLACK).into();
    params.not_after = (now + holds).into();
    let mut serial = [0; 16];
    getrandom::fill(&mut serial).map_err(|error| AuthorityError::Sign(error.to_string()))?;
    // Positive, as a serial number has to be.
    serial[0] &= 0x7f;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn root_params(cluster: &str, generation: u32, now: SystemTime) -> Result<CertificateParams, AuthorityError> {
    let mut params = params(&format!("Rhumb CA of {cluster} {generation}"), ROOT_HOLDS, now)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn leaf_params(subject: &Subject, now: SystemTime) -> Result<CertificateParams, AuthorityError> {
    let dns = |name: &str| Ok::<_, AuthorityError>(SanType::DnsName(name.try_into().map_err(sign)?));
    let mut params = match subject {
        Subject::Site { name, hosts } => {
            if hosts.len() > HOSTS_MAX {
                return Err(AuthorityError::Hosts(hosts.len()));
            }
            let mut params = params(&name.to_string(), LEAF_HOLDS, now)?;
            params.subject_alt_names.push(dns(&name.to_string())?);
            for host in hosts {
                name::check_host(host)?;
                params.subject_alt_names.push(dns(host)?);
            }
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
            params
        }
        Subject::Client { user } => {
            let mut params = params(user, LEAF_HOLDS, now)?;
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            params
        }
    };
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

#[cfg(test)]
mod tests;
