//! A client that asks for other configurations all the time: other cores, another kind of quorums, without some site or with it again. In
//! the end it asks until all sites are members.

use super::quorums;
use crate::{ClientEvent, ClientProgram, Config, Next};
use rhumb_commit::quad::quorums::Policy;
use rhumb_commit::quad::{Goal, Request, Site};
use rhumb_commit::replicated_commit::Answer;
use rhumb_core::{Rng, SiteId, Span, Time};

/// The longest wait between two changes.
const PAUSE_MAX: Span = Span::from_millis(2_500);

/// Asks for a change, waits, asks for another.
pub(super) struct Operator {
    config: Config,
    until: Time,
    rng: Rng,
}

impl Operator {
    pub(super) fn new(config: Config, until: Time, rng: Rng) -> Operator {
        Operator { config, until, rng }
    }

    /// Any quorums of all sites, or of all but one.
    fn draw(&mut self, is_last: bool) -> Goal {
        let rng = &mut self.rng;
        let mut sites: Vec<SiteId> = self.config.topology.sites().collect();
        if !is_last && rng.chance(0.3) {
            sites.remove(rng.below(sites.len() as u64) as usize);
        }
        let policy = if rng.chance(0.75) { Policy::Quad } else { *rng.pick(&Policy::ALL).expect("there are policies") };
        let cores = rng.between(1, 5) as usize;
        Goal::of(quorums(&self.config, sites, policy, cores, rng), "an operator's wish")
    }
}

impl ClientProgram<Site> for Operator {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        match event {
            ClientEvent::Answered(Answer::Done) if now >= self.until => Next::Done,
            ClientEvent::Woken => Next::Request(Request::Change(self.draw(now >= self.until))),
            _ => Next::Wait(Span::from_micros(self.rng.below(PAUSE_MAX.as_micros()))),
        }
    }
}
