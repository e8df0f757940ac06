//! Cores lost for good, as many as may be: all but one, while no slave is. An operator declares them lost, and the rest goes on with all
//! that was acknowledged.
//!
//! ```text
//!   0 s ── clients ── 3 to 7 s: cores crash for good ── 2 s later: declared lost ── 38 s ── quiet ── 44 s: final reads, checks
//! ```
//!
//! Links lose, double and delay messages for the first 12 seconds. The seed decides who is a core, when they crash, and whether one of them had
//! been cut off before. One of those that are left may restart after all that, confirmed by no majority.

use super::{configurations, holders, quorums};
use crate::checkers::{no_lost_write, no_phantom, progress, strict_serializability};
use crate::history::TxnNo;
use crate::interactive::client::{Client, Shared};
use crate::interactive::workload::{Reads, Workload};
use crate::kit;
use crate::{ClientEvent, ClientProgram, Config, Fault, LinkFaults, Links, Next, Place, Report, Scenario, World};
use rhumb_core::{RegionId, Rng, Rules, SiteId, Span, Time};
use rhumb_quad::quorums::{Policy, Quorums};
use rhumb_quad::{self as protocol, Admin, Answer, Goal, Request, Site};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

const DECLARED_AFTER: Span = Span::from_secs(2);
/// The clients of the sites that are left begin a transaction or two in a second.
const CLIENTS_END: Time = Time::from_micros(38_000_000);
const QUIET_END: Time = Time::from_micros(44_000_000);
const RUN_END: Time = Time::from_micros(58_000_000);
/// Links are sound from then on.
const BACKGROUND_END: Span = Span::from_secs(12);
/// After that, this long until transactions must go through.
const GRACE: Span = Span::from_secs(2);
/// An operator who is refused asks again after this long.
const AGAIN: Span = Span::from_millis(700);

/// All cores but one are lost.
#[derive(Clone, Debug, Default)]
pub struct CoresLost {
    /// The rules that the protocol goes by.
    pub rules: Rules<protocol::planted::Planted>,
}

/// Declares sites lost, until it is heard.
pub(super) struct Undertaker {
    /// When first.
    pub(super) at: Time,
    /// The configuration without them.
    pub(super) goal: Goal,
}

/// True if no write quorum lies within the region: what is committed is known to others, if that is lost.
pub(super) fn outlives(quorums: &Quorums, doomed: Option<RegionId>) -> bool {
    let lost: BTreeSet<SiteId> = quorums.members().into_iter().filter(|site| Some(site.region) == doomed).collect();
    !lost.iter().any(|at| quorums.write(*at, &lost, 0).is_some())
}

/// The configuration of `left` that says of `lost` that they are.
pub(super) fn without(config: &Config, lost: BTreeSet<SiteId>, left: &[SiteId], rng: &mut Rng) -> Goal {
    let kappa = rng.between(1, 3) as usize;
    Goal { lost, ..Goal::of(quorums(config, left.to_vec(), Policy::Quad, kappa, rng), "sites are lost") }
}

impl ClientProgram<Site> for Undertaker {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        match event {
            ClientEvent::Started => Next::Wait(self.at.since(now)),
            ClientEvent::Woken => Next::Request(Request::Admin(Admin::Change(self.goal.clone()))),
            ClientEvent::Answered(Answer::Done) => Next::Done,
            // An earlier attempt, of which this one learnt too late.
            ClientEvent::Answered(Answer::Failed(error)) if error.to_string().contains("was no member") => Next::Done,
            _ => Next::Wait(AGAIN),
        }
    }
}

impl Scenario for CoresLost {
    fn name(&self) -> &'static str {
        "quad-cores-lost"
    }

    fn run(&self, seed: u64, tracing: bool) -> Report {
        let mut rng = Rng::seeded(seed);
        let config = Config { tracing, ..Config::of_paper(5, 1) };
        let sites: Vec<SiteId> = config.topology.sites().collect();
        let cores = rng.between(2, 4) as usize;
        let first = quorums(&config, sites.clone(), Policy::Quad, cores, &mut rng);
        let mut lost = first.cores().to_vec();
        rng.shuffle(&mut lost);
        let survivor = lost.remove(0);
        let lost: BTreeSet<SiteId> = lost.into_iter().collect();
        let left: Vec<SiteId> = sites.iter().copied().filter(|site| !lost.contains(site)).collect();
        let goal = without(&config, lost.clone(), &left, &mut rng);
        let mut world = self.world(config, first, seed);
        let at = Time::from_micros(rng.between(3_000_000, 7_000_000));
        let background = LinkFaults { loss: 0.05, duplicate: 0.1, jitter: Span::from_millis(30), ..LinkFaults::default() };
        world.strike_at(Time::ZERO, Fault::Disturb { links: Links::ALL, faults: background, span: Some(BACKGROUND_END) });
        for site in &lost {
            if rng.chance(0.3) {
                let before = Span::from_micros(rng.below(2_000_000));
                let links = Links::new(Place::Site(*site), Place::Everywhere);
                world.strike_at(Time::from_micros(at.as_micros() - before.as_micros()), Fault::Cut { links, span: None });
            }
            world.strike_at(at, Fault::Crash { place: Place::Site(*site), down: None });
        }
        if rng.chance(0.5) {
            // The others are no majority of all sites that there ever were.
            let place = Place::Site(*rng.pick(&left).expect("somebody is left"));
            world.strike_at(Time::ZERO + BACKGROUND_END, Fault::Crash { place, down: Some(Span::from_millis(300)) });
        }
        let shared = Rc::new(RefCell::new(Shared::default()));
        for (number, site) in sites.iter().enumerate() {
            let until = if lost.contains(site) { at } else { CLIENTS_END };
            let workload = Workload::new(rng.fork(), Reads::Locking);
            world.add_client(*site, Client::new(number as u32, site.region, until, workload, Rc::clone(&shared)));
        }
        let declares = *rng.pick(&left).expect("somebody is left");
        world.add_client(declares, Undertaker { at: at + DECLARED_AFTER, goal });
        let readers = sites.len() as u32;
        let end = world.run_until(QUIET_END).and_then(|()| {
            let reader = Client::final_reader(readers, survivor.region, false, Rc::clone(&shared));
            kit::read_all(&mut world, &shared, |world| world.add_client(survivor, reader), RUN_END)
        });
        let shared = shared.borrow();
        kit::report(&world, &*shared, end, |finals| judge(&world, &shared, finals, &left))
    }
}

impl CoresLost {
    fn world(&self, config: Config, first: Quorums, seed: u64) -> World<Site> {
        let rules = self.rules;
        let factory = move |site, _incarnation| Site::new(site, first.clone(), protocol::Config::default()).with_rules(rules);
        let mut world = World::new(config, seed, factory);
        world.observe(configurations::observer());
        world.observe(holders::observer());
        world
    }
}

fn judge(world: &World<Site>, shared: &Shared, finals: &[TxnNo], left: &[SiteId]) -> Result<(), String> {
    let history = &shared.history;
    strict_serializability::check(history)?;
    no_phantom::check(history)?;
    no_lost_write::check(history, finals)?;
    let demand = progress::Demand { committed_min: 10, committed_percent_min: 10 };
    progress::check(history, Time::ZERO + BACKGROUND_END, GRACE, demand)?;
    for site in left {
        let unresolved = world.actor(*site).map(Site::unresolved);
        if unresolved != Some(0) {
            return Err(format!("{site} has {unresolved:?} unresolved transactions at the end"));
        }
    }
    Ok(())
}
