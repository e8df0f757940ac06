//! What a site shows over HTTP, to people, probes and Prometheus.
//!
//! ```text
//!   GET  /healthz   200 as long as the process can go on
//!   GET  /readyz    200 if clients can be served, else 503 and the reason
//!   GET  /metrics   what the site counts and measures
//!   GET  /status    JSON: the site, its regions and peers, transactions under way, quotas
//!   /placement      see [`placement`]
//!   GET  /quorums   see [`quorums`]
//!   POST /quorums   likewise
//!   POST /chaos     see [`chaos`]
//!   /certificates   see [`certificates`]
//!   /join, /forming see [`joining`]; not in the document, since sites alone ask them
//!   /quotas…        see [`quotas`]
//!   /lost           likewise
//!   GET  /openapi.json   all that, for machines
//! ```
//! Shapes of bodies and answers are those of `rhumb-api`; what is refused is answered as `failed.rs` says. A route is registered together
//! with its operation in the OpenAPI document, so there is none without the other.
//!
//! How many may ask, and how slowly, is bounded ([`listener`]). A site that is stopping answers what it has been asked, and then only probes, that
//! is [`PROBES`]: all else is refused. Pages of other sites in a browser are refused all of it (`origin.rs`), anonymous clients all but [`OPEN`]
//! (`caller.rs`).

mod body;
mod caller;
mod certificates;
mod chaos;
mod document;
mod failed;
pub mod joining;
pub mod listener;
mod origin;
mod placement;
mod quorums;
pub mod quotas;
mod status;

use crate::gateway::quotas::{Gateway, KeepsQuotas};
use crate::gateway::vitals::{self, Commits};
use crate::metrics::vitals::Said;
use crate::runtime::Handle;
use crate::status::Status;
use async_trait::async_trait;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use document::{Document, Text};
use failed::Failed;
use rhumb_api::error::Code;
use rhumb_catenae::Site as Catenae;
use rhumb_quad::Site as Quad;
use rhumb_quota::refusal::Refusal;
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What is asked by who looks after the process, and tells how it is until its end.
pub const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// What an anonymous client may ask: [`PROBES`], and to join, for which a token is shown.
pub const OPEN: [&str; 3] = [PROBES[0], PROBES[1], "/join"];

/// The routes of a site.
pub fn router<C: Commits, Q: KeepsQuotas>(
    status: Arc<Status>,
    commits: Handle<C>,
    quotas: Handle<Q>,
    catenae: Option<Handle<Catenae>>,
    quad: Option<Handle<Quad>>,
) -> Router {
    let topology = Arc::new(status.setup().topology.clone());
    let names = status.setup().http_names.clone();
    let of_quotas = quotas::router(Arc::new(Gateway::new(quotas.clone())), topology);
    let of_placement = placement::router(C::placements(commits.clone(), Arc::clone(&status)), status.shared_setup());
    let of_chaos = chaos::router(Arc::clone(&status), quad.clone());
    let of_quorums = quorums::router(Arc::clone(&status), quad.clone());
    let of_certificates = certificates::router(status.setup().tls.as_ref().and_then(|tls| tls.ca.clone()));
    let actors = Arc::new(Actors { status: Arc::clone(&status), commits, quotas, catenae, quad });
    let (routes, document) = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(healthz))
        .routes(routes!(readyz))
        .routes(routes!(metrics))
        .routes(routes!(status::show))
        .with_state(Site { status: Arc::clone(&status), actors })
        .routes(routes!(document::openapi))
        .merge(of_certificates)
        .merge(of_chaos)
        .merge(of_placement)
        .merge(of_quorums)
        .merge(of_quotas)
        .split_for_parts();
    let text = serde_json::to_vec(&document).expect("a document has a form in JSON");
    let routes = match status.setup().tls.as_ref().and_then(|tls| joining::Joining::at(status.setup(), tls)) {
        Some(joining) => routes.merge(joining::router(joining)),
        None => routes,
    };
    let routes = routes.fallback(nowhere).method_not_allowed_fallback(method_not_allowed);
    let routes = routes.layer(Extension(Text(text.into()))).layer(from_fn_with_state(status, refuse_while_stopping));
    open(routes, names)
}

/// Refuses a request for a path at which there is nothing.
async fn nowhere() -> Failed {
    Failed::new(Code::NotFound, "there is nothing at this path; /openapi.json lists those that there are")
}

/// Refuses a request to a path that does not take its method. The answer gets the header Allow besides.
async fn method_not_allowed(method: Method) -> Failed {
    let why = format!("this path does not take {method}; the header Allow says what it takes");
    Failed::invalid_with(StatusCode::METHOD_NOT_ALLOWED, why)
}

/// Lets a site that is stopping take up nothing new.
async fn refuse_while_stopping(State(status): State<Arc<Status>>, request: Request, next: Next) -> Response {
    if status.is_stopping() && !PROBES.contains(&request.uri().path()) {
        return Failed::from(Refusal::Unavailable("the site is stopping".into())).into_response();
    }
    next.run(request).await
}

/// Routes that are asked over TLS while there is no site yet: the guards of a site are theirs.
pub fn open(routes: Router, names: Vec<String>) -> Router {
    guarded(routes.layer(from_fn(caller::check)), names)
}

/// Refuses requests to `routes` that a page of another site may have made. `names` are those of this site.
pub fn guarded(routes: Router, names: Vec<String>) -> Router {
    routes.layer(from_fn_with_state(Arc::<[String]>::from(names), origin::check))
}

/// What the routes of this file and of `status.rs` work on.
#[derive(Clone)]
struct Site {
    status: Arc<Status>,
    actors: Arc<dyn Inquiry>,
}

/// Actors that can be asked how they are.
#[async_trait]
trait Inquiry: Send + Sync {
    /// What they say of themselves, asked at the same time.
    async fn vitals(&self) -> Said;
}

/// The actors of a site.
struct Actors<C: Commits, Q: KeepsQuotas> {
    status: Arc<Status>,
    commits: Handle<C>,
    quotas: Handle<Q>,
    catenae: Option<Handle<Catenae>>,
    quad: Option<Handle<Quad>>,
}

#[async_trait]
impl<C: Commits, Q: KeepsQuotas> Inquiry for Actors<C, Q> {
    async fn vitals(&self) -> Said {
        let of_catenae = async {
            match &self.catenae {
                Some(catenae) => vitals::of_catenae(catenae, &self.status).await,
                None => None,
            }
        };
        let of_quad = async {
            match &self.quad {
                Some(quad) => vitals::of_quad(quad, &self.status).await,
                None => None,
            }
        };
        let of_commits = vitals::of_commits(&self.commits, &self.status);
        let (commits, quotas, catenae, quad) = tokio::join!(of_commits, vitals::of_quotas(&self.quotas, &self.status), of_catenae, of_quad);
        Said { commits, quotas, catenae, quad }
    }
}

/// Can the process go on?
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "health",
    responses((status = 200, description = "Yes.", body = String), (status = 500, description = "No; the reason.", body = String))
)]
async fn healthz(State(site): State<Site>) -> (StatusCode, String) {
    match site.status.failure().reason() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(reason) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{reason}\n")),
    }
}

/// Can clients be served?
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "readiness",
    responses((status = 200, description = "Yes.", body = String), (status = 503, description = "No; the reason.", body = String))
)]
async fn readyz(State(site): State<Site>) -> (StatusCode, String) {
    match site.status.ready() {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

/// What is counted and measured, for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "metrics",
    responses((status = 200, description = "The metrics.", body = String, content_type = "application/openmetrics-text"))
)]
async fn metrics(State(site): State<Site>) -> impl IntoResponse {
    site.status.show_vitals(site.actors.vitals().await);
    // Folders are looked through, which takes as long as the disk does.
    let text = tokio::task::spawn_blocking(move || site.status.metrics()).await;
    let text = text.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()));
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
}
