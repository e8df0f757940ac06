//! `GET /status`: the site, its regions and peers, transactions under way, quotas.

use super::Site;
use crate::gateway::quad::quorum_view;
use crate::metrics::vitals::{Said, Vitals};
use crate::status::Status as SiteStatus;
use crate::transport::Peer;
use axum::Json;
use axum::extract::State;
use rhumb_api::quorums::QuorumRole;
use rhumb_api::status::{EpochStatus, PeerStatus, QuorumStatus, QuotaStatus, RegionRole, RegionStatus, Status, TransactionStatus};
use rhumb_catenae::Status as CatenaeVitals;
use rhumb_commit::transaction::{self, Role};
use rhumb_core::{RegionId, Span};
use rhumb_quad::Explanation;
use rhumb_quota::request::Status as QuotaVitals;

/// The site, its regions and peers, transactions under way, quotas.
#[utoipa::path(get, path = "/status", operation_id = "status", responses((status = 200, description = "The state.", body = Status)))]
pub(super) async fn show(State(site): State<Site>) -> Json<Status> {
    let Said { commits, quotas, catenae, quad } = site.actors.vitals().await;
    let status = &*site.status;
    let setup = status.setup();
    let ready = status.ready();
    Json(Status {
        cluster: setup.cluster.clone(),
        site: setup.name(setup.site),
        ready: ready.is_ok(),
        reason: ready.err(),
        regions: status.regions().into_iter().map(of_region).collect(),
        peers: status.peers().into_iter().map(|peer| of_peer(peer, status)).collect(),
        transactions: commits.map(|vitals| of_transactions(&vitals, status)),
        quotas: quotas.map(of_quotas),
        epochs: catenae.map(|vitals| of_epochs(&vitals, status)),
        quorums: quad.map(|quad| of_quorums(quad, status)),
    })
}

fn of_region(region: transaction::RegionStatus) -> RegionStatus {
    RegionStatus {
        name: region.name,
        local: region.local,
        sites: region.sites,
        reachable: region.reachable,
        rtt_ms: region.rtt.map(Span::as_millis_f64),
        floor_ms: region.floor.map(Span::as_millis_f64),
        role: match region.role {
            Role::Active => RegionRole::Active,
            Role::Passive => RegionRole::Passive,
            Role::None => RegionRole::None,
        },
        reads_at: region.reads_at,
        commits_at: region.commits_at,
    }
}

fn of_peer(peer: Peer, status: &SiteStatus) -> PeerStatus {
    let setup = status.setup();
    PeerStatus {
        site: setup.name(peer.site),
        address: setup.addresses[&peer.site].to_string(),
        connected: peer.connected,
        rtt_ms: peer.rtt.map(Span::as_millis_f64),
        heard_ms_ago: peer.heard.map(|silence| silence.as_millis() as u64),
        clock_ahead_ms: peer.clock.map(|clock| clock.ahead_micros as f64 / 1e3),
        clock_apart: peer.clock.is_some_and(|clock| clock.apart),
    }
}

fn of_transactions(vitals: &Vitals, status: &SiteStatus) -> TransactionStatus {
    let lag = vitals.safe_lag(status.now());
    TransactionStatus {
        open: vitals.open,
        prepared: vitals.prepared,
        in_doubt: vitals.in_doubt,
        safe_us: lag.map(|_| vitals.safe.time().as_micros()),
        safe_lag_ms: lag.map(Span::as_millis_f64),
        reachable_regions: names(&vitals.reachable, status),
    }
}

fn of_quotas(vitals: QuotaVitals) -> QuotaStatus {
    let QuotaVitals { quotas, waiting, redistributing, lost, unsettled, .. } = vitals;
    QuotaStatus { quotas, waiting, redistributing, lost: lost.len(), unsettled }
}

fn of_epochs(vitals: &CatenaeVitals, status: &SiteStatus) -> EpochStatus {
    EpochStatus {
        sealed: vitals.coordinator.0,
        settled: vitals.settled.0,
        unsettled: vitals.unsettled,
        passed_over: names(&vitals.passed_over, status),
    }
}

fn of_quorums(quad: Explanation, status: &SiteStatus) -> QuorumStatus {
    let view = quorum_view(quad, status);
    let quad = &view.explanation;
    let own = quad.sites.iter().find(|facts| facts.site == quad.site);
    QuorumStatus {
        epoch: quad.epoch.0,
        role: own.map_or(QuorumRole::None, |own| super::quorums::role(own.role)),
        cores: quad.cores.to_string(),
        caught_up: own.is_some_and(|own| own.caught_up),
        sealed: quad.sealed,
        load: own.and_then(|own| own.load),
        why: view.told(&quad.why),
    }
}

fn names(regions: &[RegionId], status: &SiteStatus) -> Vec<String> {
    regions.iter().map(|&region| status.setup().topology.name(region).to_owned()).collect()
}
