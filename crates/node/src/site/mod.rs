//! A site: the services that one process hosts, over the links to the others.

pub mod owner;
mod ports;
mod stores;

pub mod descriptors;
pub mod error;
pub mod process;
mod renewal;

pub use ports::ClientPort;
pub use stores::{CATENAE_FOLDER, QUAD_FOLDER, QUOTAS_FOLDER};

use crate::clock::Clock;
use crate::credentials::Credentials;
use crate::failure::Failure;
use crate::incarnation::Incarnations;
use crate::metrics::Metrics;
use crate::runtime::{Common, Handle, Hosted, start};
use crate::service::Service;
use crate::status::Status;
use crate::transport::{Inboxes, Transport};
use rhumb_alarm::Alarm;
use rhumb_config::Setup;
use rhumb_store::{Engine, Store};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A running site: the services hosted so far, and its links once it is open to its peers.
pub struct Site {
    common: Common,
    metrics: Arc<Metrics>,
    status: Arc<Status>,
    alarm: Alarm,
    inboxes: Inboxes,
    threads: Vec<JoinHandle<()>>,
    links: JoinSet<()>,
}

impl Site {
    /// The site that `setup` describes, in the incarnation that has begun with `incarnations`, without a service. `credentials` are what it proves itself with.
    pub fn new(
        setup: Arc<Setup>,
        credentials: impl Into<Credentials>,
        incarnations: Incarnations,
        clock: Clock,
        metrics: Arc<Metrics>,
    ) -> io::Result<Site> {
        let failure = Failure::default();
        metrics.bound_requests(setup.limits.requests as usize);
        let common = Common {
            site: setup.site,
            requests_max: setup.limits.requests as usize,
            newest_bytes: u64::from(setup.storage.row_cache_mib) << 20,
            transport: Transport::new(&setup, (credentials.into(), incarnations), clock.clone(), failure.clone(), Arc::clone(&metrics)),
            clock,
            failure,
            recovering: watch::Sender::new(0),
        };
        let status = Arc::new(Status::new(setup, &common, Arc::clone(&metrics)));
        Ok(Site { common, metrics, status, alarm: Alarm::start()?, inboxes: Inboxes::new(), threads: Vec::new(), links: JoinSet::new() })
    }

    /// Starts `actor` over `store` as `service`, which has none yet. It recovers as soon as the clock of the site is confirmed, for which
    /// a site that has peers must be [open](Site::open). Should it fail, the site has.
    pub fn host<A: Hosted, E: Engine>(&mut self, service: Service, store: Store<E>, actor: A) -> io::Result<Handle<A>> {
        let started = start(&self.common, service, store, actor, &self.metrics.service(service))?;
        let before = self.inboxes.insert(service, started.inbox);
        assert!(before.is_none(), "a service is hosted once");
        self.threads.extend(started.threads);
        Ok(started.handle)
    }

    /// Connects to the other sites, and hears those that connect to `peers`. Must be called within a tokio runtime, once
    /// all services are hosted.
    pub fn open(&mut self, peers: TcpListener) {
        self.links = self.common.transport.start(peers, &self.alarm, self.inboxes.clone());
    }

    /// What is known of the site and its peers.
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.status)
    }

    /// Stops: takes nothing more, makes durable what the actors have written, ends all threads and connections, and notes that it stopped.
    pub async fn stop(mut self) {
        self.inboxes.values().for_each(|inbox| inbox.close());
        let threads = std::mem::take(&mut self.threads);
        let joined = tokio::task::spawn_blocking(move || {
            threads.into_iter().for_each(|thread| {
                // A panic was reported as the site's failure.
                let _ = thread.join();
            })
        });
        let _ = joined.await;
        self.links.shutdown().await;
        if self.common.failure.reason().is_none() {
            // A failure to note it is reported as the site's.
            let _ = self.common.transport.end().await;
        }
    }
}
