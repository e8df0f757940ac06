//! The life of a site's process: listen, open the stores, run the actors, serve clients, stop.
//!
//! ```text
//!   bind ▶ open the stores ▶ start the site, HTTP ▶ clock confirmed ▶ recovered ▶ serve clients, ready line ▶ SIGTERM or SIGINT
//!        ▶ no new clients, those under way finish within the grace, HTTP tells probes ▶ all on disk ▶ exit 0
//! ```
//!
//! Each service has a store of its own, so that none waits for the syncs of another: that of Replicated Commit is the data folder itself,
//! those of the quotas, of Catenae and of QuAD the folders [`QUOTAS_FOLDER`](super::QUOTAS_FOLDER),
//! [`CATENAE_FOLDER`](super::CATENAE_FOLDER) and [`QUAD_FOLDER`](super::QUAD_FOLDER) in it. Whose folder it is stands in it, with the settings
//! that the cluster began with, and a site does not open that of another: what it promised there is not its own to break
//! ([`crate::site::owner`]). Nor does it go on with a folder that lost a part, a copy, or an older state of its own ([`crate::incarnation`]).
//!
//! What goes wrong in the world ends in one line that names it and says what to do, and an exit code: 2 for a
//! configuration that cannot be, 1 for the rest. A second signal while stopping ends the grace.

use super::Site;
use super::error::RunError;
use super::ports::{ClientPort, Ports};
use super::renewal;
use super::stores::{self, store_folders};
use crate::admin;
use crate::admin::listener::Entrance;
use crate::clock::Clock;
use crate::credentials::Credentials;
use crate::gateway::quotas::{Gateway, KeepsQuotas};
use crate::gateway::vitals::{self, Commits};
use crate::metrics::Metrics;
use crate::metrics::resources::Resources;
use crate::runtime::{Handle, Hosted};
use crate::secret::Secret;
use crate::service::Service;
use crate::status::Status;
use rhumb_catenae::Site as Catenae;
use rhumb_config::{Setup, TlsSetup};
use rhumb_quad::Site as Quad;
use rhumb_quota::gateway::Quotas;
use rhumb_security::tls::Tls;
use rhumb_store::DiskEngine;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// The stack of each thread that serves clients: somewhat more than statements of SQL may take, which are walked by recursion. Where a
/// thread has less, one is made for them each time.
const STACK_BYTES: usize = 272 << 20;
/// How often the status hears which placement is in force.
const PLACEMENT_EVERY: Duration = Duration::from_secs(1);

/// The actors of a site.
pub struct Actors<C, Q> {
    /// Commits transactions.
    pub commits: C,
    /// Keeps quotas.
    pub quotas: Q,
    /// Runs one-shot transactions by epochs, if this site does.
    pub catenae: Option<Catenae>,
    /// Commits transactions in quorums that follow load and distance, if this site does.
    pub quad: Option<Quad>,
}

/// What is needed to serve clients.
pub struct Served<C: Hosted> {
    /// Where PostgreSQL clients connect, bound already.
    pub sql: ClientPort,
    /// Where clients that speak the Redis protocol connect, if they are to be served.
    pub resp: Option<ClientPort>,
    /// The way to the actor that commits transactions.
    pub commits: Handle<C>,
    /// The way to the actor of Catenae, if this site has it.
    pub catenae: Option<Handle<Catenae>>,
    /// The way to the actor of QuAD, if this site has it.
    pub quad: Option<Handle<Quad>>,
    /// The way to the quotas.
    pub quotas: Arc<dyn Quotas>,
    /// The thread of the quotas: who needs nothing else is served fastest there.
    pub quotas_home: runtime::Handle,
    /// What is known of the site and its peers.
    pub status: Arc<Status>,
    /// When to stop.
    pub stop: Stop,
}

/// Tells when the site is to stop.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Waits until then.
    pub async fn requested(&mut self) {
        // A sender that is gone means the same.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// Runs the site that `setup` describes until a signal or a failure ends it. `actors` makes its actors; `serve` accepts
/// and serves clients until it is told to stop, and returns when those it has are done. It is called at once; there is nobody to serve
/// clients with before the site has [recovered](Status::recovered).
pub fn run<C, Q, S, R>(setup: Setup, actors: impl FnOnce(&Setup) -> Actors<C, Q>, serve: S) -> Result<(), RunError>
where
    C: Commits,
    Q: KeepsQuotas,
    S: FnOnce(Served<C>) -> R,
    R: Future<Output = io::Result<()>>,
{
    let system = |what| move |reason| RunError::System { what, reason };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK_BYTES).enable_all().build().map_err(system("threads"))?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(system("signals"))?;
        let actors = actors(&setup);
        live(setup, actors, serve, async || signals.next().await).await
    });
    // What still runs belongs to clients that outlasted the grace.
    runtime.shutdown_background();
    outcome
}

/// The signals that ask a process to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> io::Result<Signals> {
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Has the status know which placement the site has adopted: it moves at any time.
async fn watch_placement<C: Commits>(commits: Handle<C>, status: Arc<Status>) {
    loop {
        tokio::time::sleep(PLACEMENT_EVERY).await;
        vitals::of_commits(&commits, &status).await;
    }
}

/// [`run`] within a tokio runtime; `stop` waits for the next demand to stop.
pub async fn live<C, Q, S, R>(setup: Setup, actors: Actors<C, Q>, serve: S, stop: impl AsyncFnMut()) -> Result<(), RunError>
where
    C: Commits,
    Q: KeepsQuotas,
    S: FnOnce(Served<C>) -> R,
    R: Future<Output = io::Result<()>>,
{
    let secret = secret(&setup)?;
    let tls = tls(&setup)?;
    let ports = Ports::bind(&setup, tls.as_ref()).await?;
    let listens = ports.describe(&setup);
    let stores = stores::open(&setup, actors.catenae.is_some(), actors.quad.is_some()).await?;
    let mut metrics = Metrics::new();
    let folders = store_folders(&setup, actors.catenae.is_some(), actors.quad.is_some());
    let files = folders.into_iter().map(|(service, folder)| (service, DiskEngine::files_of(&folder)));
    metrics.measure(Resources::new(files.collect()));
    let setup = Arc::new(setup);
    let threads = |reason| RunError::System { what: "threads", reason };
    let credentials = Credentials { secret, tls: tls.clone() };
    let mut site = Site::new(Arc::clone(&setup), credentials, stores.incarnations, Clock::start(), Arc::new(metrics)).map_err(threads)?;
    let commits = site.host(Service::Commit, stores.commits, actors.commits).map_err(threads)?;
    let quotas = site.host(Service::Quotas, stores.quotas, actors.quotas).map_err(threads)?;
    let catenae = match stores.catenae.zip(actors.catenae) {
        Some((store, actor)) => Some(site.host(Service::Catenae, store, actor).map_err(threads)?),
        None => None,
    };
    let quad = match stores.quad.zip(actors.quad) {
        Some((store, actor)) => Some(site.host(Service::Quad, store, actor).map_err(threads)?),
        None => None,
    };
    site.open(ports.peer);
    let status = site.status();
    let routes = admin::router(Arc::clone(&status), commits.clone(), quotas.clone(), catenae.clone(), quad.clone());
    let (stopping, stopped) = watch::channel(false);
    let (answered, all_answered) = oneshot::channel();
    let mut stop_http = Stop(stopped.clone());
    let entrance = Entrance { listener: ports.http.listener, tls: ports.http.tls };
    let admin = tokio::spawn(async move { admin::listener::serve(entrance, routes, stop_http.requested(), answered).await });
    let mut watching = JoinSet::new();
    watching.spawn(watch_placement(commits.clone(), Arc::clone(&status)));
    if let (Some(tls), Some(setup)) = (tls, status.setup().tls.clone()) {
        watching.spawn(renewal::keep(tls, setup));
    }

    let quotas_home = quotas.home().clone();
    let quotas = Arc::new(Gateway::new(quotas));
    let (sql, resp, stop_clients) = (ports.sql, ports.resp, Stop(stopped));
    let served = Served { sql, resp, commits, catenae, quad, quotas, quotas_home, status: Arc::clone(&status), stop: stop_clients };
    let serving = async {
        let announced = async {
            status.recovered().await;
            println!("{listens}");
            std::future::pending().await
        };
        tokio::select! {
            served = serve(served) => served,
            never = announced => never,
        }
    };
    let mut outcome = until_done(serving, all_answered, &status, stopping, stop).await;
    site.stop().await;
    drop(watching);
    admin.abort();
    // Its end by abortion is no news; but only then is its port free.
    let _ = admin.await;
    if let (Ok(()), Some(reason)) = (&outcome, status.failure().reason()) {
        outcome = Err(RunError::Failed(reason));
    }
    outcome
}

/// The certificates, if the site has any.
fn tls(setup: &Setup) -> Result<Option<Arc<Tls>>, RunError> {
    let load = |tls: &TlsSetup| Tls::load(tls.files.clone(), tls.names[&setup.site].clone());
    Ok(setup.tls.as_ref().map(load).transpose()?)
}

/// The secret of the cluster. A site without peers needs none: nobody has one that it believes.
fn secret(setup: &Setup) -> Result<Secret, RunError> {
    if setup.addresses.len() > 1 {
        return Ok(Secret::load(&setup.secret_file)?);
    }
    Secret::random().map_err(|reason| RunError::System { what: "random numbers", reason })
}

/// Waits until clients are served no more, the site fails, or it was told to stop and those under way are done or out of
/// time.
async fn until_done(
    serving: impl Future<Output = io::Result<()>>,
    all_answered: oneshot::Receiver<()>,
    status: &Status,
    stopping: watch::Sender<bool>,
    mut stop: impl AsyncFnMut(),
) -> Result<(), RunError> {
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => served.map_err(RunError::Serve),
        reason = status.failure().wait() => Err(RunError::Failed(reason)),
        () = stop() => {
            tracing::info!("stopping");
            status.begin_stop();
            stopping.send_replace(true);
            let grace = Duration::from_millis(status.setup().limits.stop_grace_ms);
            let done = async {
                let served = serving.await;
                // Who was to tell is there until the site has stopped.
                let _ = all_answered.await;
                served
            };
            tokio::select! {
                served = done => served.map_err(RunError::Serve),
                reason = status.failure().wait() => Err(RunError::Failed(reason)),
                () = tokio::time::sleep(grace) => {
                    tracing::warn!("stopped with clients still under way");
                    Ok(())
                }
                () = stop() => {
                    tracing::warn!("stopped at once, with clients still under way");
                    Ok(())
                }
            }
        }
    }
}
