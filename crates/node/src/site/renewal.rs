//! Certificates over time: files that change are read anew, and the own certificate is renewed before it ends.
//!
//! ```text
//!   each READ_EVERY   files changed? ──▶ new connections go by them; broken ones are told in the log, and the old ones stay in use
//!   each ASK_EVERY    ask the CA for the authorities ──▶ file of the authorities
//!                     due, or the CA's root is another? ──▶ new key, new certificate ──▶ file of the certificate
//! ```
//! What operators are told of it is in `docs/deploy.md`, "Certificates over time".
//!
//! The site that holds the CA asks it in its folder, all others over HTTP at that site, whose certificate must bear its name. Without either, the operator
//! replaces the files.
//!
//! Invariants: a renewal that fails changes nothing, and is tried again, with the same key; nothing takes the place of a file that this site could not go by,
//! be it that the CA or its clock is not what it was.

use crate::https::{self, Failure};
use hyper::Method;
use rhumb_api::certificates::{Certificates, RenewalRequest};
use rhumb_api::error::Error as ApiError;
use rhumb_config::{RenewalSetup, TlsSetup};
use rhumb_security::authority::{self, Answer};
use rhumb_security::certificate::{self, Certificate};
use rhumb_security::files;
use rhumb_security::identity::Key;
use rhumb_security::tls::{Reload, Tls};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::TcpStream;

/// How often the files are looked at.
const READ_EVERY: Duration = Duration::from_secs(1);
/// How often the CA is asked.
const ASK_EVERY: Duration = Duration::from_secs(10);
/// How long it may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The most of what it says that is told in the log.
const REASON_CHARS_MAX: usize = 500;

/// Looks after the certificates of a site, for ever.
pub(super) async fn keep(tls: Arc<Tls>, setup: TlsSetup) {
    // Files are read anew whether the CA answers or not.
    let reading = async {
        loop {
            read(&tls).await;
            tokio::time::sleep(READ_EVERY).await;
        }
    };
    let renewing = async {
        if setup.ca.is_some() || setup.renewal.is_some() {
            keep_renewed(&tls, &setup).await;
        }
    };
    tokio::join!(reading, renewing);
}

async fn keep_renewed(tls: &Arc<Tls>, setup: &TlsSetup) {
    let mut said = None;
    loop {
        match renew(tls, setup).await {
            Ok(renewed) => {
                said = None;
                if let Some(until) = renewed {
                    tracing::info!("the certificate of this site was renewed; it ends in {} days", until.as_secs() / 86_400);
                }
            }
            // Said once, not each time.
            Err(failure) => {
                let failure = failure.to_string();
                if said.as_ref() != Some(&failure) {
                    tracing::warn!("the certificate of this site cannot be renewed: {failure}; trying again");
                    said = Some(failure);
                }
            }
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}

/// Reads the files anew.
async fn read(tls: &Arc<Tls>) {
    let tls = Arc::clone(tls);
    match tokio::task::spawn_blocking(move || tls.reload()).await {
        Ok(Reload::Changed) => tracing::info!("certificates were read anew"),
        Ok(Reload::Broken(why)) => tracing::error!("certificates cannot be read anew, and those in use stay in use: {why}"),
        Ok(Reload::Same) | Err(_) => {}
    }
}

/// Asks the CA for the authorities, and for a new certificate if it is time. How long that one holds.
async fn renew(tls: &Arc<Tls>, setup: &TlsSetup) -> Result<Option<Duration>, Failure> {
    let Certificates { authorities, .. } = ask(tls, setup, None).await?;
    let roots = certificate::all_of(authorities.as_bytes())?;
    let root = Certificate::read(roots.first().ok_or("the CA names no authority")?)?;
    let known: Vec<_> = tls.authorities().iter().map(|authority| authority.fingerprint).collect();
    if known != roots.iter().map(|root| certificate::fingerprint(root)).collect::<Vec<_>>() {
        // An older CA that was put back would have its sites believe nobody: not even the one that holds it.
        let checked = tls.check_authorities(&authorities);
        checked.map_err(|error| format!("the CA names authorities that this site cannot go by; was an older one put back? {error}"))?;
        replace(setup.files.authorities.clone(), authorities).await?;
        read(tls).await;
    }
    let own = tls.certificate();
    if !own.is_due(SystemTime::now()) && own.is_signed_by(&root) {
        return Ok(None);
    }
    if setup.files.key != setup.files.certificate {
        return Err("`tls.key` is a file of its own: what is renewed is one file, the key in it; leave `tls.key` out".into());
    }
    let (key, kept) = next_key(&setup.files.certificate).await?;
    let answer = ask(tls, setup, Some(key.request()?)).await?;
    let file = key.file(&answer.certificate.ok_or("the CA sends no certificate")?);
    tls.check_identity(&file)?;
    replace(setup.files.certificate.clone(), file).await?;
    // Left there it would be asked with once more, which is no harm.
    let _ = tokio::fs::remove_file(kept).await;
    read(tls).await;
    // Shows the new one, which the CA waits for before it lets an older root go.
    ask(tls, setup, None).await?;
    Ok(Some(tls.certificate().until.duration_since(SystemTime::now()).unwrap_or_default()))
}

/// The key of the next certificate, and where it is kept until there is one. It is on disk before it is asked with: the CA gives one other key a
/// certificate in the place of this site's, and answers again only for that.
async fn next_key(certificate: &Path) -> Result<(Key, PathBuf), Failure> {
    let path = certificate.with_extension("next");
    let kept = path.clone();
    let key = tokio::task::spawn_blocking(move || -> Result<Key, Failure> {
        match files::read_private(&kept) {
            Ok(pem) => Key::of(&pem).ok_or_else(|| Failure::from(format!("{} holds no key; remove it", kept.display()))),
            Err(error) if error.is_missing() => {
                let key = Key::new()?;
                files::write_private(&kept, key.pem().as_bytes())?;
                Ok(key)
            }
            Err(error) => Err(error.into()),
        }
    });
    Ok((key.await??, path))
}

async fn ask(tls: &Arc<Tls>, setup: &TlsSetup, request: Option<String>) -> Result<Certificates, Failure> {
    match (&setup.ca, &setup.renewal) {
        (Some(ca), _) => {
            let (ca, own) = (ca.clone(), tls.certificate());
            let answered = move || authority::answer(&ca, Some(&own), request.as_deref(), SystemTime::now());
            let Answer { certificate, authorities } = tokio::task::spawn_blocking(answered).await??;
            Ok(Certificates { certificate, authorities })
        }
        (None, Some(renewal)) => tokio::time::timeout(ANSWER_MAX, ask_site(tls, renewal, request)).await?,
        (None, None) => Err("there is nobody to ask".into()),
    }
}

async fn ask_site(tls: &Arc<Tls>, renewal: &RenewalSetup, request: Option<String>) -> Result<Certificates, Failure> {
    let stream = tls.connect(TcpStream::connect(renewal.http).await?, &renewal.site).await?;
    let (method, body) = match request {
        None => (Method::GET, String::new()),
        Some(request) => (Method::POST, serde_json::to_string(&RenewalRequest { request })?),
    };
    match https::exchange(stream, &renewal.site.to_string(), method, "/certificates", body).await? {
        (200, body) => Ok(serde_json::from_str(&body)?),
        (status, body) => Err(format!("{} answers {status}: {}", renewal.http, reason(&body)).into()),
    }
}

/// Why it refuses: no more of what it says than stands in a line of the log.
fn reason(body: &str) -> String {
    let said = serde_json::from_str::<ApiError>(body).map_or_else(|_| body.to_owned(), |ApiError { error }| error.message);
    said.chars().take(REASON_CHARS_MAX).collect()
}

async fn replace(path: PathBuf, text: String) -> Result<(), Failure> {
    Ok(tokio::task::spawn_blocking(move || files::write_private(&path, text.as_bytes())).await??)
}

#[cfg(test)]
mod tests;
