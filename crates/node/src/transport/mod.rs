//! How sites reach each other: one outgoing connection per peer, used in that direction alone.
//!
//! ```text
//!   actors ──send──▶ Link: bounded queue, WAN delay ──▶ outgoing task ══TCP══▶ incoming task ──▶ Inbox of the service
//!                      │ full, cut, lost: dropped and counted                     │ no room: stops reading for a while,
//!                                                                                   then drops and counts
//! ```
//!
//! All services of a site share its links; every message says which one it is for.
//!
//! Sending never blocks and may lose: the protocols tolerate loss, duplication and reordering across reconnects. Within
//! a connection messages keep their order. Delay, jitter and loss of the emulated wide area, and the faults switched on
//! at run time, act on the sending side, between regions only; the hello that opens a connection is never delayed, so a
//! cluster forms at the machine's own speed.

mod acquaintance;
mod faults;
mod inbox;
mod incoming;
mod link;
mod outgoing;
mod pulse;

use crate::config::Setup;
use crate::frame::{self, Kind, Service};
use crate::lives::Lives;
use crate::metrics::Metrics;
use crate::runtime::Failure;
use acquaintance::Acquaintance;
use link::Link;
use rhumb_alarm::Alarm;
use rhumb_core::{Rng, SiteId, Span};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub use faults::{Direction, Fault};
pub use inbox::{Inbox, Inboxes, Room};
pub use incoming::SPARE_CONNECTIONS_MAX;
pub use link::{PEER_QUEUE_BYTES_MAX, PEER_QUEUE_MESSAGES_MAX};

/// How often every peer is pinged.
const PING_EVERY: Duration = Duration::from_secs(1);
/// How often what pings say of others is written to disk.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// The links of a site to all others.
pub struct Transport {
    acquaintance: Arc<Acquaintance>,
    links: BTreeMap<SiteId, Arc<Link>>,
    metrics: Arc<Metrics>,
}

/// A peer as this site sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Who.
    pub site: SiteId,
    /// True while there is a connection to it.
    pub connected: bool,
    /// The measured round trip, smoothed; emulated delay included.
    pub rtt: Option<Span>,
    /// How long ago it was last heard, if ever.
    pub heard: Option<Duration>,
}

impl Transport {
    /// The links of the site that `setup` describes, in the life that has begun with `lives`. It ends with `failure` if a peer has heard
    /// a life that they lack.
    pub fn new(setup: &Setup, lives: Lives, failure: Failure, metrics: Arc<Metrics>) -> Arc<Transport> {
        let mut seeds = Rng::seeded(lives.now());
        let links = setup.topology.sites().filter(|&peer| peer != setup.site).map(|peer| {
            let (region, shard) = (setup.topology.name(peer.region), peer.shard);
            (peer, Arc::new(Link::new(setup, peer, seeds.fork(), metrics.link(region, shard))))
        });
        let links = links.collect();
        let acquaintance = Acquaintance::new(setup.fingerprint(), setup.site, lives, failure);
        Arc::new(Transport { acquaintance: Arc::new(acquaintance), links, metrics })
    }

    /// Sends `message` to `service` of `to`, or drops and counts it. Never blocks.
    pub fn send<M: Serialize>(&self, service: Service, to: SiteId, message: &M) {
        let link = self.links.get(&to).expect("messages go to other sites of the cluster");
        let bytes = frame::encode(Kind::Message(service), |header| postcard::to_extend(message, header)).expect("messages are plain data");
        link.push(bytes);
    }

    /// Starts to connect to all peers, and to hear those that connect to `listener`. Ends when the set is dropped.
    /// Messages go to `inboxes`.
    pub fn start(self: &Arc<Self>, listener: TcpListener, alarm: &Alarm, inboxes: Inboxes) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for link in self.links.values() {
            tasks.spawn(outgoing::run(Arc::clone(link), Arc::clone(&self.acquaintance), alarm.clone()));
        }
        tasks.spawn(incoming::run(listener, Arc::clone(self), Arc::new(inboxes)));
        let transport = Arc::clone(self);
        tasks.spawn(async move {
            let mut ticks = tokio::time::interval(PING_EVERY);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let counts = transport.acquaintance.counts();
                transport.links.values().for_each(|link| link.ping(counts));
            }
        });
        let acquaintance = Arc::clone(&self.acquaintance);
        tasks.spawn(async move {
            // Once it cannot be saved the site ends.
            while acquaintance.save().await.is_ok() {
                tokio::time::sleep(SAVE_EVERY).await;
            }
        });
        tasks
    }

    /// Notes on disk that the site has stopped well. To be said once its stores are closed.
    pub async fn end(&self) -> io::Result<()> {
        self.acquaintance.end().await
    }

    /// All peers, in the order of the cluster.
    pub fn peers(&self) -> Vec<Peer> {
        self.links.values().map(|link| link.status()).collect()
    }

    /// Cuts, slows or heals the link to `peer`. False if there is no such peer.
    pub fn fault(&self, peer: SiteId, fault: Fault) -> bool {
        self.links.get(&peer).map(|link| link.faults.set(fault)).is_some()
    }
}
