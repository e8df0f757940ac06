//! Certificates over HTTP, at the site that holds the CA.
//!
//! ```text
//!   GET  /certificates                  the authorities that are to be believed
//!   POST /certificates {"request":…}    a new certificate that says of a new key what the present one says of its own
//! ```
//! The client has connected with a certificate that is still believed and was not renewed before, so that it is renewed by nobody but its owner, and nobody
//! gets another name than the one that he has. Sites alone renew: a person's is made anew at the CA.

use super::body::{Body, read};
use super::caller::Caller;
use super::failed::Failed;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use rhumb_api::certificates::{Certificates, RenewalRequest};
use rhumb_api::error::{Code, Error};
use rhumb_api::responses;
use rhumb_security::authority::holders::HolderError;
use rhumb_security::authority::{self, Answer, AuthorityError, REQUEST_BYTES_MAX};
use std::path::PathBuf;
use std::time::SystemTime;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes. `ca` is the folder of the CA, if this site holds it.
pub fn router(ca: Option<PathBuf>) -> OpenApiRouter {
    OpenApiRouter::default().routes(routes!(authorities, renew)).with_state(Site { ca })
}

/// What the routes work on.
#[derive(Clone)]
struct Site {
    ca: Option<PathBuf>,
}

/// The authorities that sites and clients of this cluster are to believe.
#[utoipa::path(
    get,
    path = "/certificates",
    operation_id = "authorities",
    responses(
        (status = 200, description = "The authorities.", body = Certificates),
        (status = 404, description = "`NOAUTHORITY`: this site does not hold the CA.", body = Error),
        (status = 503, response = responses::Unavailable)
    )
)]
async fn authorities(State(site): State<Site>, Extension(caller): Extension<Caller>) -> Result<Json<Certificates>, Failed> {
    site.ask(caller, None).await
}

/// Renew the certificate with which the client, a site, has connected.
#[utoipa::path(
    post,
    path = "/certificates",
    operation_id = "renew_certificate",
    request_body = RenewalRequest,
    responses(
        (status = 200, description = "The new certificate, and the authorities.", body = Certificates),
        (status = 400, description = "`INVALID`: the request is none, the present certificate is of no site, or another has taken its place.", body = Error),
        (status = 401, description = "`UNAUTHENTICATED`: the client has shown no certificate.", body = Error),
        (status = 404, description = "`NOAUTHORITY`: this site does not hold the CA.", body = Error),
        (status = 413, response = responses::TooLarge),
        (status = 415, response = responses::NotJson),
        (status = 503, response = responses::Unavailable)
    )
)]
async fn renew(
    State(site): State<Site>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Certificates>, Failed> {
    let RenewalRequest { request } = read(&headers, body, 2 * REQUEST_BYTES_MAX)?;
    if !matches!(caller, Caller::Certified(_)) {
        return Err(Failed::new(Code::Unauthenticated, "a certificate is renewed by its owner: connect with it"));
    }
    site.ask(caller, Some(request)).await
}

impl Site {
    /// Answers with what the CA says. It is opened anew each time: `rhumb cert rotate` may have changed it.
    async fn ask(self, caller: Caller, request: Option<String>) -> Result<Json<Certificates>, Failed> {
        let ca = self
            .ca
            .ok_or_else(|| Failed::new(Code::NoAuthority, "this site does not hold the CA of the cluster; ask the one that does"))?;
        let answered = tokio::task::spawn_blocking(move || {
            let shown = match &caller {
                Caller::Certified(certificate) => Some(&**certificate),
                Caller::Local | Caller::Anonymous => None,
            };
            authority::answer(&ca, shown, request.as_deref(), SystemTime::now())
        });
        match answered.await {
            Ok(Ok(Answer { certificate, authorities })) => Ok(Json(Certificates { certificate, authorities })),
            Ok(Err(error @ AuthorityError::Holder(HolderError::Superseded(_)))) => {
                tracing::warn!("a certificate was not renewed: {error}");
                Err(Failed::invalid(error.to_string()))
            }
            Ok(Err(
                error @ (AuthorityError::Request | AuthorityError::Name(_) | AuthorityError::Hosts(_) | AuthorityError::NotRenewed),
            )) => Err(Failed::invalid(error.to_string())),
            Ok(Err(error)) => Err(Failed::new(Code::Unavailable, error.to_string())),
            Err(_) => Err(Failed::new(Code::Unavailable, "the CA did not answer")),
        }
    }
}
