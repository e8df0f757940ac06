//! The quorums of QuAD over HTTP and JSON: what `rhumb quorum` shows.
//!
//! ```text
//!   GET  /quorums   who is a core and whom it asks, what was measured, what would change now and why: this site's view
//!   POST /quorums   {"action":"leave","sites":["ireland/0"]}   these sites are members no more; 200 once that is decided
//!                   {"action":"join"}                          this site asks to be one again; 200 at once
//! ```

use super::body::{Body, read};
use super::failed::Failed;
use super::listener::BODY_BYTES_MAX;
use crate::gateway::interactive::questions::administer;
use crate::gateway::quad::quorum_view;
use crate::gateway::reach::{Here, ask};
use crate::gateway::vitals;
use crate::runtime::Handle;
use crate::status::Status;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use rhumb_api::error::{Code, Error};
use rhumb_api::quorums::{QuorumChange, QuorumPlan, QuorumRole, QuorumSite, Quorums};
use rhumb_api::responses;
use rhumb_core::SiteId;
use rhumb_quad::administration::QuorumView;
use rhumb_quad::quorums::Verdict;
use rhumb_quad::{Admin, Leave, Plan, Role, Site as Quad, SiteFacts};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What the route works on.
#[derive(Clone)]
struct Site {
    status: Arc<Status>,
    quad: Option<Handle<Quad>>,
}

/// The route.
pub fn router(status: Arc<Status>, quad: Option<Handle<Quad>>) -> OpenApiRouter {
    OpenApiRouter::default().routes(routes!(look, change)).with_state(Site { status, quad })
}

/// What a site takes part in.
pub(super) fn role(role: Role) -> QuorumRole {
    match role {
        Role::Core => QuorumRole::Core,
        Role::Slave => QuorumRole::Slave,
        Role::NonMember => QuorumRole::None,
    }
}

/// The view as it is answered.
fn quorums(view: &QuorumView) -> Quorums {
    let QuorumView { explanation, names, .. } = view;
    let name = |site: &SiteId| names.get(site).cloned().unwrap_or_else(|| site.to_string());
    let cores: Vec<SiteId> = explanation.sites.iter().filter(|facts| facts.role == Role::Core).map(|f| f.site).collect();
    let site = |facts: &SiteFacts| QuorumSite {
        site: name(&facts.site),
        role: role(facts.role),
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
        QuorumPlan {
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
    Quorums {
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

/// The quorums of databases of protocol quad as this site sees them, and what would change now.
#[utoipa::path(
    get,
    path = "/quorums",
    operation_id = "quorums",
    responses(
        (status = 200, description = "Who is a core and whom it asks, what was measured, gain against cost.", body = Quorums),
        (status = 404, response = responses::NoQuorums),
        (
            status = 503,
            description = "`UNAVAILABLE`: the site is still reading its disk, or does not answer.",
            body = Error,
            headers(("Retry-After" = u32, description = "Seconds to wait."))
        )
    )
)]
async fn look(State(site): State<Site>) -> Result<Json<Quorums>, Failed> {
    match vitals::of_quad(site.quad()?, &site.status).await {
        Some(explanation) => Ok(Json(quorums(&quorum_view(explanation, &site.status)))),
        None => Err(Failed::new(Code::Unavailable, "the site is still reading its disk, or does not answer")),
    }
}

/// Has sites leave the quorums of databases of protocol quad, or the site that is asked join them.
#[utoipa::path(
    post,
    path = "/quorums",
    operation_id = "changeQuorums",
    request_body = QuorumChange,
    responses(
        (
            status = 200,
            description = "Decided; of a site that joins: it has asked, and is a member once GET shows it.",
            body = String
        ),
        (status = 400, description = "`INVALID`: it cannot be, and why.", body = Error),
        (status = 404, response = responses::NoQuorums),
        (status = 413, response = responses::TooLarge),
        (status = 415, response = responses::NotJson),
        (
            status = 503,
            description = "`UNAVAILABLE`: not now, and why; it may yet come about if that says so.",
            body = Error,
            headers(("Retry-After" = u32, description = "Seconds to wait."))
        )
    )
)]
async fn change(State(site): State<Site>, headers: HeaderMap, body: Body) -> Result<&'static str, Failed> {
    let change = read(&headers, body, BODY_BYTES_MAX)?;
    let quad = Here::new(site.quad()?.clone(), Arc::clone(&site.status));
    ask(&quad, administer(site.admin(change)?)).await?;
    Ok("done\n")
}

impl Site {
    /// The actor of QuAD, if the site has one.
    fn quad(&self) -> Result<&Handle<Quad>, Failed> {
        self.quad.as_ref().ok_or_else(|| Failed::new(Code::NoQuorums, "this site holds no databases of protocol quad"))
    }

    /// The request for a change.
    fn admin(&self, change: QuorumChange) -> Result<Admin, Failed> {
        let QuorumChange::Leave { sites, lost } = change else { return Ok(Admin::Join) };
        let setup = self.status.setup();
        let known = || setup.topology.sites().map(|site| setup.name(site)).collect::<Vec<_>>().join(", ");
        let named = |name: &String| {
            let site = setup.topology.sites().find(|site| setup.name(*site) == *name);
            site.ok_or_else(|| Failed::invalid(format!("sites: there is no site `{name}`; there are {}", known())))
        };
        Ok(Admin::Leave(Leave { sites: sites.iter().map(named).collect::<Result<_, _>>()?, lost }))
    }
}
