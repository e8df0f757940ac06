//! The placement over HTTP and JSON.
//!
//! ```text
//!   GET  /placement   the one in force, and what one would plan another one from: round trips and workload
//!   POST /placement   the one that is to come next: {"epoch":1,"active":["a","b"],"passive":["c"],
//!                     "coordinators":{"d":{"read":"c","commit":"a"}}}; `epoch` is that of the one in force
//! ```
//!
//! What is refused is answered with 400 if it can never be, 409 if another one came first or a region has no copy yet, 503 if no majority
//! answers, 504 if the outcome is unknown.

use super::body::{Body, read};
use super::failed::Failed;
use super::listener::BODY_BYTES_MAX;
use crate::gateway::placements::{Placements, Refused, View};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use rhumb_api::error::{Code, Error};
use rhumb_api::placement::{Coordinators, Placement, PlacementChange, PlacementStatus, RegionWorkload};
use rhumb_api::responses;
use rhumb_commit::placement::{self, Change, Regions};
use rhumb_config::Setup;
use rhumb_core::{RegionId, SiteId, Span};
use rhumb_replicated_commit::Measured;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What the routes work on.
#[derive(Clone)]
struct Site {
    placements: Arc<dyn Placements>,
    setup: Arc<Setup>,
}

/// The routes over `placements`.
pub fn router(placements: Arc<dyn Placements>, setup: Arc<Setup>) -> OpenApiRouter {
    OpenApiRouter::default().routes(routes!(look, change)).with_state(Site { placements, setup })
}

impl Site {
    fn name(&self, region: RegionId) -> String {
        self.setup.topology.name(region).to_owned()
    }

    fn names(&self, regions: Regions) -> Vec<String> {
        regions.iter().map(|region| self.name(region)).collect()
    }

    /// The placement by the names of regions.
    fn named(&self, placement: &placement::Placement) -> Placement {
        let coordinators = placement.coordinators.iter().map(|(region, placement::Coordinators { read, commit })| {
            (self.name(*region), Coordinators { read: self.name(*read), commit: self.name(*commit) })
        });
        Placement {
            epoch: placement.epoch,
            active: self.names(placement.voters),
            passive: self.names(placement.passives),
            coordinators: coordinators.collect(),
            lost: self.names(placement.lost.keys().copied().collect::<Regions>().without(placement.copies())),
        }
    }

    /// What the site knows, by the names of regions.
    fn status(&self, view: &View) -> PlacementStatus {
        let topology = &self.setup.topology;
        let rate = |region: RegionId, of: fn(&Measured) -> u64| {
            let sites = view.measured.iter().filter(|(site, _)| site.region == region);
            sites.map(|(_, measured)| of(measured)).sum::<u64>() as f64 / 1_000.0
        };
        let regions = topology.regions().map(|region| RegionWorkload {
            name: self.name(region),
            reachable: view.reachable.contains(&region),
            commits_per_second: rate(region, |measured| measured.commits_milli),
            reads_per_second: rate(region, |measured| measured.reads_milli),
        });
        let row = |from| topology.regions().map(|to| rtt(&view.measured, from, to).map(Span::as_millis_f64)).collect();
        PlacementStatus {
            placement: self.named(&view.placement),
            settled: view.settled,
            regions: regions.collect(),
            rtt_ms: topology.regions().map(row).collect(),
        }
    }

    fn region(&self, name: &str) -> Result<RegionId, Failed> {
        self.setup.topology.region(name).ok_or_else(|| {
            let known: Vec<String> = self.setup.topology.regions().map(|region| self.name(region)).collect();
            Failed::invalid(format!("there is no region `{name}`; there are {}", known.join(", ")))
        })
    }

    fn change_of(&self, named: &PlacementChange) -> Result<Change, Failed> {
        let regions = |names: &[String]| names.iter().map(|name| self.region(name)).collect::<Result<Regions, Failed>>();
        let coordinators = named.coordinators.iter().map(|(of, Coordinators { read, commit })| {
            Ok((self.region(of)?, placement::Coordinators { read: self.region(read)?, commit: self.region(commit)? }))
        });
        Ok(Change {
            voters: regions(&named.active)?,
            passives: regions(&named.passive)?,
            coordinators: coordinators.collect::<Result<_, Failed>>()?,
            lost: regions(&named.lost)?,
        })
    }
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

/// The placement in force, and what one would plan another one from.
#[utoipa::path(
    get,
    path = "/placement",
    operation_id = "placement",
    responses(
        (status = 200, description = "The placement, and round trips and workload as measured.", body = PlacementStatus),
        (
            status = 503,
            description = "`UNAVAILABLE`: the site does not answer.",
            body = Error,
            headers(("Retry-After" = u32, description = "Seconds to wait."))
        )
    )
)]
async fn look(State(site): State<Site>) -> Result<Json<PlacementStatus>, Failed> {
    let view = site.placements.view().await?;
    Ok(Json(site.status(&view)))
}

/// Have another placement come next.
#[utoipa::path(
    post,
    path = "/placement",
    operation_id = "place",
    request_body = PlacementChange,
    responses(
        (status = 200, description = "It is decided; the regions move now.", body = Placement),
        (status = 400, description = "`INVALID`: it can never be.", body = Error),
        (
            status = 409,
            description = "`CHANGED`: another one came first. `CONFLICT`, `LOCKTIMEOUT`: a region that is to vote has no copy yet, or another \
                           transaction was in the way.",
            body = Error
        ),
        (status = 413, response = responses::TooLarge),
        (status = 415, response = responses::NotJson),
        (
            status = 503,
            description = "`UNAVAILABLE`: no majority answers.",
            body = Error,
            headers(("Retry-After" = u32, description = "Seconds to wait."))
        ),
        (status = 504, description = "`UNKNOWN`: the outcome is not known.", body = Error)
    )
)]
async fn change(State(site): State<Site>, headers: HeaderMap, body: Body) -> Result<Json<Placement>, Failed> {
    let named: PlacementChange = read(&headers, body, BODY_BYTES_MAX)?;
    let change = site.change_of(&named)?;
    match site.placements.change(named.epoch, change).await {
        Ok(placement) => Ok(Json(site.named(&placement))),
        Err(Refused::Change(error)) => Err(Failed::invalid(error.named(|region| site.name(region)))),
        Err(refused @ Refused::Changed { .. }) => Err(Failed::new(Code::Changed, refused.to_string())),
        Err(Refused::Commit(error)) => Err(error.into()),
    }
}
