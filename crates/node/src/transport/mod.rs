//! How sites reach each other: one outgoing connection per peer, used in that direction alone.
//!
//! ```text
//!   actors ──send──▶ Link: bounded queue, WAN delay ──▶ outgoing task ══TCP══▶ incoming task ──▶ Inbox of the service
//!                      │ full, cut, lost: dropped and counted                     │ cut: drops and counts
//!                                                                                 │ no room: stops reading for a while,
//!                                                                                   then drops and counts
//! ```
//!
//! All services of a site share its links; every message says which one it is for.
//!
//! Sending never blocks and may lose: the protocols tolerate loss, duplication and reordering across reconnects. Within
//! a connection messages keep their order. Delay, jitter and loss of the emulated wide area act on the sending side, between
//! regions only; the hello that opens a connection is never delayed, so a cluster forms at the machine's own speed. Faults that are
//! switched on at run time (`faults.rs`) act on either side: `link.rs` drops or delays what a site sends, `incoming.rs` drops what it
//! receives. Nobody is believed who has not proved to be of the cluster first (`handshake.rs`; over TLS also by the certificate of the very site that it
//! says it is), and no
//! message is taken whose sender's clock is far ahead (`clocks.rs`).

mod acquaintance;
mod clocks;
mod faults;
pub mod frame;
mod handshake;
mod inbox;
mod incoming;
mod link;
mod outgoing;
mod pulse;
mod throttle;
mod unproven;

use crate::clock::Clock;
use crate::credentials::Credentials;
use crate::failure::Failure;
use crate::incarnation::Incarnations;
use crate::metrics::Metrics;
use crate::service::Service;
use acquaintance::Acquaintance;
use clocks::{COMPARE_EVERY, Clocks};
use frame::Kind;
use link::Link;
use rhumb_alarm::Alarm;
use rhumb_config::Setup;
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
pub use link::PEER_QUEUE_BYTES_MAX;
pub use unproven::UNPROVEN_MAX;

/// How often every peer is pinged.
const PING_EVERY: Duration = Duration::from_secs(1);
/// How often what pings say of others is written to disk.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// The links of a site to all others.
pub struct Transport {
    acquaintance: Arc<Acquaintance>,
    links: BTreeMap<SiteId, Arc<Link>>,
    clocks: Arc<Clocks>,
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
    /// Its clock, once it has answered a ping.
    pub clock: Option<PeerClock>,
}

/// The clock of a peer beside this site's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerClock {
    /// So many microseconds it is ahead, give or take half a round trip; negative: behind.
    pub ahead_micros: i64,
    /// True if that is more than is allowed for certain: messages of one to the other are refused.
    pub apart: bool,
}

impl Transport {
    /// The links of the site that `setup` describes, in the incarnation that has begun with `incarnations`, to those that have the same secret. The site ends
    /// with `failure` if a peer has heard an incarnation that they lack, or if `clock` is odd.
    pub fn new(
        setup: &Setup,
        (credentials, incarnations): (Credentials, Incarnations),
        clock: Clock,
        failure: Failure,
        metrics: Arc<Metrics>,
    ) -> Arc<Transport> {
        let clocks = Arc::new(Clocks::new(clock, setup.topology.sites().count(), setup.max_clock_offset, failure.clone()));
        let mut seeds = Rng::seeded(incarnations.now());
        let links = setup.topology.sites().filter(|&peer| peer != setup.site).map(|peer| {
            let (region, shard) = (setup.topology.name(peer.region), peer.shard);
            (peer, Arc::new(Link::new(setup, peer, seeds.fork(), metrics.link(region, shard), Arc::clone(&clocks))))
        });
        let links = links.collect();
        let acquaintance = Acquaintance::new(setup, credentials, incarnations, failure);
        Arc::new(Transport { acquaintance: Arc::new(acquaintance), links, clocks, metrics })
    }

    /// Sends `message` to `service` of `to`, or drops and counts it. Never blocks.
    pub fn send<M: Serialize>(&self, service: Service, to: SiteId, message: &M) {
        let link = self.links.get(&to).expect("messages go to other sites of the cluster");
        let bytes = frame::encode(Kind::Message(service), self.clocks.now(), |header| postcard::to_extend(message, header))
            .expect("messages are plain data");
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
        let clocks = Arc::clone(&self.clocks);
        tasks.spawn(async move {
            let mut ticks = tokio::time::interval(COMPARE_EVERY);
            loop {
                ticks.tick().await;
                clocks.compare();
            }
        });
        tasks
    }

    /// Notes on disk that the site has stopped well. To be said once its stores are closed.
    pub async fn end(&self) -> io::Result<()> {
        self.acquaintance.end().await
    }

    /// This site's clock and those of its peers.
    pub(crate) fn clocks(&self) -> &Clocks {
        &self.clocks
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
