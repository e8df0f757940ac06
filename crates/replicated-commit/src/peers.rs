//! Which sites are alive, how far away, and since when their transactions run: learnt from pings and from every other
//! message. A hint only: it decides whom to ask first and when to fail fast, never what is true.

use crate::message::HandoffId;
use rhumb_core::{RegionId, SiteId, Span, Time, Timestamp, Topology};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
struct Peer {
    heard: Time,
    /// The tick in which it was heard.
    heard_in: u64,
    rtt: Option<Span>,
    oldest: Timestamp,
    handing: Timestamp,
    incarnation: Timestamp,
    closed: Closed,
}

/// What a site has closed, and in which of its pings it said so last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Closed {
    /// The incarnation of the site.
    pub incarnation: Timestamp,
    /// The ping, counted within that incarnation: the site's clock may have been set back.
    pub ping: u64,
    /// No attempt with a commit timestamp at or below it is in doubt or carried there, or will be in this epoch.
    pub upto: Timestamp,
}

/// What a site knows of the others.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    peers: BTreeMap<SiteId, Peer>,
    /// Ticks of this incarnation.
    ticks: u64,
}

impl Peers {
    /// How many sites it knows of.
    pub fn len(&self) -> usize {
        self.peers.len()
    }

    /// A message of `from` arrived.
    pub fn heard(&mut self, from: SiteId, now: Time) {
        let nothing = Timestamp::ZERO;
        let new =
            Peer { heard: now, heard_in: 0, rtt: None, oldest: nothing, handing: nothing, incarnation: nothing, closed: Closed::default() };
        let peer = self.peers.entry(from).or_insert(new);
        peer.heard = now;
        peer.heard_in = self.ticks;
    }

    /// One more tick of this incarnation.
    pub fn tick(&mut self) {
        self.ticks += 1;
    }

    /// Ticks of this incarnation.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// True if this incarnation has ticked fewer than `ticks` times.
    pub fn has_just_begun(&self, ticks: u64) -> bool {
        self.ticks < ticks
    }

    /// True if this incarnation has ticked `ticks` times since `site` was heard last, or since it began. Unlike a span of time that
    /// does not run while this site itself is down or stands still.
    pub fn is_silent(&self, site: SiteId, ticks: u64) -> bool {
        self.ticks - self.peers.get(&site).map_or(0, |peer| peer.heard_in) >= ticks
    }

    /// A ping of `from` arrived, in its incarnation that began at `incarnation`: no transaction that began there before `oldest` still runs, and it
    /// awaits the end of no commit that it handed over before `handing`.
    pub fn running_since(&mut self, from: SiteId, oldest: Timestamp, handing: Timestamp, incarnation: Timestamp) {
        if let Some(peer) = self.peers.get_mut(&from) {
            if incarnation > peer.incarnation {
                (peer.incarnation, peer.oldest, peer.handing) = (incarnation, oldest, handing);
            } else if incarnation == peer.incarnation {
                peer.oldest = oldest.max(peer.oldest);
                peer.handing = handing.max(peer.handing);
            }
        }
    }

    /// A ping of `from` arrived. The latest counts, not the highest: a replica that copies its rows anew takes over what its source is in doubt
    /// about.
    pub fn closes(&mut self, from: SiteId, closed: Closed) {
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.closed = closed.max(peer.closed);
        }
    }

    /// A new epoch begins: who settles in it may take over what others are in doubt about.
    pub fn open_all(&mut self) {
        self.peers.values_mut().for_each(|peer| peer.closed.upto = Timestamp::ZERO);
    }

    /// The timestamp up to which nothing is in doubt at `site`, nor carried, nor will be in this epoch.
    pub fn closed(&self, site: SiteId) -> Timestamp {
        self.peers.get(&site).map_or(Timestamp::ZERO, |peer| peer.closed.upto)
    }

    /// An answer to the ping sent at `sent` arrived.
    pub fn measured(&mut self, from: SiteId, sent: Time, now: Time) {
        if let Some(peer) = self.peers.get_mut(&from) {
            let rtt = now.since(sent);
            // A moving minimum that forgets slowly: queueing delays a ping, nothing speeds one up.
            peer.rtt = Some(
                peer.rtt
                    .map_or(rtt, |known| if rtt < known { rtt } else { Span::from_micros((known.as_micros() * 7 + rtt.as_micros()) / 8) }),
            );
        }
    }

    /// The round trip to `site`, if it was measured.
    pub fn rtt(&self, site: SiteId) -> Option<Span> {
        self.peers.get(&site).and_then(|peer| peer.rtt)
    }

    /// True if `site` was heard within `window`.
    pub fn is_alive(&self, site: SiteId, now: Time, window: Span) -> bool {
        self.peers.get(&site).is_some_and(|peer| now.since(peer.heard) <= window)
    }

    /// When the latest incarnation of `site` that was heard of began.
    pub fn incarnation(&self, site: SiteId) -> Timestamp {
        self.peers.get(&site).map_or(Timestamp::ZERO, |peer| peer.incarnation)
    }

    /// The start of the oldest transaction that may still run at gateway `site`.
    pub fn oldest(&self, site: SiteId) -> Timestamp {
        self.peers.get(&site).map_or(Timestamp::ZERO, |peer| peer.oldest)
    }

    /// The first name, in their order, of a commit that gateway `site` may still await the end of. All names of earlier incarnations lie below it,
    /// whatever their clocks showed: those may have run ahead of the clock of the present one.
    pub fn handing(&self, site: SiteId) -> HandoffId {
        let (incarnation, made) = self.peers.get(&site).map_or_else(Default::default, |peer| (peer.incarnation, peer.handing));
        HandoffId { gateway: site, incarnation, made }
    }

    /// The regions in which the sites of all `shards` are alive.
    pub fn reachable(&self, topology: &Topology, shards: &[u16], now: Time, window: Span) -> Vec<RegionId> {
        let alive = |region: RegionId| shards.iter().all(|&shard| self.is_alive(SiteId { region, shard }, now, window));
        topology.regions().filter(|&region| alive(region)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: SiteId = SiteId::new(1, 0);

    fn closed(incarnation: u64, ping: u64, upto: u64) -> Closed {
        Closed { incarnation: Timestamp::from_bits(incarnation), ping, upto: Timestamp::from_bits(upto) }
    }

    #[test]
    fn of_what_a_site_closes_its_last_ping_counts_and_not_the_highest() {
        let mut peers = Peers::default();
        peers.heard(PEER, Time::ZERO);
        let mut hear = |told: Closed| {
            peers.closes(PEER, told);
            peers.closed(PEER).bits()
        };
        assert_eq!(hear(closed(7, 1, 50)), 50);
        assert_eq!(hear(closed(7, 3, 40)), 40, "it takes over what another one is in doubt about");
        assert_eq!(hear(closed(7, 2, 60)), 40, "a ping that was overtaken");
        assert_eq!(hear(closed(9, 1, 30)), 30, "the next incarnation counts anew");
        assert_eq!(hear(closed(7, 4, 70)), 30);
    }

    #[test]
    fn what_an_earlier_incarnation_handed_over_is_awaited_no_more_whatever_its_clock_showed() {
        let mut peers = Peers::default();
        peers.heard(PEER, Time::ZERO);
        let at = Timestamp::from_bits;
        let name = |incarnation, made| HandoffId { gateway: PEER, incarnation: at(incarnation), made: at(made) };
        peers.running_since(PEER, at(10), at(50), at(10));
        assert!(name(10, 49) < peers.handing(PEER) && name(10, 50) >= peers.handing(PEER));
        assert!(name(20, 30) >= peers.handing(PEER), "of an incarnation that has not pinged yet");
        peers.running_since(PEER, at(20), at(30), at(20));
        peers.running_since(PEER, at(10), at(60), at(10));
        assert!(name(10, 70) < peers.handing(PEER), "its clock was ahead");
        assert!(name(20, 29) < peers.handing(PEER) && name(20, 30) >= peers.handing(PEER));
    }
}
