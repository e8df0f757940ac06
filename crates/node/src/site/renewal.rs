//! Certificates over time: files that change are read anew, and the own certificate is renewed before it ends.
//!
//! ```text
//!   every second    files changed? ──▶ new connections go by them; broken ones are told in the log, and the old ones stay in use
//!   every 10 s      ask the CA for the authorities ──▶ file of the authorities
//!                   a third of the time left, or the CA's root is another? ──▶ new key, new certificate ──▶ file of the certificate
//! ```
//! The site that holds the CA asks it in its folder, all others over HTTP at that site, whose certificate must bear its name. Without either, the operator
//! replaces the files.
//!
//! Invariant: a renewal that fails changes nothing, and is tried again.

use crate::config::{RenewalSetup, TlsSetup};
use crate::https::{self, Failure};
use hyper::Method;
use rhumb_api::certificates::{Certificates, RenewalRequest};
use rhumb_security::authority::{Authority, Subject};
use rhumb_security::certificate::{self, Certificate};
use rhumb_security::files;
use rhumb_security::identity::Key;
use rhumb_security::tls::{Reload, Tls};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::TcpStream;

/// How often the files are looked at.
const READ_EVERY: Duration = Duration::from_secs(1);
/// How often the CA is asked.
const ASK_EVERY: Duration = Duration::from_secs(10);
/// How long it may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Looks after the certificates of a site, for ever.
pub(super) async fn keep(tls: Arc<Tls>, setup: TlsSetup) {
    let renews = setup.ca.is_some() || setup.renewal.is_some();
    let mut said = None;
    loop {
        if renews {
            match renew(&tls, &setup).await {
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
        }
        for _ in 0..ASK_EVERY.as_secs() / READ_EVERY.as_secs() {
            read(&tls).await;
            tokio::time::sleep(READ_EVERY).await;
        }
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
        replace(setup.files.authorities.clone(), authorities).await?;
        read(tls).await;
    }
    let own = tls.certificate();
    if !own.is_due(SystemTime::now()) && own.issuer == root.subject {
        return Ok(None);
    }
    let key = Key::new()?;
    let answer = ask(tls, setup, Some(key.request()?)).await?;
    let chain = answer.certificate.ok_or("the CA sends no certificate")?;
    let renewed = Certificate::read(certificate::all_of(chain.as_bytes())?.first().ok_or("the CA sends no certificate")?)?;
    if !renewed.sites().contains(tls.name()) {
        return Err("the CA sends a certificate of another site".into());
    }
    if setup.files.key != setup.files.certificate {
        return Err("`tls.key` is a file of its own: what is renewed is one file, the key in it; leave `tls.key` out".into());
    }
    replace(setup.files.certificate.clone(), key.file(&chain)).await?;
    read(tls).await;
    Ok(Some(renewed.until.duration_since(SystemTime::now()).unwrap_or_default()))
}

async fn ask(tls: &Arc<Tls>, setup: &TlsSetup, request: Option<String>) -> Result<Certificates, Failure> {
    match (&setup.ca, &setup.renewal) {
        (Some(ca), _) => {
            let (ca, own) = (ca.clone(), tls.certificate());
            tokio::task::spawn_blocking(move || {
                let authority = Authority::open(&ca)?;
                let subject = Subject::of(&own).ok_or("the certificate in use is not one of this CA")?;
                let certificate = request.map(|request| authority.sign(&request, &subject, SystemTime::now())).transpose()?;
                Ok(Certificates { certificate, authorities: authority.roots_pem() })
            })
            .await?
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
        (status, body) => Err(format!("{} answers {status}: {body}", renewal.http).into()),
    }
}

async fn replace(path: std::path::PathBuf, text: String) -> Result<(), Failure> {
    Ok(tokio::task::spawn_blocking(move || files::write_private(&path, text.as_bytes())).await??)
}
