//! One actor, driven: its thread, the threads of its store, and its links to the other sites.
//!
//! ```text
//!   clients ─ask/tell─▶┌─────────┐      ┌────────┐ queue        ┌────────┐      ┌──────┐
//!   peers ───notes────▶│ Mailbox │─────▶│ Driver │─────────────▶│ Writer │─────▶│ disk │
//!   timers, loads ────▶└─────────┘      └────────┘              └────────┘      └──────┘
//!                           ▲               │ notes, answers          │ promises, answers, notifications
//!                           └── own ────────┴──────▶ Transport ◀──────┘
//! ```
//!
//! The way of a commit through a site: socket, mailbox, step, sync, socket; each arrow is one wake-up of a thread.

mod clock;
mod driver;
mod failure;
mod loader;
mod mailbox;
mod requests;
mod unapplied;
mod writer;

pub use clock::Clock;
pub use failure::Failure;
pub use mailbox::{MAILBOX_CLIENTS_MAX, MAILBOX_PEERS_MAX};
pub use requests::{Handle, Rejected};

use crate::alarm::Alarm;
use crate::config::Setup;
use crate::frame::FrameError;
use crate::metrics::Metrics;
use crate::status::Status;
use crate::transport::{Deliver, Transport};
use crate::vitals::Vitals;
use driver::Driver;
use loader::Loaders;
use mailbox::Mailbox;
use requests::Requests;
use rhumb_core::SiteId;
use rhumb_core::actor::{Actor, Body, Input};
use rhumb_store::{Engine, Store};
use serde::{Serialize, de::DeserializeOwned};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use unapplied::Unapplied;
use writer::{QUEUE_MAX, Writer};

/// What can go over a wire and between threads.
pub trait Wire: Serialize + DeserializeOwned + Send + 'static {}
impl<T: Serialize + DeserializeOwned + Send + 'static> Wire for T {}

/// An actor that a node can run.
pub trait Hosted:
    Actor<Note: Wire, Promise: Wire, Timer: Send + 'static, Request: Send + 'static, Answer: Send + 'static> + Send + 'static
{
    /// The request for its vitals.
    fn inquiry() -> Self::Request;
    /// What the answer to that request says; `None` if it is the answer to another.
    fn vitals(answer: Self::Answer) -> Option<Vitals>;
}

/// A running site.
pub struct Site<A: Hosted> {
    handle: Handle<A>,
    status: Arc<Status>,
    threads: Vec<JoinHandle<()>>,
    links: JoinSet<()>,
}

impl<A: Hosted> Site<A> {
    /// Starts `actor` over `store`, hearing other sites on `peers`. Must be called within a tokio runtime.
    pub fn start<E: Engine>(
        setup: Arc<Setup>,
        store: Store<E>,
        peers: TcpListener,
        actor: A,
        metrics: Arc<Metrics>,
    ) -> io::Result<Site<A>> {
        let clock = Clock::start();
        let transport = Transport::new(&setup, clock.origin().as_micros(), Arc::clone(&metrics));
        let alarm = Alarm::start()?;
        let mailbox = Arc::new(Mailbox::new(metrics.actor.mailbox.clone()));
        let requests = Arc::new(Requests::new(setup.limits.requests as usize, metrics.actor.clone()));
        let failure = Failure::default();
        let recovered = watch::Sender::new(false);
        let store = Arc::new(store);

        let unapplied = Unapplied::default();
        let (queue, queued) = sync_channel(QUEUE_MAX);
        let (loaders, mut threads) = Loaders::start(&store, &mailbox, &failure)?;
        let loaders = Arc::new(loaders);
        let writer = Writer {
            site: setup.site,
            store: Arc::clone(&store),
            queue: queued,
            applied: unapplied.counter(),
            loaders: Arc::clone(&loaders),
            mailbox: Arc::clone(&mailbox),
            requests: Arc::clone(&requests),
            transport: Arc::clone(&transport),
            failure: failure.clone(),
            metrics: metrics.writer.clone(),
        };
        threads.push(std::thread::Builder::new().name("write".into()).spawn(move || writer.run())?);
        let driver = Driver {
            site: setup.site,
            actor,
            clock,
            store,
            mailbox: Arc::clone(&mailbox),
            requests: Arc::clone(&requests),
            transport: Arc::clone(&transport),
            queue,
            unapplied,
            loaders,
            failure: failure.clone(),
            recovered: recovered.clone(),
            metrics: metrics.actor.clone(),
        };
        threads.push(std::thread::Builder::new().name("actor".into()).spawn(move || driver.run())?);

        let links = transport.start(peers, &alarm, Inbox { mailbox: Arc::clone(&mailbox) });
        let status = Arc::new(Status::new(setup, transport, clock, recovered, failure, metrics));
        Ok(Site { handle: Handle { mailbox, requests }, status, threads, links })
    }

    /// The way to the actor.
    pub fn handle(&self) -> Handle<A> {
        self.handle.clone()
    }

    /// What is known of the site and its peers.
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.status)
    }

    /// Stops: takes nothing more, makes durable what the actor has written, ends all threads and connections.
    pub async fn stop(mut self) {
        self.handle.mailbox.close();
        let threads = std::mem::take(&mut self.threads);
        let joined = tokio::task::spawn_blocking(move || {
            threads.into_iter().for_each(|thread| {
                // A panic was reported as the site's failure.
                let _ = thread.join();
            })
        });
        let _ = joined.await;
        self.links.shutdown().await;
    }
}

/// Decodes what peers send and puts it before the actor.
struct Inbox<A: Actor> {
    mailbox: Arc<Mailbox<A>>,
}

impl<A: Actor> Clone for Inbox<A> {
    fn clone(&self) -> Inbox<A> {
        Inbox { mailbox: Arc::clone(&self.mailbox) }
    }
}

impl<A: Hosted> Deliver for Inbox<A> {
    async fn deliver(&self, from: SiteId, data: &[u8]) -> Result<(), FrameError> {
        let body = decode_message::<A::Note, A::Promise>(data)?;
        self.mailbox.push_peer(Input::Message { from, body }).await;
        Ok(())
    }
}

/// A message from the data of its frame, all of it. A pure function.
pub fn decode_message<N: DeserializeOwned, P: DeserializeOwned>(data: &[u8]) -> Result<Body<N, P>, FrameError> {
    match postcard::take_from_bytes(data) {
        Ok((body, [])) => Ok(body),
        Ok((_, rest)) => Err(FrameError::Message(format!("{} bytes are left over", rest.len()))),
        Err(error) => Err(FrameError::Message(error.to_string())),
    }
}
