//! What a site shows over HTTP, to people, probes and Prometheus.
//!
//! ```text
//!   GET  /healthz   200 as long as the process can go on
//!   GET  /readyz    200 if clients can be served, else 503 and the reason
//!   GET  /metrics   Prometheus text
//!   GET  /status    JSON: the site, its regions and peers, transactions under way, quotas
//!   /placement      see [`placement`]
//!   POST /chaos     cut, slow and heal links; only if the configuration says `chaos = true`
//!   /quotas…        see [`quotas`]
//!   GET  /openapi.json   all that, for machines: `openapi.json` in this crate's folder
//! ```

pub mod placement;
pub mod quotas;

use crate::quotas::{Gateway, KeepsQuotas};
use crate::runtime::Handle;
use crate::status::Status;
use crate::transport::{Direction, Fault};
use crate::vitals::{self, Commits, Said};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use rhumb_commit::catenae::Site as Catenae;
use rhumb_core::{SiteId, Span};
use rhumb_quota::request::Status as QuotaVitals;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A slow link gets at most so much slower.
const EXTRA_MS_MAX: f64 = 60_000.0;

/// All that is here, in OpenAPI 3.1.
pub const OPENAPI: &str = include_str!("../../openapi.json");

/// The routes of a site.
pub fn router<C: Commits, Q: KeepsQuotas>(
    status: Arc<Status>,
    commits: Handle<C>,
    quotas: Handle<Q>,
    catenae: Option<Handle<Catenae>>,
) -> Router {
    let topology = Arc::new(status.setup().topology.clone());
    let of_quotas = quotas::router(Arc::new(Gateway::new(quotas.clone())), topology);
    let of_placement = placement::router(C::placements(commits.clone(), Arc::clone(&status)), status.shared_setup());
    let site = Actors { status, commits, quotas, catenae };
    let asked = site.clone();
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(async move || metrics(asked).await))
        .route("/chaos", post(chaos))
        .with_state(Arc::clone(&site.status))
        .route("/status", get(async move || show(site).await))
        .route("/openapi.json", get(async || ([(header::CONTENT_TYPE, "application/json")], OPENAPI)))
        .merge(of_placement)
        .merge(of_quotas)
}

/// The actors, to be asked how they are.
struct Actors<C: Commits, Q: KeepsQuotas> {
    status: Arc<Status>,
    commits: Handle<C>,
    quotas: Handle<Q>,
    catenae: Option<Handle<Catenae>>,
}

impl<C: Commits, Q: KeepsQuotas> Clone for Actors<C, Q> {
    fn clone(&self) -> Actors<C, Q> {
        Actors {
            status: Arc::clone(&self.status),
            commits: self.commits.clone(),
            quotas: self.quotas.clone(),
            catenae: self.catenae.clone(),
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
        let of_commits = vitals::of_commits(&self.commits, &self.status);
        let (commits, quotas, catenae) = tokio::join!(of_commits, vitals::of_quotas(&self.quotas, &self.status), of_catenae);
        Said { commits, quotas, catenae }
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
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], site.status.metrics())
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
}

async fn show<C: Commits, Q: KeepsQuotas>(site: Actors<C, Q>) -> impl IntoResponse {
    let Said { commits, quotas, catenae } = site.vitals().await;
    let status = &site.status;
    let (setup, now) = (status.setup(), status.now());
    let quotas = quotas.map(|QuotaVitals { quotas, waiting, redistributing, .. }| ShownQuotas { quotas, waiting, redistributing });
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
    })
}

/// What `POST /chaos` takes: what to do to the links between this site and those of `region`, or only the one of
/// `shard`. Without a region: to all links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase", deny_unknown_fields)]
pub enum Chaos {
    /// Drop every message.
    Cut {
        /// The region at the other end.
        region: Option<String>,
        /// The site in it.
        shard: Option<u16>,
        /// Which way, seen from the site that is told.
        #[serde(default)]
        direction: Direction,
    },
    /// Delay what the site that is told sends.
    Slow {
        /// The region at the other end.
        region: Option<String>,
        /// The site in it.
        shard: Option<u16>,
        /// By so many milliseconds more.
        extra_ms: f64,
    },
    /// Undo all that.
    Heal {
        /// The region at the other end.
        region: Option<String>,
        /// The site in it.
        shard: Option<u16>,
    },
}

async fn chaos(State(status): State<Arc<Status>>, Json(chaos): Json<Chaos>) -> (StatusCode, String) {
    if !status.setup().chaos {
        return (StatusCode::FORBIDDEN, "links are not to be tampered with: the configuration does not say `chaos = true`\n".to_owned());
    }
    match apply(&status, chaos) {
        Ok(changed) => (StatusCode::OK, format!("{}\n", changed.join(" "))),
        Err(reason) => (StatusCode::BAD_REQUEST, format!("{reason}\n")),
    }
}

/// Carries it out, and returns the names of the peers whose links changed.
fn apply(status: &Status, chaos: Chaos) -> Result<Vec<String>, String> {
    let setup = status.setup();
    let (region, shard, fault) = match chaos {
        Chaos::Cut { region, shard, direction } => (region, shard, Fault::Cut(direction)),
        Chaos::Slow { region, shard, extra_ms } => match Span::from_millis_f64(extra_ms).filter(|_| extra_ms <= EXTRA_MS_MAX) {
            Some(extra) => (region, shard, Fault::Slow(extra)),
            None => return Err(format!("extra_ms: is {extra_ms}; expected 0 to {EXTRA_MS_MAX}")),
        },
        Chaos::Heal { region, shard } => (region, shard, Fault::Heal),
    };
    let region = match region {
        None => None,
        Some(name) => Some(setup.topology.region(&name).ok_or_else(|| format!("region: there is no region `{name}`"))?),
    };
    let wanted = |site: &SiteId| region.is_none_or(|region| site.region == region) && shard.is_none_or(|shard| site.shard == shard);
    let changed: Vec<String> =
        setup.topology.sites().filter(wanted).filter(|&peer| status.fault(peer, fault)).map(|peer| setup.name(peer)).collect();
    if changed.is_empty() {
        return Err("no such link: expected the region, and the shard if given, of another site".to_owned());
    }
    tracing::warn!("chaos: {fault:?} on the links to {}", changed.join(", "));
    Ok(changed)
}
