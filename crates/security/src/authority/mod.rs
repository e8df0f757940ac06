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
//! One rotation ends before the next begins: nobody may have missed two. And none ends before all sites have shown certificates of the new root,
//! since one that has none is believed by nobody from then on, and has nobody to ask for one.
//!
//! `ca.pem` holds the key, the present root, older roots and cross certificates, and is replaced whole. [`register`] says whom it lets in, [`holders`] who may
//! renew.
//!
//! Invariants: the CA signs no other CA but its own successor; a name under `rhumb.internal` stands in a certificate only if the caller gives it as
//! the site's own.

pub mod holders;
pub mod register;

use crate::certificate::{self, Certificate, Fingerprint, pem_of};
use crate::files::{self, FileError};
use crate::identity::{Key, KeyError};
use crate::name::{self, NameError, SiteName};
use holders::HolderError;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use register::RegisterError;
use rustls_pki_types::CertificateDer;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// The file of the CA in its folder.
pub const CA_FILE: &str = "ca.pem";
/// How long a root holds.
const ROOT_HOLDS: Duration = Duration::from_hours(24 * 3_650);
/// How long a certificate holds; its owner renews it once it [is due](Certificate::is_due).
pub const LEAF_HOLDS: Duration = Duration::from_hours(24 * 90);
/// Certificates hold from so long before they are made: clocks differ.
const CLOCK_SLACK: Duration = Duration::from_mins(10);
/// The most names that a site may have besides its own.
pub const HOSTS_MAX: usize = 16;
/// The most roots that are believed at a time.
pub const ROOTS_MAX: usize = 2;
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
    #[error("certificates of sites alone are renewed; that of a client is made anew by `rhumb cert issue`")]
    NotRenewed,
    #[error("cannot sign: {0}")]
    Sign(String),
    #[error("older CAs are still believed: `rhumb cert retire` ends that, and then another can take the place of the present one")]
    Unretired,
    #[error(
        "{} would be believed by nobody: no certificate of the present CA was shown from there yet. A site renews within half a minute; for one \
         that is not to come back, or has none that is believed, make one with `rhumb cert issue --site`",
        .0.join(", ")
    )]
    Behind(Vec<String>),
    #[error(transparent)]
    Register(#[from] RegisterError),
    #[error(transparent)]
    Holder(#[from] HolderError),
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

    /// The fingerprint of the key that `request` is about.
    pub fn key_in(request: &str) -> Result<Fingerprint, AuthorityError> {
        if request.len() > REQUEST_BYTES_MAX {
            return Err(AuthorityError::Request);
        }
        let request = CertificateSigningRequestParams::from_pem(request).map_err(|_| AuthorityError::Request)?;
        Ok(certificate::key_fingerprint(request.public_key.der_bytes()))
    }

    /// A new key with a certificate for `subject`: the text of a file.
    pub fn issue(&self, subject: &Subject, now: SystemTime) -> Result<String, AuthorityError> {
        let key = Key::new()?;
        Ok(key.file(&self.sign(&key.request()?, subject, now)?))
    }

    /// Has a new root take the place of the present one, which stays believed.
    pub fn rotate(&mut self, now: SystemTime) -> Result<(), AuthorityError> {
        self.change(|authority| {
            if authority.roots.len() >= ROOTS_MAX {
                return Err(AuthorityError::Unretired);
            }
            let generation =
                Certificate::read(&authority.roots[0]).ok().and_then(|root| root.subject.rsplit(' ').next()?.parse::<u32>().ok());
            let params = root_params(&authority.cluster, generation.unwrap_or(1) + 1, now)?;
            let key = Key::new()?;
            let root = params.self_signed(key.pair()).map_err(sign)?;
            let cross = params.signed_by(key.pair(), &authority.issuer()?).map_err(sign)?;
            authority.roots.insert(0, root.into());
            authority.crosses.insert(0, cross.into());
            authority.key = key;
            Ok(())
        })
    }

    /// Has older roots believed no more. How many there were.
    pub fn retire(&mut self) -> Result<usize, AuthorityError> {
        self.change(|authority| {
            let folder = authority.folder();
            let sites = match register::read(folder) {
                Ok(register) => Some(register.sites()),
                Err(error) if error.is_missing() => None,
                Err(error) => return Err(error.into()),
            };
            let present = Certificate::read(&authority.roots[0]).map_err(|error| AuthorityError::Sign(error.to_string()))?;
            let behind = holders::read(folder)?.behind(sites, &present);
            if !behind.is_empty() {
                return Err(AuthorityError::Behind(behind));
            }
            authority.crosses.clear();
            Ok(authority.roots.split_off(1).len())
        })
    }

    /// Changes the CA as it is on disk, where nobody else changes it meanwhile.
    fn change<T>(&mut self, change: impl FnOnce(&mut Authority) -> Result<T, AuthorityError>) -> Result<T, AuthorityError> {
        let _lock = files::lock(self.folder())?;
        let mut authority = Authority::open(self.folder())?;
        let changed = change(&mut authority)?;
        authority.save()?;
        *self = authority;
        Ok(changed)
    }

    fn folder(&self) -> &Path {
        self.path.parent().expect("it is a file of a folder")
    }

    /// A new key with a certificate for the site `name`, which takes the place of all that it had: none of those is renewed any more.
    pub fn replace(&self, name: &SiteName, hosts: Vec<String>, now: SystemTime) -> Result<String, AuthorityError> {
        let text = self.issue(&Subject::Site { name: name.clone(), hosts }, now)?;
        let unreadable = |error: certificate::Unreadable| AuthorityError::Sign(error.to_string());
        let chain = certificate::all_of(text.as_bytes()).map_err(unreadable)?;
        let own = Certificate::read(chain.first().ok_or(AuthorityError::Request)?).map_err(unreadable)?;
        holders::replace(self.folder(), name, &own)?;
        Ok(text)
    }

    fn issuer(&self) -> Result<Issuer<'static, &rcgen::KeyPair>, AuthorityError> {
        Issuer::from_ca_cert_der(&self.roots[0], self.key.pair()).map_err(sign)
    }

    fn save(&self) -> Result<(), AuthorityError> {
        let certificates: String = self.roots.iter().chain(&self.crosses).map(pem_of).collect();
        Ok(files::write_private(&self.path, self.key.file(&certificates).as_bytes())?)
    }
}

/// What a CA answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The certificate that was asked for, and those that go with it, as a PEM text.
    pub certificate: Option<String>,
    /// The authorities, as a PEM text.
    pub authorities: String,
}

/// What the CA in `folder` answers whoever has shown `certificate`: the authorities, and a new certificate of the key in `request` if there is one.
pub fn answer(folder: &Path, shown: Option<&Certificate>, request: Option<&str>, now: SystemTime) -> Result<Answer, AuthorityError> {
    let authority = Authority::open(folder)?;
    let subject = shown.and_then(|shown| Some((shown, Subject::of(shown)?)));
    let certificate = match (subject, request) {
        (Some((shown, Subject::Site { name, .. })), None) => {
            holders::show(folder, &name, shown)?;
            None
        }
        (Some((shown, Subject::Site { name, hosts })), Some(request)) => {
            let subject = Subject::Site { name: name.clone(), hosts };
            let signed = authority.sign(request, &subject, now)?;
            holders::renew(folder, &name, shown, &Authority::key_in(request)?)?;
            Some(signed)
        }
        (_, None) => None,
        (_, Some(_)) => return Err(AuthorityError::NotRenewed),
    };
    Ok(Answer { certificate, authorities: authority.roots_pem() })
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
