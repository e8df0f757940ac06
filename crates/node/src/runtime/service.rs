//! Starting one actor: its mailbox, its threads, and how they are tied together.

use super::Hosted;
use super::attend::Attend;
use super::cell::Cell;
use super::disk::Disk;
use super::driver::{Driver, Parts};
use super::loader::Loaders;
use super::mailbox::Mailbox;
use super::requests::{Handle, Requests};
use super::unapplied::Unapplied;
use super::writer::Writer;
use crate::clock::Clock;
use crate::failure::Failure;
use crate::metrics::ServiceMetrics;
use crate::service::Service;
use crate::transport::{Inbox, Transport};
use rhumb_core::SiteId;
use rhumb_store::{Engine, Newest, Store};
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tokio::runtime;
use tokio::sync::watch;

/// What all services of a site share.
pub struct Common {
    /// Which site.
    pub site: SiteId,
    /// So many requests to each service may wait for their answers.
    pub requests_max: usize,
    /// Each service holds so many bytes of the newest versions in its store.
    pub newest_bytes: u64,
    /// The site's clock.
    pub clock: Clock,
    /// The links to the other sites.
    pub transport: Arc<Transport>,
    /// Where what ends the site is reported.
    pub failure: Failure,
    /// How many services have not yet recovered.
    pub recovering: watch::Sender<usize>,
}

/// A service that runs.
pub struct Started<A: Hosted> {
    /// The way for clients.
    pub handle: Handle<A>,
    /// The way for peers; closed, it ends the service.
    pub inbox: Arc<dyn Inbox>,
    /// They end with the service.
    pub threads: Vec<JoinHandle<()>>,
}

/// Starts `actor` over `store`.
pub fn start<A: Hosted, E: Engine>(
    common: &Common,
    service: Service,
    store: Store<E>,
    actor: A,
    metrics: &ServiceMetrics,
) -> io::Result<Started<A>> {
    let home = runtime::Builder::new_current_thread().enable_all().build()?;
    let mailbox = Arc::new(Mailbox::new(metrics.actor.mailbox.clone()));
    let requests = Arc::new(Requests::new(common.requests_max, Arc::clone(&mailbox), home.handle().clone(), metrics.actor.clone()));
    let cell = Arc::new(Cell {
        service,
        mailbox: Arc::clone(&mailbox),
        requests: Arc::clone(&requests),
        failure: common.failure.clone(),
        in_place: service != Service::Quotas,
        driver: Mutex::new(None),
    });
    let attend: Arc<dyn Attend> = cell.clone();
    let store = Arc::new(store);
    let unapplied = Unapplied::default();
    let (loaders, mut threads) = Loaders::start(&store, &mailbox, &attend, &common.failure)?;
    let loaders = Arc::new(loaders);
    let writer = Writer {
        site: common.site,
        service,
        store: Arc::clone(&store),
        applied: unapplied.counter(),
        loaders: Arc::clone(&loaders),
        mailbox: Arc::clone(&mailbox),
        requests: Arc::clone(&requests),
        transport: Arc::clone(&common.transport),
        metrics: metrics.writer.clone(),
        unsynced: None,
        collect: None,
    };
    let disk = if cell.in_place {
        let (disk, written) = Disk::beside(thread(service, "write"), writer, attend, common.failure.clone())?;
        threads.push(written);
        disk
    } else {
        Disk::here(writer, common.failure.clone())
    };
    common.recovering.send_modify(|services| *services += 1);
    let driver = Driver::new(Parts {
        site: common.site,
        service,
        actor,
        clock: common.clock.clone(),
        store,
        mailbox: Arc::clone(&mailbox),
        requests: Arc::clone(&requests),
        transport: Arc::clone(&common.transport),
        disk,
        unapplied,
        newest: Newest::new(common.newest_bytes),
        loaders,
        failure: common.failure.clone(),
        recovering: common.recovering.clone(),
        metrics: metrics.actor.clone(),
    });
    let life = Arc::clone(&cell).live(driver, common.transport.clocks().begun());
    // It is a task like its clients: woken by one of them, it gets its turn after those that are ready.
    threads.push(thread(service, "actor").spawn(move || {
        // A panic of it was reported.
        let _ = home.block_on(home.spawn(life));
    })?);
    Ok(Started { handle: Handle { mailbox, requests, cell: cell.clone() }, inbox: cell, threads })
}

/// A thread of `service`. The system shows 15 bytes of its name.
fn thread(service: Service, what: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(format!("{}-{what}", service.name()))
}
