//! Harm to a running cluster, to see what it does about it. Only if the configuration says `chaos = true`.
//!
//! ```text
//!   POST /chaos   {"action":"cut","region":"a"}            cut, slow and heal links
//!                 {"action":"load","percent":300,"for_s":60}   keep the site that is told busy: `injected_load.rs` of QuAD says how
//! ```

use crate::runtime::Handle;
use crate::status::Status;
use crate::transport::{Direction, Fault};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use rhumb_core::{SiteId, Span};
use rhumb_quad::{Admin, Answer, InjectedLoad, Request, Site as Quad};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A slow link gets at most so much slower.
const EXTRA_MS_MAX: f64 = 60_000.0;
/// A site is kept busy for so long at the most; without a time until it is told otherwise.
const FOR_S_MAX: f64 = 86_400.0;

/// What the route works on.
#[derive(Clone)]
struct Site {
    status: Arc<Status>,
    quad: Option<Handle<Quad>>,
}

/// The route.
pub fn router(status: Arc<Status>, quad: Option<Handle<Quad>>) -> Router {
    Router::new().route("/chaos", post(chaos)).with_state(Site { status, quad })
}

/// What `POST /chaos` takes: what to do to the links between this site and those of `region`, or only the one of
/// `shard`. Without a region: to all links. Or what to load this site with.
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
    /// Keep the site that is told busy with work for others.
    Load {
        /// Percent of what it can work for; 0 ends it.
        percent: u64,
        /// For so many seconds; until it is ended if absent.
        for_s: Option<f64>,
    },
    /// Undo what was done to links.
    Heal {
        /// The region at the other end.
        region: Option<String>,
        /// The site in it.
        shard: Option<u16>,
    },
}

async fn chaos(State(site): State<Site>, Json(chaos): Json<Chaos>) -> (StatusCode, String) {
    let Site { status, quad } = site;
    if !status.setup().chaos {
        return (StatusCode::FORBIDDEN, "no harm is to be done here: the configuration does not say `chaos = true`\n".to_owned());
    }
    let done = match chaos {
        Chaos::Load { percent, for_s } => load(&status, quad.as_ref(), percent, for_s).await,
        chaos => apply(&status, chaos).map(|changed| changed.join(" ")),
    };
    match done {
        Ok(done) => (StatusCode::OK, format!("{done}\n")),
        Err(reason) => (StatusCode::BAD_REQUEST, format!("{reason}\n")),
    }
}

/// Loads this site, and returns its name.
async fn load(status: &Status, quad: Option<&Handle<Quad>>, percent: u64, for_s: Option<f64>) -> Result<String, String> {
    let span = |seconds: f64| match Span::from_millis_f64(seconds * 1_000.0).filter(|_| seconds <= FOR_S_MAX) {
        Some(span) => Ok(span),
        None => Err(format!("for_s: is {seconds}; expected 0 to {FOR_S_MAX}")),
    };
    let span = for_s.map(span).transpose()?;
    let quad = quad.ok_or("this site holds no databases of protocol quad, whose load it would be")?;
    let name = status.setup().name(status.setup().site);
    match quad.ask(Request::Admin(Admin::InjectLoad(InjectedLoad { percent, span }))).await {
        Ok(Answer::Done) => {
            tracing::warn!("chaos: {name} is loaded with {percent} %");
            Ok(name)
        }
        Ok(Answer::Failed(error)) => Err(error.to_string()),
        Ok(other) => unreachable!("the site answered something else than was asked: {other:?}"),
        Err(rejected) => Err(rejected.to_string()),
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
