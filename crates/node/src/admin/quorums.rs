//! The quorums of QuAD over HTTP and JSON: what `rhumb quorum` shows.
//!
//! ```text
//!   GET  /quorums   who is a core and whom it asks, what was measured, what would change now and why: this site's view
//!   POST /quorums   {"action":"leave","sites":["ireland/0"]}   these sites are members no more; 200 once that is decided
//!                   {"action":"join"}                          this site asks to be one again; 200 at once
//! ```

use crate::gateway::quad::quorum_view;
use crate::gateway::vitals;
use crate::runtime::Handle;
use crate::status::Status;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use rhumb_commit::transaction::TxnError;
use rhumb_core::SiteId;
use rhumb_quad::administration::QuorumView;
use rhumb_quad::quorums::Verdict;
use rhumb_quad::{Admin, Answer, Leave, Plan, Request, Site as Quad, SiteFacts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the route works on.
#[derive(Clone)]
struct Site {
    status: Arc<Status>,
    quad: Option<Handle<Quad>>,
}

/// The route.
pub fn router(status: Arc<Status>, quad: Option<Handle<Quad>>) -> Router {
    Router::new().route("/quorums", get(look).post(change)).with_state(Site { status, quad })
}

/// What `POST /quorums` takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase", deny_unknown_fields)]
pub enum Change {
    /// Some sites are to be members no more.
    Leave {
        /// `REGION/SHARD` of each.
        sites: Vec<String>,
        /// They will not come back with what they had on their disks: their word is not waited for. Said of sites that still run, it lets
        /// their clients read what is old, and be told *committed* of what the others will not have.
        #[serde(default)]
        lost: bool,
    },
    /// The site that is told asks to be a member.
    Join,
}

/// What `GET /quorums` answers. Sites by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// Whose view it is.
    pub site: String,
    /// The epoch that it is in.
    pub epoch: u64,
    /// How many cores there are to be: a number, or `auto`.
    pub cores: String,
    /// What brought the configuration about, in a word.
    pub cause: String,
    /// The same for people.
    pub why: String,
    /// When this site adopted it, in microseconds since the Unix epoch; none if it has not changed since the site's start.
    pub since_us: Option<u64>,
    /// The configuration is being changed.
    pub sealed: bool,
    /// The site that plans changes.
    pub planner: Option<String>,
    /// All that take part, and the site itself.
    pub sites: Vec<ShownSite>,
    /// What would change now.
    pub plan: Option<ShownPlan>,
}

/// What is known of a site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShownSite {
    /// Its name.
    pub site: String,
    /// `core`, `slave` or `none`.
    pub role: String,
    /// It was heard of lately.
    pub up: bool,
    /// What its clients had in progress in its last period, over its capacity.
    pub load: Option<f64>,
    /// What is expected of the next period.
    pub load_expected: Option<f64>,
    /// The smoothing factor that has erred least so far.
    pub alpha: Option<f64>,
    /// How strong it is.
    pub score: Option<f64>,
    /// Whom its reads ask now; empty if that is no quorum.
    pub reads: Vec<String>,
    /// Whom its writes ask.
    pub writes: Vec<String>,
    /// It holds all that was committed before the epoch.
    pub caught_up: bool,
    /// Rows there.
    pub rows: u64,
    /// Rows written there in this epoch.
    pub written: u64,
}

/// What would change now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShownPlan {
    /// True if a change is due.
    pub due: bool,
    /// Why, or why not.
    pub why: String,
    /// The cores that the measures ask for, the strongest first.
    pub cores: Vec<String>,
    /// Of these, those that are none now.
    pub promoted: Vec<String>,
    /// Cores of now that would be none.
    pub demoted: Vec<String>,
    /// Sites that would ask other cores.
    pub reassigned: Vec<String>,
    /// The mean score of all quorums as they are.
    pub mean_score: f64,
    /// The same as it would be.
    pub mean_score_then: f64,
    /// The difference.
    pub gain: f64,
    /// What the promoted have to take over.
    pub cost: f64,
    /// Lower gains are not worth an interruption.
    pub gain_min: f64,
    /// Why so many cores, if `cores` is `auto`.
    pub kappa: Option<String>,
}

/// The view as it is shown.
pub fn shown(view: &QuorumView) -> Shown {
    let QuorumView { explanation, names, .. } = view;
    let name = |site: &SiteId| names.get(site).cloned().unwrap_or_else(|| site.to_string());
    let cores: Vec<SiteId> = explanation.sites.iter().filter(|facts| facts.role == rhumb_quad::Role::Core).map(|f| f.site).collect();
    let site = |facts: &SiteFacts| ShownSite {
        site: name(&facts.site),
        role: facts.role.to_string(),
        up: facts.up,
        load: facts.load,
        load_expected: facts.forecast.map(|(expected, _)| expected),
        alpha: facts.forecast.map(|(_, alpha)| alpha),
        score: facts.score,
        reads: facts.reads.iter().map(name).collect(),
        writes: facts.writes.iter().map(name).collect(),
        caught_up: facts.caught_up,
        rows: facts.rows,
        written: facts.written,
    };
    let now: BTreeMap<SiteId, &SiteFacts> = explanation.sites.iter().map(|facts| (facts.site, facts)).collect();
    let plan = |Plan { goal, why, best, before, verdict: Verdict { gain, cost }, gain_min, kappa, .. }: &Plan| {
        let members = best.members();
        let asks_others = |site: &&SiteId| now.get(site).is_some_and(|facts| best.read(**site, &members, 0).as_ref() != Some(&facts.reads));
        let stays = |site: &&SiteId| cores.contains(site) == best.cores().contains(site);
        ShownPlan {
            due: goal.is_some(),
            why: view.told(why),
            cores: best.cores().iter().map(name).collect(),
            promoted: best.cores().iter().filter(|core| !cores.contains(core)).map(name).collect(),
            demoted: cores.iter().filter(|core| !best.cores().contains(core)).map(name).collect(),
            reassigned: members.iter().filter(stays).filter(asks_others).map(name).collect(),
            mean_score: *before,
            mean_score_then: before + gain,
            gain: *gain,
            cost: *cost,
            gain_min: *gain_min,
            kappa: kappa.map(|kappa| kappa.to_string()),
        }
    };
    Shown {
        site: name(&explanation.site),
        epoch: explanation.epoch.0,
        cores: explanation.cores.to_string(),
        cause: explanation.cause.to_string(),
        why: view.told(&explanation.why),
        since_us: explanation.tally.since.map(|since| since.as_micros()),
        sealed: explanation.sealed,
        planner: explanation.planner.as_ref().map(name),
        sites: explanation.sites.iter().map(site).collect(),
        plan: explanation.plan.as_ref().map(plan),
    }
}

async fn change(State(site): State<Site>, Json(change): Json<Change>) -> (StatusCode, String) {
    match ask(&site, change).await {
        Ok(()) => (StatusCode::OK, "done\n".to_owned()),
        Err((status, reason)) => (status, format!("{reason}\n")),
    }
}

async fn ask(Site { status, quad }: &Site, change: Change) -> Result<(), (StatusCode, String)> {
    let bad = |reason: String| (StatusCode::BAD_REQUEST, reason);
    let quad = quad.as_ref().ok_or_else(|| bad("this site holds no databases of protocol quad".into()))?;
    let request = match change {
        Change::Join => Request::Admin(Admin::Join),
        Change::Leave { sites: names, lost } => {
            let setup = status.setup();
            let known = || setup.topology.sites().map(|site| setup.name(site)).collect::<Vec<_>>().join(", ");
            let named = |name: &String| {
                let site = setup.topology.sites().find(|site| setup.name(*site) == *name);
                site.ok_or_else(|| bad(format!("sites: there is no site `{name}`; there are {}", known())))
            };
            Request::Admin(Admin::Leave(Leave { sites: names.iter().map(named).collect::<Result<_, _>>()?, lost }))
        }
    };
    match quad.ask(request).await {
        Ok(Answer::Done) => Ok(()),
        Ok(Answer::Failed(error)) => Err(match status.told(error) {
            TxnError::Invalid(reason) => bad(reason.to_string()),
            error => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        }),
        Ok(other) => unreachable!("the site answered something else than was asked: {other:?}"),
        Err(rejected) => Err((StatusCode::SERVICE_UNAVAILABLE, rejected.to_string())),
    }
}

async fn look(State(site): State<Site>) -> Response {
    let Some(quad) = &site.quad else {
        return (StatusCode::NOT_FOUND, "this site holds no databases of protocol quad\n").into_response();
    };
    match vitals::of_quad(quad, &site.status).await {
        Some(explanation) => Json(shown(&quorum_view(explanation, &site.status))).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the site is still reading its disk, or does not answer\n").into_response(),
    }
}
