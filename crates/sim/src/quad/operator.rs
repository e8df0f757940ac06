//! A client that asks for other configurations all the time: other cores, another kind of quorums, without some site or with it again.
//! Where quorums follow what is measured, it also has sites leave and join, sets how many cores there are, and loads its own site with work.
//! In the end it takes the load off, and asks until all sites are members.

use super::lost::outlives;
use super::quorums;
use crate::{ClientEvent, ClientProgram, Config, Next};
use rhumb_core::{RegionId, Rng, SiteId, Span, Time};
use rhumb_quad::quorums::Policy;
use rhumb_quad::{Admin, Answer, Cores, Goal, INJECTED_LOAD_MAX_PERCENT, InjectedLoad, Leave, Request, Site};
use std::collections::BTreeSet;

/// The longest wait between two changes.
const PAUSE_MAX: Span = Span::from_millis(2_500);
/// The load on a site, in percent of its capacity: hardly any, as much as it can bear, as much as one can ask for.
const LOADS: [u64; 3] = [50, 300, INJECTED_LOAD_MAX_PERCENT];

/// Asks for a change, waits, asks for another.
pub(super) struct Operator {
    site: SiteId,
    config: Config,
    until: Time,
    /// The region that is lost for good, and when.
    loss: Option<(Time, RegionId)>,
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
        Operator { site, config, until, loss: None, rng, adapts: false, stage: Stage::Disturb }
    }

    /// The same where quorums follow what is measured, or do not.
    pub(super) fn with_adaptation(self, adapts: bool) -> Operator {
        Operator { adapts, ..self }
    }

    /// The same where a region is lost for good then.
    pub(super) fn with_loss(self, loss: Option<(Time, RegionId)>) -> Operator {
        Operator { loss, ..self }
    }

    /// What it asks for next.
    fn draw(&mut self, now: Time) -> Request {
        let kinds: u64 = if self.adapts { 8 } else { 4 };
        match self.rng.below(kinds) {
            4 => self.leave(),
            5 => Request::Admin(Admin::Join),
            6 => {
                Request::Admin(Admin::Cores(if self.rng.chance(0.3) { Cores::Auto } else { Cores::Fixed(self.rng.between(1, 5) as usize) }))
            }
            7 => {
                let percent = *self.rng.pick(&LOADS).expect("there are loads");
                let span = self.rng.chance(0.7).then(|| Span::from_micros(self.rng.below(2 * PAUSE_MAX.as_micros())));
                Request::Admin(Admin::InjectLoad(InjectedLoad { percent, span }))
            }
            _ => Request::Admin(Admin::Change(self.goal(now))),
        }
    }

    /// Some other site is to be no member any more.
    fn leave(&mut self) -> Request {
        let others: Vec<SiteId> = self.config.topology.sites().filter(|site| *site != self.site).collect();
        let sites = BTreeSet::from([*self.rng.pick(&others).expect("a cluster has several sites")]);
        Request::Admin(Admin::Leave(Leave { sites, lost: false }))
    }

    /// Any quorums of all sites that are left, or of all but one, unless it takes all who are left to go on without a region.
    fn goal(&mut self, now: Time) -> Goal {
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
        match (event, self.stage) {
            (ClientEvent::Answered(Answer::Done), Stage::Restore) => return Next::Done,
            (ClientEvent::Answered(Answer::Done), Stage::Relieve) => self.stage = Stage::Restore,
            (ClientEvent::Woken, Stage::Disturb) if now >= self.until => self.stage = Stage::Relieve,
            (ClientEvent::Woken, _) => {}
            _ => return Next::Wait(Span::from_micros(self.rng.below(PAUSE_MAX.as_micros()))),
        }
        Next::Request(match self.stage {
            Stage::Disturb => self.draw(now),
            Stage::Relieve => Request::Admin(Admin::InjectLoad(InjectedLoad { percent: 0, span: None })),
            Stage::Restore => Request::Admin(Admin::Change(self.goal(now))),
        })
    }
}
