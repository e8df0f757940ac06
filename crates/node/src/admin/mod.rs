//! What a site shows over HTTP, to people, probes and Prometheus.
//!
//! ```text
//!   GET  /healthz   200 as long as the process can go on
//!   GET  /readyz    200 if clients can be served, else 503 and the reason
//!   GET  /metrics   Prometheus text
//!   GET  /status    JSON: the site, its regions and peers, transactions under way, quotas
//!   /placement      see [`placement`]
//!   GET  /quorums   see [`quorums`]
//!   POST /quorums   likewise
//!   POST /chaos     see [`chaos`]
//!   /quotas…        see [`quotas`]
//!   /lost           likewise
//!   GET  /openapi.json   all that, for machines: `openapi.json` in this crate's folder
//! ```
//! How many may ask, and how slowly, is bounded ([`listener`]).
//! A site that is stopping answers what it has been asked, and then only probes, that is [`PROBES`]: all else is refused.
//! Pages of other sites in a browser are refused all of it (`origin.rs`).

pub mod chaos;
pub mod listener;
mod origin;
pub mod placement;
pub mod quorums;
pub mod quotas;

pub use chaos::Chaos;

use crate::gateway::quad::quorum_view;
use crate::gateway::quotas::{Gateway, KeepsQuotas};
use crate::gateway::vitals::{self, Commits};
use crate::metrics::vitals::Said;
use crate::runtime::Handle;
use crate::status::Status;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use rhumb_catenae::Site as Catenae;
use rhumb_core::Span;
use rhumb_quad::{Role, Site as Quad};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::Status as QuotaVitals;
use serde::Serialize;
use std::sync::Arc;

/// All that is here, in OpenAPI 3.1.
pub const OPENAPI: &str = include_str!("../../openapi.json");

/// What is asked by who looks after the process, and tells how it is until its end.
pub const PROBES: [&str; 2] = ["/healthz", "/readyz"];

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
    let site = Actors { status: Arc::clone(&status), commits, quotas, catenae, quad };
    let asked = site.clone();
    let routes = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(async move || metrics(asked).await))
        .with_state(Arc::clone(&site.status))
        .route("/status", get(async move || show(site).await))
        .route("/openapi.json", get(async || ([(header::CONTENT_TYPE, "application/json")], OPENAPI)))
        .merge(of_chaos)
        .merge(of_placement)
        .merge(of_quorums)
        .merge(of_quotas)
        .layer(from_fn_with_state(status, refuse_while_stopping));
    guarded(routes, names)
}

/// Lets a site that is stopping take up nothing new.
async fn refuse_while_stopping(State(status): State<Arc<Status>>, request: Request, next: Next) -> Response {
    if status.is_stopping() && !PROBES.contains(&request.uri().path()) {
        return quotas::refuse(Refusal::Unavailable("the site is stopping".into()));
    }
    next.run(request).await
}

/// Refuses requests to `routes` that a page of another site may have made. `names` are those of this site.
pub fn guarded(routes: Router, names: Vec<String>) -> Router {
    routes.layer(from_fn_with_state(Arc::<[String]>::from(names), origin::check))
}

/// The actors, to be asked how they are.
struct Actors<C: Commits, Q: KeepsQuotas> {
    status: Arc<Status>,
    commits: Handle<C>,
    quotas: Handle<Q>,
    catenae: Option<Handle<Catenae>>,
    quad: Option<Handle<Quad>>,
}

impl<C: Commits, Q: KeepsQuotas> Clone for Actors<C, Q> {
    fn clone(&self) -> Actors<C, Q> {
        Actors {
            status: Arc::clone(&self.status),
            commits: self.commits.clone(),
            quotas: self.quotas.clone(),
            catenae: self.catenae.clone(),
            quad: self.quad.clone(),
        }
    }
}

impl<C: Commits, Q: KeepsQuotas> Actors<C, Q> {
    /// What they say of themselves, asked at the same time.
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

async fn healthz(State(status): State<Arc<Status>>) -> (StatusCode, String) {
    match status.failure().reason() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(reason) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{reason}\n")),
    }
}

async fn readyz(State(status): State<Arc<Status>>) -> (StatusCode, String) {
    match status.ready() {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

async fn metrics<C: Commits, Q: KeepsQuotas>(site: Actors<C, Q>) -> impl IntoResponse {
    site.status.show_vitals(site.vitals().await);
    // Folders are looked through, which takes as long as the disk does.
    let text = tokio::task::spawn_blocking(move || site.status.metrics()).await;
    let text = text.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()));
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
}

/// What `/status` shows. Times in milliseconds.
#[derive(Serialize)]
struct Shown {
    cluster: String,
    site: String,
    ready: bool,
    reason: Option<String>,
    regions: Vec<ShownRegion>,
    peers: Vec<ShownPeer>,
    /// Nothing while the site recovers, or if the actor does not answer.
    transactions: Option<ShownTransactions>,
    /// Likewise.
    quotas: Option<ShownQuotas>,
    /// Likewise, and at a site that does not run Catenae.
    epochs: Option<ShownEpochs>,
    /// Likewise of QuAD. More is at `/quorums`.
    quorums: Option<ShownQuorums>,
}

#[derive(Serialize)]
struct ShownQuorums {
    epoch: u64,
    /// `core`, `slave` or `none`.
    role: String,
    /// A number, or `auto`.
    cores: String,
    caught_up: bool,
    sealed: bool,
    load: Option<f64>,
    why: String,
}

#[derive(Serialize)]
struct ShownEpochs {
    sealed: u64,
    settled: u64,
    unsettled: usize,
    passed_over: Vec<String>,
}

#[derive(Serialize)]
struct ShownTransactions {
    open: usize,
    prepared: usize,
    in_doubt: usize,
    /// Microseconds since the Unix epoch.
    safe_us: Option<u64>,
    safe_lag_ms: Option<f64>,
    reachable_regions: Vec<String>,
}

#[derive(Serialize)]
struct ShownQuotas {
    quotas: usize,
    waiting: usize,
    redistributing: usize,
    /// Sites declared lost.
    lost: usize,
    /// Quotas in which it is not settled yet what those have.
    unsettled: usize,
}

#[derive(Serialize)]
struct ShownRegion {
    name: String,
    local: bool,
    sites: u32,
    reachable: u32,
    rtt_ms: Option<f64>,
    floor_ms: Option<f64>,
    /// `active`, `passive` or `none`.
    role: String,
    reads_at: Option<String>,
    commits_at: Option<String>,
}

#[derive(Serialize)]
struct ShownPeer {
    site: String,
    address: String,
    connected: bool,
    rtt_ms: Option<f64>,
    heard_ms_ago: Option<u64>,
    /// Negative: behind.
    clock_ahead_ms: Option<f64>,
    /// True if that is too much, so that messages are refused.
    clock_apart: bool,
}

async fn show<C: Commits, Q: KeepsQuotas>(site: Actors<C, Q>) -> impl IntoResponse {
    let Said { commits, quotas, catenae, quad } = site.vitals().await;
    let status = &site.status;
    let (setup, now) = (status.setup(), status.now());
    let quotas = quotas.map(|QuotaVitals { quotas, waiting, redistributing, lost, unsettled, .. }| {
        let lost = lost.len();
        ShownQuotas { quotas, waiting, redistributing, lost, unsettled }
    });
    let transactions = commits.map(|vitals| {
        let lag = vitals.safe_lag(now);
        ShownTransactions {
            open: vitals.open,
            prepared: vitals.prepared,
            in_doubt: vitals.in_doubt,
            safe_us: lag.map(|_| vitals.safe.time().as_micros()),
            safe_lag_ms: lag.map(Span::as_millis_f64),
            reachable_regions: vitals.reachable.iter().map(|&region| setup.topology.name(region).to_owned()).collect(),
        }
    });
    let epochs = catenae.map(|vitals| ShownEpochs {
        sealed: vitals.coordinator.0,
        settled: vitals.settled.0,
        unsettled: vitals.unsettled,
        passed_over: vitals.passed_over.iter().map(|&region| setup.topology.name(region).to_owned()).collect(),
    });
    let quorums = quad.map(|quad| {
        let view = quorum_view(quad, status);
        let why = view.told(&view.explanation.why);
        let quad = view.explanation;
        let own = quad.sites.iter().find(|facts| facts.site == quad.site);
        ShownQuorums {
            epoch: quad.epoch.0,
            role: own.map_or(Role::NonMember, |own| own.role).to_string(),
            cores: quad.cores.to_string(),
            caught_up: own.is_some_and(|own| own.caught_up),
            sealed: quad.sealed,
            load: own.and_then(|own| own.load),
            why,
        }
    });
    let ready = status.ready();
    let regions = status.regions().into_iter().map(|region| ShownRegion {
        name: region.name,
        local: region.local,
        sites: region.sites,
        reachable: region.reachable,
        rtt_ms: region.rtt.map(Span::as_millis_f64),
        floor_ms: region.floor.map(Span::as_millis_f64),
        role: region.role.to_string(),
        reads_at: region.reads_at,
        commits_at: region.commits_at,
    });
    let peers = status.peers().into_iter().map(|peer| ShownPeer {
        site: setup.name(peer.site),
        address: setup.addresses[&peer.site].to_string(),
        connected: peer.connected,
        rtt_ms: peer.rtt.map(Span::as_millis_f64),
        heard_ms_ago: peer.heard.map(|silence| silence.as_millis() as u64),
        clock_ahead_ms: peer.clock.map(|clock| clock.ahead_micros as f64 / 1e3),
        clock_apart: peer.clock.is_some_and(|clock| clock.apart),
    });
    Json(Shown {
        cluster: setup.cluster.clone(),
        site: setup.name(setup.site),
        ready: ready.is_ok(),
        reason: ready.err(),
        regions: regions.collect(),
        peers: peers.collect(),
        transactions,
        quotas,
        epochs,
        quorums,
    })
}
