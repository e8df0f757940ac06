//! The life of a site's process: listen, open the store, run the actor, serve clients, stop.
//!
//! ```text
//!   bind ▶ open the store ▶ start the site, HTTP ▶ recovered ▶ serve clients, ready line ▶ SIGTERM or SIGINT
//!        ▶ no new clients, those under way finish within the grace ▶ all on disk ▶ exit 0
//! ```
//!
//! What goes wrong in the world ends in one line that names it and says what to do, and an exit code: 2 for a
//! configuration that cannot be, 1 for the rest. A second signal while stopping ends the grace.

use crate::config::{ConfigError, Setup};
use crate::http;
use crate::metrics::Metrics;
use crate::runtime::{Handle, Hosted, Site};
use crate::status::Status;
use rhumb_store::{FjallEngine, FjallOptions, Store, StoreError};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Why a site's process ended otherwise than by being told to.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum RunError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{key}: {address} is in use by another process; stop that one, or choose another port")]
    InUse { key: &'static str, address: SocketAddr },
    #[error("{key}: cannot listen on {address}: {reason}")]
    Listen { key: &'static str, address: SocketAddr, reason: io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the system gives the site no {what}: {reason}")]
    System { what: &'static str, reason: io::Error },
    #[error("the site cannot go on: {0}")]
    Failed(String),
    #[error("clients can no longer be served: {0}")]
    Serve(io::Error),
}

impl RunError {
    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Config(_) => 2,
            _ => 1,
        }
    }
}

/// What is needed to serve clients.
pub struct Served<A: Hosted> {
    /// Where they connect, bound already.
    pub listener: TcpListener,
    /// The way to the actor.
    pub handle: Handle<A>,
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

/// Runs the site that `setup` describes until a signal or a failure ends it. `actor` makes its actor; `serve` accepts
/// and serves clients until it is told to stop, and returns when those it has are done.
pub fn run<A, F, S, R>(setup: Setup, actor: F, serve: S) -> Result<(), RunError>
where
    A: Hosted,
    F: FnOnce(&Setup) -> A,
    S: FnOnce(Served<A>) -> R,
    R: Future<Output = io::Result<()>>,
{
    let system = |what| move |reason| RunError::System { what, reason };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(system("threads"))?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(system("signals"))?;
        live(setup, actor, serve, async || signals.next().await).await
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

/// [`run`] within a tokio runtime; `stop` waits for the next demand to stop.
pub async fn live<A, F, S, R>(setup: Setup, actor: F, serve: S, mut stop: impl AsyncFnMut()) -> Result<(), RunError>
where
    A: Hosted,
    F: FnOnce(&Setup) -> A,
    S: FnOnce(Served<A>) -> R,
    R: Future<Output = io::Result<()>>,
{
    let peers = bind("listen.peer", setup.addresses[&setup.site]).await?;
    let http = bind("listen.http", setup.http).await?;
    let sql = bind("listen.sql", setup.sql).await?;
    let store = open(&setup).await?;
    let setup = Arc::new(setup);
    let actor = actor(&setup);
    let site = Site::start(Arc::clone(&setup), store, peers, actor, Arc::new(Metrics::new()))
        .map_err(|reason| RunError::System { what: "threads", reason })?;
    let status = site.status();
    let addresses = (sql.local_addr(), http.local_addr());
    let routes = http::router(Arc::clone(&status), site.handle());
    let admin = tokio::spawn(async move { axum::serve(http, routes).await });

    let (stopping, stopped) = watch::channel(false);
    let served = Served { listener: sql, handle: site.handle(), status: Arc::clone(&status), stop: Stop(stopped) };
    let serving = async {
        status.recovered().await;
        if let (Ok(sql), Ok(http)) = addresses {
            println!("site {} listens: sql {sql}, http {http}, peer {}", setup.name(setup.site), setup.addresses[&setup.site]);
        }
        serve(served).await
    };
    tokio::pin!(serving);
    let mut outcome = tokio::select! {
        served = &mut serving => served.map_err(RunError::Serve),
        reason = status.failure().wait() => Err(RunError::Failed(reason)),
        () = stop() => {
            tracing::info!("stopping");
            status.begin_stop();
            stopping.send_replace(true);
            let grace = Duration::from_millis(setup.limits.stop_grace_ms);
            tokio::select! {
                served = &mut serving => served.map_err(RunError::Serve),
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
    };
    site.stop().await;
    admin.abort();
    // Its end by abortion is no news; but only then is its port free.
    let _ = admin.await;
    if let (Ok(()), Some(reason)) = (&outcome, status.failure().reason()) {
        outcome = Err(RunError::Failed(reason));
    }
    outcome
}

async fn bind(key: &'static str, address: SocketAddr) -> Result<TcpListener, RunError> {
    TcpListener::bind(address).await.map_err(|reason| match reason.kind() {
        io::ErrorKind::AddrInUse => RunError::InUse { key, address },
        _ => RunError::Listen { key, address, reason },
    })
}

/// Opens the store; reads journals, so off the runtime's threads.
async fn open(setup: &Setup) -> Result<Store<FjallEngine>, RunError> {
    let folder = setup.data_dir.clone();
    let options = FjallOptions { cache_bytes: u64::from(setup.storage.cache_mib) << 20, ..FjallOptions::DEFAULT };
    let opened = tokio::task::spawn_blocking(move || Store::open(FjallEngine::open(&folder, options)?)).await;
    match opened {
        Ok(opened) => Ok(opened?),
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}
