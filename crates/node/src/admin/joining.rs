//! Joining a cluster, at the site that holds the CA: while the cluster forms, and afterwards for whoever is late to hear that it has.
//!
//! ```text
//!   POST /join      a token, and who comes with it: a certificate, the authorities, the secret of the cluster
//!   GET  /forming   where the sites are, and which are missing; for who has a certificate
//! ```
//! What is asked with a token is answered once all of it can be, and only then is the token used up. It is answered again to who asks the same, until the site
//! has shown its certificate. Nobody new is let in once the cluster has opened, whatever state of the register was put back.

use super::body::{Body, read};
use super::caller::Caller;
use super::failed::Failed;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use rhumb_api::certificates::{Certificates, Forming, FormingRegion, JoinRequest, Joined};
use rhumb_api::error::Code;
use rhumb_config::{Setup, TlsSetup};
use rhumb_security::authority::holders::{self, HolderError};
use rhumb_security::authority::register::{self, Candidate, Member, Register, RegisterError, member_name};
use rhumb_security::authority::{Authority, AuthorityError, Subject};
use rhumb_security::files::{self, FileError};
use rhumb_security::name::{NameError, SiteName};
use rhumb_security::token::TokenSecret;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use thiserror::Error;
use tokio::sync::Semaphore;

/// The longest request to join, in bytes.
const JOIN_BYTES_MAX: usize = 16 << 10;
/// The most requests to join that are looked at at a time.
const JOINS_MAX: usize = 4;

/// What the routes work on.
#[derive(Clone, Debug)]
pub struct Joining {
    /// The folder of the CA and its register.
    pub ca: PathBuf,
    /// The file of the cluster's secret.
    pub secret_file: PathBuf,
    /// The name of the site that holds the CA.
    pub site: SiteName,
    /// True once the cluster has opened: whatever the register says, nobody new is let in.
    pub is_open: bool,
}

impl Joining {
    /// That of the site of `setup`, if it holds the CA.
    pub(super) fn at(setup: &Setup, tls: &TlsSetup) -> Option<Joining> {
        let site = tls.names.get(&setup.site)?.clone();
        Some(Joining { ca: tls.ca.clone()?, secret_file: setup.secret_file.clone(), site, is_open: true })
    }
}

/// Why a site is not let in.
#[derive(Debug, Error)]
enum JoinError {
    #[error(transparent)]
    Register(#[from] RegisterError),
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Holder(#[from] HolderError),
}

impl From<JoinError> for Failed {
    fn from(error: JoinError) -> Failed {
        match &error {
            JoinError::Register(RegisterError::UnknownToken | RegisterError::ExpiredToken | RegisterError::UsedToken(_)) => {
                Failed::new(Code::Token, error.to_string())
            }
            JoinError::File(_)
            | JoinError::Register(RegisterError::File(_))
            | JoinError::Authority(AuthorityError::File(_))
            | JoinError::Holder(_) => {
                // Where its files lie is nothing to tell who may be anybody.
                tracing::warn!("nobody can join: {error}");
                Failed::new(Code::Unavailable, "the CA cannot be used; the log of its site says why")
            }
            _ => Failed::new(Code::Invalid, error.to_string()),
        }
    }
}

/// The routes.
pub fn router(joining: Joining) -> Router {
    let state = Arc::new(Desk { joining, places: Semaphore::new(JOINS_MAX) });
    Router::new().route("/join", post(join)).route("/forming", get(forming)).with_state(state)
}

/// What the routes work on, and how many are answered at a time.
struct Desk {
    joining: Joining,
    places: Semaphore,
}

async fn join(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Body) -> Result<Json<Joined>, Failed> {
    let asked: JoinRequest = read(&headers, body, JOIN_BYTES_MAX)?;
    let candidate = candidate(asked).ok_or_else(|| Failed::invalid("the request to join holds no token, or no address IP:PORT"))?;
    let name = member_name(&candidate.member.region, candidate.member.shard);
    // Others wait for a place, not for a thread.
    let _place = desk.places.acquire().await;
    let working = Arc::clone(&desk);
    let joined = tokio::task::spawn_blocking(move || admit(&working.joining, &candidate)).await;
    let (joined, is_new) = joined.map_err(|_| Failed::new(Code::Unavailable, "the CA did not answer"))??;
    if is_new {
        tracing::info!("{name} has joined");
    }
    Ok(Json(joined))
}

fn candidate(asked: JoinRequest) -> Option<Candidate> {
    let JoinRequest { token, secret, region, shard, peer, hosts, request } = asked;
    let (mut id, mut bytes) = ([0; 6], [0; 32]);
    hex::decode_to_slice(token, &mut id).ok()?;
    hex::decode_to_slice(secret, &mut bytes).ok()?;
    Some(Candidate { id, secret: TokenSecret(bytes), member: Member { region, shard, peer: peer.parse().ok()?, hosts, request } })
}

/// Lets a site in, and makes what it is answered. True if it is new.
fn admit(joining: &Joining, candidate: &Candidate) -> Result<(Joined, bool), JoinError> {
    let now = SystemTime::now();
    // Who has no token waits for nobody who changes the register, and keeps nobody from it.
    register::read(&joining.ca)?.check_token(&candidate.id, &candidate.secret)?;
    let secret = String::from_utf8_lossy(&files::read_private(&joining.secret_file)?).trim().to_owned();
    register::change(&joining.ca, |register| {
        let Member { region, shard, hosts, request, .. } = &candidate.member;
        let name = SiteName::new(&register.cluster, region, *shard)?;
        let has_arrived = holders::read(&joining.ca)?.knows(&name);
        let is_new = register.admit(candidate, has_arrived, now)?;
        if is_new && joining.is_open {
            return Err(RegisterError::Complete.into());
        }
        let subject = Subject::Site { name, hosts: hosts.clone() };
        let authority = Authority::open(&joining.ca)?;
        let certificate = Some(authority.sign(request, &subject, now)?);
        let certificates = Certificates { certificate, authorities: authority.roots_pem() };
        Ok((Joined { certificates, secret, site: joining.site.to_string() }, is_new))
    })
}

async fn forming(State(desk): State<Arc<Desk>>, Extension(caller): Extension<Caller>) -> Result<Json<Forming>, Failed> {
    let Caller::Certified(certificate) = caller else {
        return Err(Failed::new(Code::Unauthenticated, "show a certificate of this cluster"));
    };
    let answered = tokio::task::spawn_blocking(move || {
        let ca = &desk.joining.ca;
        if let Some(Subject::Site { name, .. }) = Subject::of(&certificate) {
            holders::show(ca, &name, &certificate)?;
        }
        Ok::<_, JoinError>(register::read(ca)?)
    });
    match answered.await {
        Ok(Ok(register)) => Ok(Json(shape(&register))),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(Failed::new(Code::Unavailable, "the register cannot be read")),
    }
}

/// How far a cluster has formed.
pub fn shape(register: &Register) -> Forming {
    let site = |region: &str, shard| register.members.get(&member_name(region, shard)).map(|member| member.peer.to_string());
    let region = |name: &String| {
        let sites = (0..register.sites_per_region).map(|shard| site(name, shard)).collect();
        FormingRegion { name: name.clone(), sites }
    };
    Forming { cluster: register.cluster.clone(), regions: register.regions.iter().map(region).collect(), missing: register.missing() }
}

#[cfg(test)]
mod tests;
