//! The placement over HTTP and JSON.
//!
//! ```text
//!   GET  /placement   the one in force, and what one would plan another one from: round trips and workload
//!   POST /placement   the one that is to come next: {"epoch":1,"active":["a","b"],"passive":["c"],
//!                     "coordinators":{"d":{"read":"c","commit":"a"}}}; `epoch` is that of the one in force
//! ```
//!
//! Bodies must come as `application/json`, which keeps other sites' pages in a browser from posting here. What is refused is
//! answered with `{"error":{"code":…,"message":…}}`: 400 if it can never be, 409 if another one came first or
//! a region has no copy yet, 503 if no majority answers, 504 if the outcome is unknown.

use crate::config::Setup;
use crate::gateway::placements::{Placements, Refused, View};
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use rhumb_commit::placement::{Change, Coordinators, Placement, Regions};
use rhumb_commit::transaction::TxnError;
use rhumb_core::{RegionId, SiteId, Span};
use rhumb_replicated_commit::Measured;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest body taken, in bytes.
const BODY_BYTES_MAX: usize = 64 << 10;

/// What the routes work on.
#[derive(Clone)]
struct Site {
    placements: Arc<dyn Placements>,
    setup: Arc<Setup>,
}

/// The routes over `placements`.
pub fn router(placements: Arc<dyn Placements>, setup: Arc<Setup>) -> Router {
    let site = Site { placements, setup };
    Router::new().route("/placement", get(look).post(change)).layer(DefaultBodyLimit::max(BODY_BYTES_MAX)).with_state(site)
}

/// A placement, by the names of regions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Its epoch; of a placement that is to come next, the epoch of the one before.
    pub epoch: u64,
    /// The regions that vote.
    pub active: Vec<String>,
    /// Those that hold a copy and do not vote.
    #[serde(default)]
    pub passive: Vec<String>,
    /// Where the clients of a region read and commit, if not as near as they can.
    #[serde(default)]
    pub coordinators: BTreeMap<String, NamedCoordinators>,
    /// The regions that were declared lost and hold no copy; in a body, those that are to be declared so. What they voted is not waited for
    /// any more, and taken to have been yes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

/// Where the clients of a region read and commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedCoordinators {
    /// The region whose copy is read.
    pub read: String,
    /// The region that runs commits.
    pub commit: String,
}

/// What `GET /placement` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// The placement in force.
    #[serde(flatten)]
    pub placement: Named,
    /// False as long as this site still moves into it.
    pub settled: bool,
    /// All regions, in the order of the cluster.
    pub regions: Vec<ShownRegion>,
    /// Round trips in milliseconds, a row and a column for each region in that order; none where not measured.
    pub rtt_ms: Vec<Vec<Option<f64>>>,
}

/// What the clients of a region do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShownRegion {
    /// Its name.
    pub name: String,
    /// Whether all its sites answered the one that is asked lately. What is shown of a region that does not is old.
    pub reachable: bool,
    /// Commits a second, of late.
    pub commits_per_second: f64,
    /// Reads and scans of transactions that were to commit, a second.
    pub reads_per_second: f64,
}

/// What is answered instead of what was asked for.
struct Failed(StatusCode, &'static str, String);

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let Failed(status, code, message) = self;
        (status, Json(serde_json::json!({ "error": { "code": code, "message": message } }))).into_response()
    }
}

impl From<TxnError> for Failed {
    fn from(error: TxnError) -> Failed {
        let (status, code) = match &error {
            TxnError::Conflict(_) => (StatusCode::CONFLICT, "conflict"),
            TxnError::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
            TxnError::Unknown(_) => (StatusCode::GATEWAY_TIMEOUT, "unknown_outcome"),
            TxnError::TooLarge(_) | TxnError::Invalid(_) | TxnError::OutOfRange(_) | TxnError::Unsupported(_) => {
                (StatusCode::BAD_REQUEST, "invalid")
            }
            TxnError::LockTimeout(_) => (StatusCode::CONFLICT, "lock_timeout"),
        };
        Failed(status, code, error.to_string())
    }
}

impl Site {
    fn name(&self, region: RegionId) -> String {
        self.setup.topology.name(region).to_owned()
    }

    fn names(&self, regions: Regions) -> Vec<String> {
        regions.iter().map(|region| self.name(region)).collect()
    }

    fn named(&self, placement: &Placement) -> Named {
        let coordinators = placement.coordinators.iter().map(|(region, Coordinators { read, commit })| {
            (self.name(*region), NamedCoordinators { read: self.name(*read), commit: self.name(*commit) })
        });
        Named {
            epoch: placement.epoch,
            active: self.names(placement.voters),
            passive: self.names(placement.passives),
            coordinators: coordinators.collect(),
            lost: self.names(placement.lost.keys().copied().collect::<Regions>().without(placement.copies())),
        }
    }

    fn shown(&self, view: &View) -> Shown {
        let topology = &self.setup.topology;
        let rate = |region: RegionId, of: fn(&Measured) -> u64| {
            let sites = view.measured.iter().filter(|(site, _)| site.region == region);
            sites.map(|(_, measured)| of(measured)).sum::<u64>() as f64 / 1_000.0
        };
        let regions = topology.regions().map(|region| ShownRegion {
            name: self.name(region),
            reachable: view.reachable.contains(&region),
            commits_per_second: rate(region, |measured| measured.commits_milli),
            reads_per_second: rate(region, |measured| measured.reads_milli),
        });
        let row = |from| topology.regions().map(|to| rtt(&view.measured, from, to).map(Span::as_millis_f64)).collect();
        Shown {
            placement: self.named(&view.placement),
            settled: view.settled,
            regions: regions.collect(),
            rtt_ms: topology.regions().map(row).collect(),
        }
    }

    fn region(&self, name: &str) -> Result<RegionId, Failed> {
        self.setup.topology.region(name).ok_or_else(|| {
            let known: Vec<String> = self.setup.topology.regions().map(|region| self.name(region)).collect();
            invalid(format!("there is no region `{name}`; there are {}", known.join(", ")))
        })
    }

    fn change_of(&self, named: &Named) -> Result<Change, Failed> {
        let regions = |names: &[String]| names.iter().map(|name| self.region(name)).collect::<Result<Regions, Failed>>();
        let coordinators = named.coordinators.iter().map(|(of, NamedCoordinators { read, commit })| {
            Ok((self.region(of)?, Coordinators { read: self.region(read)?, commit: self.region(commit)? }))
        });
        Ok(Change {
            voters: regions(&named.active)?,
            passives: regions(&named.passive)?,
            coordinators: coordinators.collect::<Result<_, Failed>>()?,
            lost: regions(&named.lost)?,
        })
    }
}

fn invalid(message: String) -> Failed {
    Failed(StatusCode::BAD_REQUEST, "invalid", message)
}

/// The round trip between two regions: the shortest that any two of their sites measured, in either direction.
fn rtt(measured: &BTreeMap<SiteId, Measured>, from: RegionId, to: RegionId) -> Option<Span> {
    if from == to {
        return Some(Span::ZERO);
    }
    let one_way = |from: RegionId, to: RegionId| {
        let sites = measured.iter().filter(move |(site, _)| site.region == from);
        sites.flat_map(move |(_, measured)| measured.rtts.iter().filter(move |(region, _)| *region == to).map(|(_, rtt)| *rtt))
    };
    one_way(from, to).chain(one_way(to, from)).min()
}

async fn look(State(site): State<Site>) -> Result<Json<Shown>, Failed> {
    let view = site.placements.view().await?;
    Ok(Json(site.shown(&view)))
}

async fn change(State(site): State<Site>, body: Result<Json<Named>, JsonRejection>) -> Result<Json<Named>, Failed> {
    let Json(named) =
        body.map_err(|rejection| Failed(rejection.status(), "invalid", format!("not a placement: {}", rejection.body_text())))?;
    let change = site.change_of(&named)?;
    match site.placements.change(named.epoch, change).await {
        Ok(placement) => Ok(Json(site.named(&placement))),
        Err(Refused::Change(error)) => Err(invalid(error.named(|region| site.name(region)))),
        Err(refused @ Refused::Changed { .. }) => Err(Failed(StatusCode::CONFLICT, "changed", refused.to_string())),
        Err(Refused::Commit(error)) => Err(error.into()),
    }
}
