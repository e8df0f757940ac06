//! Harm to a running cluster, to see what it does about it. Only if the configuration says `chaos = true`.
//!
//! ```text
//!   POST /chaos   {"action":"cut","region":"a"}            cut, slow and heal links
//!                 {"action":"load","percent":300,"for_s":60}   keep the site that is told busy: `injected_load.rs` of QuAD says how
//! ```

use super::body::{Body, read};
use super::failed::Failed;
use super::listener::BODY_BYTES_MAX;
use crate::gateway::interactive::questions::administer;
use crate::gateway::reach::{Here, ask};
use crate::runtime::Handle;
use crate::status::Status;
use crate::transport::{self, Fault};
use axum::extract::State;
use axum::http::HeaderMap;
use rhumb_api::chaos::{Chaos, Direction};
use rhumb_api::error::{Code, Error};
use rhumb_api::responses;
use rhumb_core::{SiteId, Span};
use rhumb_quad::{Admin, InjectedLoad, Site as Quad};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// A slow link gets at most so much slower.
const EXTRA_MS_MAX: f64 = 60_000.0;
/// A site is kept busy for so long at the most; without a time until it is told otherwise.
const FOR_S_MAX: f64 = 86_400.0;

/// What the route works on.
#[derive(Clone)]
struct Site {
    status: Arc<Status>,
    quad: Option<Here<Quad>>,
}

/// The route.
pub fn router(status: Arc<Status>, quad: Option<Handle<Quad>>) -> OpenApiRouter {
    let quad = quad.map(|handle| Here::new(handle, Arc::clone(&status)));
    OpenApiRouter::default().routes(routes!(chaos)).with_state(Site { status, quad })
}

/// Cut, slow and heal links, and keep the site busy, if the configuration of the site allows it.
#[utoipa::path(
    post,
    path = "/chaos",
    operation_id = "chaos",
    request_body = Chaos,
    responses(
        (status = 200, description = "The peers whose links changed, or the site that is loaded.", body = String),
        (status = 400, description = "`INVALID`: no such link, or a delay or a load that cannot be.", body = Error),
        (status = 403, description = "`FORBIDDEN`: the configuration does not say `chaos = true`.", body = Error),
        (status = 413, response = responses::TooLarge),
        (status = 415, response = responses::NotJson),
        (status = 503, response = responses::Unavailable)
    )
)]
async fn chaos(State(site): State<Site>, headers: HeaderMap, body: Body) -> Result<String, Failed> {
    let chaos = read(&headers, body, BODY_BYTES_MAX)?;
    let Site { status, quad } = site;
    if !status.setup().chaos {
        return Err(Failed::new(Code::Forbidden, "no harm is to be done here: the configuration does not say `chaos = true`"));
    }
    let done = match chaos {
        Chaos::Load { percent, for_s } => load(&status, quad.as_ref(), percent, for_s).await?,
        chaos => apply(&status, chaos).map_err(Failed::invalid)?.join(" "),
    };
    Ok(format!("{done}\n"))
}

/// Loads this site, and returns its name.
async fn load(status: &Status, quad: Option<&Here<Quad>>, percent: u64, for_s: Option<f64>) -> Result<String, Failed> {
    let span = |seconds: f64| match Span::from_millis_f64(seconds * 1_000.0).filter(|_| seconds <= FOR_S_MAX) {
        Some(span) => Ok(span),
        None => Err(Failed::invalid(format!("for_s: is {seconds}; expected 0 to {FOR_S_MAX}"))),
    };
    let span = for_s.map(span).transpose()?;
    let quad = quad.ok_or_else(|| Failed::invalid("this site holds no databases of protocol quad, whose load it would be"))?;
    let name = status.setup().name(status.setup().site);
    ask(quad, administer(Admin::InjectLoad(InjectedLoad { percent, span }))).await?;
    tracing::warn!("chaos: {name} is loaded with {percent} %");
    Ok(name)
}

/// Carries it out, and returns the names of the peers whose links changed.
fn apply(status: &Status, chaos: Chaos) -> Result<Vec<String>, String> {
    let setup = status.setup();
    let (region, shard, fault) = match chaos {
        Chaos::Cut { region, shard, direction } => (region, shard, Fault::Cut(way(direction))),
        Chaos::Slow { region, shard, extra_ms } => match Span::from_millis_f64(extra_ms).filter(|_| extra_ms <= EXTRA_MS_MAX) {
            Some(extra) => (region, shard, Fault::Slow(extra)),
            None => return Err(format!("extra_ms: is {extra_ms}; expected 0 to {EXTRA_MS_MAX}")),
        },
        Chaos::Heal { region, shard } => (region, shard, Fault::Heal),
        Chaos::Load { .. } => unreachable!("it is no harm to links"),
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

/// The direction as the transport knows it.
fn way(direction: Direction) -> transport::Direction {
    match direction {
        Direction::Out => transport::Direction::Out,
        Direction::In => transport::Direction::In,
        Direction::Both => transport::Direction::Both,
    }
}
