//! What a leader knows of its peers: how far their logs are its own, and up to when they have promised to vote for nobody else.
//!
//! ```text
//!   leader                         follower
//!     │ round 7 begins at 10.0 s ──────▶│ round 7 taken in at 10.1 s by its own count
//!     │◀────────────────── accepted ────┤ votes for nobody else for a lease from there
//!     │ a majority: may serve up to 10.0 s + lease - drift
//! ```
//!
//! The leader counts from before it sent the round, a follower from when it took the round in; both count time that has passed, by a clock
//! that is never set. The leader counts by the driver's [steady reading](rhumb_core::Effects::steady), which it must not
//! overestimate; a follower by ticks of its timer, of which each takes at least its span. Where a driver has no
//! steady reading there is no lease, and the leader confirms by a round whatever a lease would have allowed.
//!
//! Invariant: a round is confirmed once a majority has taken it in, so that nobody else was elected before it began.

use super::log::Slot;
use rhumb_core::{Ballot, SiteId, Span, Time};
use std::collections::BTreeMap;

/// What a leader knows of one replica, itself among them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Peer {
    /// Its log is known to be the leader's up to here.
    pub(super) matched: Slot,
    /// What it is sent next, in the hope that all before arrives.
    pub(super) next: Slot,
    /// The last round that it has taken in.
    pub(super) round: u64,
    /// What comes next for it is compacted away: it is to fetch the state first.
    pub(super) is_behind: bool,
    /// The tick at which it was heard last.
    pub(super) heard: u64,
}

/// The state of a leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leading {
    pub(super) ballot: Ballot,
    /// Its first entry: once this is chosen, all that earlier leaders have had chosen is known.
    pub(super) first: Slot,
    pub(super) peers: BTreeMap<SiteId, Peer>,
    /// The present round.
    pub(super) round: u64,
    /// When each round began that may matter yet, by the steady clock.
    began: BTreeMap<u64, Option<Time>>,
    /// The tick at which it began to lead.
    pub(super) since: u64,
    /// The last tick at which a majority had confirmed another round.
    pub(super) confirmed_at: u64,
    confirmed: u64,
}

impl Leading {
    pub(super) fn new(ballot: Ballot, first: Slot, members: &[SiteId], tick: u64) -> Leading {
        let peer = Peer { matched: 0, next: first, round: 0, is_behind: false, heard: tick };
        let peers = members.iter().map(|member| (*member, peer.clone())).collect();
        Leading { ballot, first, peers, round: 0, began: BTreeMap::new(), since: tick, confirmed_at: tick, confirmed: 0 }
    }

    /// Begins a round now.
    pub(super) fn begin_round(&mut self, now: Option<Time>) {
        self.round += 1;
        self.began.insert(self.round, now);
    }

    /// A replica has taken a round in, and its log is this one's up to `upto`.
    pub(super) fn on_accepted(&mut self, from: SiteId, upto: Slot, round: u64, tick: u64) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        peer.matched = peer.matched.max(upto);
        peer.next = peer.next.max(peer.matched + 1);
        peer.round = peer.round.max(round);
        peer.is_behind = false;
        peer.heard = tick;
        let confirmed = self.by_majority(|peer| peer.round);
        if confirmed > self.confirmed {
            (self.confirmed, self.confirmed_at) = (confirmed, tick);
            self.began = self.began.split_off(&confirmed);
        }
    }

    /// The highest of what a majority has reached.
    fn by_majority(&self, of: impl Fn(&Peer) -> u64) -> u64 {
        let mut reached: Vec<u64> = self.peers.values().map(of).collect();
        reached.sort_unstable();
        reached[(reached.len() - 1) / 2]
    }

    /// The last slot that a majority has.
    pub(super) fn held_by_majority(&self) -> Slot {
        self.by_majority(|peer| peer.matched)
    }

    /// The last round that a majority has taken in.
    pub(super) fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// When the lease ends, by the steady clock; none if there is none.
    pub(super) fn lease_end(&self, span: Span) -> Option<Time> {
        let began = *self.began.get(&self.confirmed)?;
        began.map(|began| began + span)
    }

    /// Rounds whose beginning is kept.
    pub(super) fn rounds_open(&self) -> usize {
        self.began.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::NO_BALLOT;

    fn members() -> Vec<SiteId> {
        (0..5).map(|region| SiteId::new(region, 0)).collect()
    }

    fn at(micros: u64) -> Option<Time> {
        Some(Time::from_micros(micros))
    }

    #[test]
    fn a_lease_counts_from_when_the_round_began_that_a_majority_has_taken_in() {
        let mut leading = Leading::new(NO_BALLOT, 1, &members(), 0);
        let span = Span::from_micros(100);
        leading.begin_round(at(1_000));
        leading.begin_round(at(2_000));
        for (region, round) in [(0, 2), (1, 1)] {
            leading.on_accepted(SiteId::new(region, 0), 0, round, 1);
        }
        assert_eq!((leading.confirmed(), leading.lease_end(span)), (0, None));
        leading.on_accepted(SiteId::new(2, 0), 0, 2, 2);
        assert_eq!((leading.confirmed(), leading.lease_end(span), leading.confirmed_at), (1, at(1_100), 2));
        leading.on_accepted(SiteId::new(3, 0), 0, 2, 3);
        assert_eq!((leading.confirmed(), leading.lease_end(span)), (2, at(2_100)));
        assert_eq!(leading.rounds_open(), 1, "what began before is forgotten");
    }

    #[test]
    fn without_a_steady_clock_there_is_no_lease() {
        let mut leading = Leading::new(NO_BALLOT, 1, &members()[..1], 0);
        leading.begin_round(None);
        leading.on_accepted(SiteId::new(0, 0), 0, 1, 1);
        assert_eq!((leading.confirmed(), leading.lease_end(Span::from_secs(1))), (1, None));
    }

    #[test]
    fn a_majority_has_what_the_middle_one_has() {
        let mut leading = Leading::new(NO_BALLOT, 1, &members(), 0);
        for (region, upto) in [(0, 9), (1, 4), (2, 7)] {
            leading.on_accepted(SiteId::new(region, 0), upto, 0, 0);
        }
        assert_eq!(leading.held_by_majority(), 4);
        let mut two = Leading::new(NO_BALLOT, 1, &members()[..2], 0);
        two.on_accepted(SiteId::new(0, 0), 9, 0, 0);
        assert_eq!(two.held_by_majority(), 0, "of two it takes both");
    }
}
