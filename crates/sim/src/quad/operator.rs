//! A client that asks for other configurations all the time: other cores, another kind of quorums, without some site or with it again. In
//! the end it asks until all sites are members.

use super::lost::outlives;
use super::quorums;
use crate::{ClientEvent, ClientProgram, Config, Next};
use rhumb_commit::quad::quorums::Policy;
use rhumb_commit::quad::{Goal, Request, Site};
use rhumb_commit::replicated_commit::Answer;
use rhumb_core::{RegionId, Rng, SiteId, Span, Time};

/// The longest wait between two changes.
const PAUSE_MAX: Span = Span::from_millis(2_500);

/// Asks for a change, waits, asks for another.
pub(super) struct Operator {
    config: Config,
    until: Time,
    /// The region that is lost for good, and when.
    loss: Option<(Time, RegionId)>,
    rng: Rng,
}

impl Operator {
    pub(super) fn new(config: Config, until: Time, loss: Option<(Time, RegionId)>, rng: Rng) -> Operator {
        Operator { config, until, loss, rng }
    }

    /// Any quorums of all sites that are left, or of all but one, unless it takes all who are left to go on without a region.
    fn draw(&mut self, now: Time) -> Goal {
        let rng = &mut self.rng;
        let mut sites: Vec<SiteId> = self.config.topology.sites().collect();
        sites.retain(|site| self.loss.is_none_or(|(at, region)| now < at || site.region != region));
        if now < self.until && self.loss.is_none() && rng.chance(0.3) {
            sites.remove(rng.below(sites.len() as u64) as usize);
        }
        let mut drawn = || {
            let policy = if rng.chance(0.75) { Policy::Quad } else { *rng.pick(&Policy::ALL).expect("there are policies") };
            let cores = rng.between(1, 5) as usize;
            quorums(&self.config, sites.clone(), policy, cores, rng)
        };
        let mut quorums = drawn();
        while !outlives(&quorums, self.loss.map(|(_, region)| region)) {
            quorums = drawn();
        }
        Goal::of(quorums, "an operator's wish")
    }
}

impl ClientProgram<Site> for Operator {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        match event {
            ClientEvent::Answered(Answer::Done) if now >= self.until => Next::Done,
            ClientEvent::Woken => Next::Request(Request::Change(self.draw(now))),
            _ => Next::Wait(Span::from_micros(self.rng.below(PAUSE_MAX.as_micros()))),
        }
    }
}
