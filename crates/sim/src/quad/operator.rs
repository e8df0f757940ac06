//! A client that asks for other configurations all the time: other cores, another kind of quorums, without some site or with it again.
//! Where quorums follow what is measured, it also has sites leave and join, sets how many cores there are, and loads its own site with work.
//! In the end it takes the load off, and asks until all sites are members.

use super::quorums;
use crate::{ClientEvent, ClientProgram, Config, Next};
use rhumb_commit::quad::quorums::Policy;
use rhumb_commit::quad::{BURDEN_MAX_PERCENT, Burden, Cores, Goal, Leave, Request, Site};
use rhumb_commit::replicated_commit::Answer;
use rhumb_core::{Rng, SiteId, Span, Time};
use std::collections::BTreeSet;

/// The longest wait between two changes.
const PAUSE_MAX: Span = Span::from_millis(2_500);
/// The load on a site, in percent of its capacity: hardly any, as much as it can bear, as much as one can ask for.
const LOADS: [u64; 3] = [50, 300, BURDEN_MAX_PERCENT];

/// Asks for a change, waits, asks for another.
pub(super) struct Operator {
    site: SiteId,
    config: Config,
    until: Time,
    rng: Rng,
    /// Quorums follow what is measured.
    adapts: bool,
    stage: Stage,
}

/// What its last request was for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Something else than before.
    Disturb,
    /// No load on its own site.
    Relieve,
    /// All sites as members.
    Restore,
}

impl Operator {
    /// One at `site`, until `until`.
    pub(super) fn new(site: SiteId, config: Config, until: Time, rng: Rng) -> Operator {
        Operator { site, config, until, rng, adapts: false, stage: Stage::Disturb }
    }

    /// The same where quorums follow what is measured, or do not.
    pub(super) fn with_adaptation(self, adapts: bool) -> Operator {
        Operator { adapts, ..self }
    }

    /// What it asks for next.
    fn draw(&mut self) -> Request {
        let kinds: u64 = if self.adapts { 8 } else { 4 };
        match self.rng.below(kinds) {
            4 => self.leave(),
            5 => Request::Join,
            6 => Request::Cores(if self.rng.chance(0.3) { Cores::Auto } else { Cores::Fixed(self.rng.between(1, 5) as usize) }),
            7 => {
                let percent = *self.rng.pick(&LOADS).expect("there are loads");
                let span = self.rng.chance(0.7).then(|| Span::from_micros(self.rng.below(2 * PAUSE_MAX.as_micros())));
                Request::Burden(Burden { percent, span })
            }
            _ => Request::Change(self.goal(false)),
        }
    }

    /// Some other site is to be no member any more.
    fn leave(&mut self) -> Request {
        let others: Vec<SiteId> = self.config.topology.sites().filter(|site| *site != self.site).collect();
        let sites = BTreeSet::from([*self.rng.pick(&others).expect("a cluster has several sites")]);
        Request::Leave(Leave { sites, lost: false })
    }

    /// Any quorums of all sites, or of all but one.
    fn goal(&mut self, is_last: bool) -> Goal {
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
        match (event, self.stage) {
            (ClientEvent::Answered(Answer::Done), Stage::Restore) => return Next::Done,
            (ClientEvent::Answered(Answer::Done), Stage::Relieve) => self.stage = Stage::Restore,
            (ClientEvent::Woken, Stage::Disturb) if now >= self.until => self.stage = Stage::Relieve,
            (ClientEvent::Woken, _) => {}
            _ => return Next::Wait(Span::from_micros(self.rng.below(PAUSE_MAX.as_micros()))),
        }
        Next::Request(match self.stage {
            Stage::Disturb => self.draw(),
            Stage::Relieve => Request::Burden(Burden { percent: 0, span: None }),
            Stage::Restore => Request::Change(self.goal(true)),
        })
    }
}
