//! The network: when a message arrives, if it does, and whether it arrives twice.
//!
//! A message takes the local delay within a region and [`RttMatrix::one_way`] between regions, plus what [`LinkFaults`]
//! add. Its fate is settled when it leaves: a cut takes effect on messages sent after it, what is under way arrives.
//! A message of a site to itself crosses no network: it takes the local delay, and what a world adds to that at random if asked to, and
//! is neither lost nor doubled.
//!
//! A message that no frame holds ([`MESSAGE_BYTES_MAX`](rhumb_core::actor::MESSAGE_BYTES_MAX)) is lost each time that it is sent, as
//! the node loses it, and counted under [`TOO_LARGE`].

use crate::place::Links;
use rhumb_core::{Rng, RttMatrix, SiteId, Span, Time};
use std::collections::BTreeMap;

/// The name under which messages that are too large to be sent are counted ([`World::probe`](crate::World::probe)).
pub const TOO_LARGE: &str = "network.too_large";

/// What is wrong with a link. Probabilities are per message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkFaults {
    /// Added to every message's delay.
    pub delay: Span,
    /// At most this much more, each amount as likely: messages overtake each other.
    pub jitter: Span,
    /// How likely a message is lost.
    pub loss: f64,
    /// How likely a message arrives a second time.
    pub duplicate: f64,
    /// How much later at most the duplicate arrives.
    pub duplicate_after: Span,
    /// How likely a message is held back, so that many others overtake it.
    pub reorder: f64,
    /// How long at most it is held back.
    pub reorder_by: Span,
}

/// The network of a world.
#[derive(Debug)]
pub(crate) struct Network {
    rtt: RttMatrix,
    local: Span,
    /// At most this much more for a message of a site to itself.
    home_jitter: Span,
    rng: Rng,
    /// Links that are cut, each until when.
    cuts: BTreeMap<Links, Time>,
    /// Faults of links, each until when. Where several hold, the narrowest (the first in order) counts.
    faults: BTreeMap<Links, (LinkFaults, Time)>,
}

/// When a message arrives: not at all, once or twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) arrives: Option<Time>,
    pub(crate) again: Option<Time>,
}

impl Network {
    /// A network without faults.
    pub(crate) fn new(rtt: RttMatrix, local: Span, rng: Rng) -> Network {
        Network { rtt, local, home_jitter: Span::ZERO, rng, cuts: BTreeMap::new(), faults: BTreeMap::new() }
    }

    /// Lets messages of a site to itself take up to `jitter` longer, so that they overtake each other.
    pub(crate) fn jitter_at_home(&mut self, jitter: Span) {
        self.home_jitter = jitter;
    }

    /// Cuts `links` until `until`, or longer if they are cut for longer already.
    pub(crate) fn cut(&mut self, links: Links, until: Time) {
        let cut = self.cuts.entry(links).or_insert(until);
        *cut = (*cut).max(until);
    }

    /// True if what `from` sends to `to` at `now` arrives at all.
    pub(crate) fn reaches(&self, now: Time, from: SiteId, to: SiteId) -> bool {
        !self.cuts.iter().any(|(links, until)| now < *until && links.hold(from, to))
    }

    /// Ends a cut of exactly these links.
    pub(crate) fn mend(&mut self, links: Links) {
        self.cuts.remove(&links);
    }

    /// Lets `links` have `faults` until `until`, in place of those they had.
    pub(crate) fn disturb(&mut self, links: Links, faults: LinkFaults, until: Time) {
        self.faults.insert(links, (faults, until));
    }

    /// Ends all cuts and faults.
    pub(crate) fn heal(&mut self) {
        self.cuts.clear();
        self.faults.clear();
    }

    /// What becomes of a message that leaves now.
    pub(crate) fn fate(&mut self, now: Time, from: SiteId, to: SiteId) -> Fate {
        if from == to {
            let jitter = if self.home_jitter == Span::ZERO { Span::ZERO } else { self.upto(self.home_jitter) };
            return Fate { arrives: Some(now + self.local + jitter), again: None };
        }
        if !self.reaches(now, from, to) {
            return Fate { arrives: None, again: None };
        }
        let base = if from.region == to.region { self.local } else { self.rtt.one_way(from.region, to.region) };
        let disturbed = self.faults.iter().find(|(links, (_, until))| now < *until && links.hold(from, to));
        let Some((_, &(faults, _))) = disturbed else { return Fate { arrives: Some(now + base), again: None } };
        if self.rng.chance(faults.loss) {
            return Fate { arrives: None, again: None };
        }
        let mut arrives = now + base + faults.delay + self.upto(faults.jitter);
        if self.rng.chance(faults.reorder) {
            arrives += self.upto(faults.reorder_by);
        }
        let again = self.rng.chance(faults.duplicate).then(|| arrives + self.upto(faults.duplicate_after));
        Fate { arrives: Some(arrives), again }
    }

    fn upto(&mut self, most: Span) -> Span {
        Span::from_micros(self.rng.between(0, most.as_micros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Place;

    const A: SiteId = SiteId::new(0, 0);
    const B: SiteId = SiteId::new(1, 0);
    const LATER: Time = Time::from_micros(1_000_000);

    fn network() -> Network {
        let rtt = RttMatrix::uniform(vec!["a".into(), "b".into()], Span::from_millis(80));
        Network::new(rtt, Span::from_micros(100), Rng::seeded(1))
    }

    fn after(network: &mut Network, from: SiteId, to: SiteId) -> Option<Span> {
        network.fate(LATER, from, to).arrives.map(|at| at.since(LATER))
    }

    #[test]
    fn a_message_takes_half_the_round_trip_and_the_local_delay_at_home() {
        let mut network = network();
        assert_eq!(after(&mut network, A, B), Some(Span::from_millis(40)));
        assert_eq!(after(&mut network, A, SiteId::new(0, 1)), Some(Span::from_micros(100)));
        assert_eq!(after(&mut network, A, A), Some(Span::from_micros(100)));
    }

    #[test]
    fn a_cut_holds_in_one_direction_and_for_its_time() {
        let mut network = network();
        network.cut(Links::new(Place::Site(A), Place::Everywhere), LATER + Span::from_micros(1));
        network.cut(Links::new(Place::Site(A), Place::Everywhere), LATER);
        assert_eq!(after(&mut network, A, B), None, "a shorter cut does not end a longer one");
        assert!(after(&mut network, A, A).is_some());
        assert!(after(&mut network, B, A).is_some());
        assert!(network.fate(LATER + Span::from_micros(1), A, B).arrives.is_some());
        network.cut(Links::ALL, LATER + Span::from_secs(1));
        network.mend(Links::ALL);
        network.cut(Links::ALL, LATER + Span::from_secs(1));
        network.heal();
        assert!(after(&mut network, A, B).is_some());
    }

    #[test]
    fn faults_delay_lose_double_and_hold_back() {
        let mut network = network();
        let certain = LinkFaults {
            delay: Span::from_millis(5),
            duplicate: 1.0,
            duplicate_after: Span::from_secs(2),
            reorder: 1.0,
            reorder_by: Span::from_millis(10),
            ..LinkFaults::default()
        };
        network.disturb(Links::ALL, certain, LATER + Span::from_secs(1));
        for _ in 0..100 {
            let fate = network.fate(LATER, A, B);
            let (arrives, again) = (fate.arrives.expect("not lost"), fate.again.expect("doubled"));
            assert!((45..=55).contains(&(arrives.since(LATER).as_micros() / 1_000)));
            assert!(again >= arrives && again.since(arrives) <= Span::from_secs(2));
        }
        let narrow = Links::new(Place::Site(A), Place::Site(B));
        network.disturb(narrow, LinkFaults { loss: 1.0, ..certain }, LATER + Span::from_secs(1));
        assert_eq!(after(&mut network, A, B), None);
        assert!(after(&mut network, B, A).is_some());
    }

    #[test]
    fn loss_is_as_likely_as_asked() {
        let mut network = network();
        network.disturb(Links::ALL, LinkFaults { loss: 0.25, ..LinkFaults::default() }, LATER + Span::from_secs(1));
        let lost = (0..10_000).filter(|_| after(&mut network, A, B).is_none()).count();
        assert!((2_300..2_700).contains(&lost), "{lost}");
    }
}
