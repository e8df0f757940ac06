//! A site as a process: its protocols, its quotas, and its clients, over the [node](rhumb_node).
//!
//! ```text
//!   clients of PostgreSQL ─▶ sql ──┐                    ┌─▶ Replicated Commit, Catenae, QuAD
//!                                  ├─▶ gateways of node ┤
//!   clients of Redis ──────▶ resp ─┘                    └─▶ quotas
//! ```
//!
//! The node is generic over what it drives, so the code of every step is compiled where it is told which protocols those are: here, at the level of what
//! transactions pass through, and not in the command line, which is not optimized for speed.

use rhumb_catenae as catenae;
use rhumb_commit::transaction;
use rhumb_config::{QuotaSetup, Setup, first_quorums};
use rhumb_core::Topology;
use rhumb_node::gateway::catenae::Gateway as CatenaeGateway;
use rhumb_node::gateway::interactive::Gateway;
use rhumb_node::gateway::quad::Gateway as QuadGateway;
use rhumb_node::site::ClientPort;
use rhumb_node::site::process::{self, Actors, Served, Stop};
use rhumb_node::status::Status;
use rhumb_quad as quad;
use rhumb_quota::gateway::Quotas;
use rhumb_replicated_commit::{Config as Protocol, Site};
use rhumb_sql::Gateways;
use rhumb_sql::server::{ServerOptions, decline, serve_until};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

pub use rhumb_node::site::error::RunError;

/// How often a site whose clock is contradicted looks whether it still is. A client has as long to say who it is.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The most connections of clients that a site has at a time.
pub fn clients_max() -> usize {
    ServerOptions::default().sockets_max() + rhumb_resp::ServerOptions::default().sockets_max()
}

/// Runs the site that `setup` describes until the process is told to stop.
pub fn run(setup: Setup) -> Result<(), RunError> {
    process::run(setup, actors, serve_clients)
}

fn actors(setup: &Setup) -> Actors<Site, rhumb_quota::Site> {
    let topology = Arc::new(setup.topology.clone());
    let QuotaSetup { epoch, models } = &setup.quotas;
    let quotas = rhumb_quota::Config { epoch: *epoch, predictors: models.predictors(), ..rhumb_quota::Config::default() };
    Actors {
        commits: Site::new(setup.site, Arc::clone(&topology), setup.placement.clone(), Protocol::default()),
        quotas: rhumb_quota::Site::new(setup.site, &topology, quotas),
        catenae: catenae(setup),
        quad: first_quorums(&setup.topology).map(|quorums| quad::Site::new(setup.site, quorums, setup.quad.clone())),
    }
}

/// The actor of Catenae: a region has a coordinator and at most a secondary one; its further sites have none.
fn catenae(setup: &Setup) -> Option<catenae::Site> {
    let names = setup.topology.regions().map(|region| setup.topology.name(region).to_owned()).collect();
    let topology = Topology::new(names, setup.topology.shard_count().min(catenae::SITES_PER_REGION_MAX));
    topology.has(setup.site).then(|| catenae::Site::new(setup.site, Arc::new(topology), setup.catenae.clone()))
}

/// Serves clients of PostgreSQL and of the Redis protocol until the site is to stop and they are done.
async fn serve_clients(served: Served<Site>) -> io::Result<()> {
    let Served { sql, resp, commits, catenae, quad, quotas, quotas_home, status, mut stop } = served;
    tokio::select! {
        () = status.recovered() => {}
        () = decline_clients(&sql, &status) => {}
        () = stop.requested() => return Ok(()),
    }
    let setup = status.setup();
    let site_names = setup.topology.sites().map(|site| (site, setup.name(site))).collect();
    let tls = resp.as_ref().and_then(|port| port.tls.clone());
    let handshakes = Some(Handle::current());
    let redis_options = rhumb_resp::ServerOptions { site_names, tls, handshakes, ..rhumb_resp::ServerOptions::default() };
    let statement_bytes_max = (setup.limits.statements_mib as usize) << 20;
    let options = ServerOptions { site: setup.site, statement_bytes_max, tls: sql.tls.clone(), ..ServerOptions::default() };
    let catenae = catenae.map(|handle| Arc::new(CatenaeGateway::new(handle, Arc::clone(&status))));
    let quad = quad.map(|handle| Arc::new(QuadGateway::new(handle, Arc::clone(&status))));
    let gateways = Gateways {
        epochs: catenae.clone().map(|gateway| gateway as Arc<dyn rhumb_catenae::administration::Administration>),
        quorums: quad.clone().map(|gateway| gateway as Arc<dyn rhumb_quad::administration::Administration>),
        catenae: catenae.map(|gateway| gateway as Arc<dyn transaction::Gateway>),
        quad: quad.map(|gateway| gateway as Arc<dyn transaction::Gateway>),
        replicated_commit: Arc::new(Gateway::new(commits, status)),
    };
    let redis = async {
        match resp {
            Some(port) => serve_redis(stop.clone(), port.listener, &quotas_home, Arc::clone(&quotas), redis_options).await,
            None => Ok(()),
        }
    };
    let sql = async {
        let mut stop = stop.clone();
        let served = serve_until(async { stop.requested().await }, sql.listener, gateways, Some(Arc::clone(&quotas)), options).await;
        served.map_err(|error| io::Error::other(error.to_string()))
    };
    tokio::try_join!(sql, redis).map(|((), ())| ())
}

/// Tells clients of PostgreSQL that the clock of this machine must be set first, while that is so. They are told one after the other.
async fn decline_clients(sql: &ClientPort, status: &Status) {
    loop {
        let Some(reason) = status.clock_contradicted() else {
            tokio::time::sleep(LOOK_EVERY).await;
            continue;
        };
        // A connection that the system refused, or that came too late, is the client's to try again.
        if let Ok(Ok((client, _))) = tokio::time::timeout(LOOK_EVERY, sql.listener.accept()).await {
            let _ = tokio::time::timeout(LOOK_EVERY, decline(client, sql.tls.as_ref(), &reason)).await;
        }
    }
}

/// Serves clients of the Redis protocol on the thread of the quotas. Dropping the future closes their connections.
async fn serve_redis(
    mut stop: Stop,
    listener: TcpListener,
    home: &Handle,
    quotas: Arc<dyn Quotas>,
    options: rhumb_resp::ServerOptions,
) -> io::Result<()> {
    let listener = listener.into_std()?;
    let mut served = JoinSet::new();
    let serve = async move {
        let stop = async { stop.requested().await };
        rhumb_resp::serve_until(stop, TcpListener::from_std(listener)?, quotas, options).await
    };
    served.spawn_on(serve, home);
    match served.join_next().await {
        Some(Ok(served)) => served,
        Some(Err(error)) if error.is_panic() => Err(io::Error::other(error)),
        // It went with the thread, whose end is reported with its reason.
        Some(Err(_)) => std::future::pending().await,
        None => unreachable!("there is one task"),
    }
}
