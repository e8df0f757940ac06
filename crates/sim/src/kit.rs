//! What the scenarios of transactions have in common: the course of a run, and what is made of its end.
//!
//! ```text
//!   clients run ─── faults ───▶ healed, perhaps but for one link ───▶ clients end ─── quiet, at rest ───▶ final reads ───▶ judged
//! ```
//!
//! A scenario of its own decides the shape of the cluster, what may go wrong and who the clients are, all by the seed, and what is to hold
//! at the end beside what every history must satisfy.

use crate::checkers::{no_lost_write, no_phantom, progress, strict_serializability};
use crate::config::{Config, Costs};
use crate::error::SimError;
use crate::history::TxnNo;
use crate::interactive::client::{Client, Shared};
use crate::interactive::workload::{Reads, Workload};
use crate::observers::bounded_state;
use crate::plan::{FaultPlan, FaultRates};
use crate::recorded::Recorded;
use crate::runner::Report;
use crate::world::World;
use rhumb_commit::interactive::Interactive;
use rhumb_core::actor::Actor;
use rhumb_core::{Inspect, RegionId, Rng, SiteId, Span, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// When what happens in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    /// Everything heals.
    pub(crate) faults_end: Time,
    /// Clients begin nothing any more; a link that has stayed cut heals, too.
    pub(crate) clients_end: Time,
    /// All is quiet by then.
    pub(crate) quiet_end: Time,
    /// The final reads have ended by then.
    pub(crate) run_end: Time,
    /// A link may stay cut after all else has healed, by this seed.
    pub(crate) link_cut: Option<u64>,
}

impl Course {
    /// Runs the clients of `world` to their end, then those that `reader` adds, who read everything; returns what these have read. A link
    /// may stay cut only where each region reaches a majority of `voters` without it.
    pub(crate) fn run<A: Actor + Inspect>(
        &self,
        world: &mut World<A>,
        voters: &[RegionId],
        shared: &RefCell<impl Recorded>,
        reader: impl FnOnce(&mut World<A>),
    ) -> Result<Vec<TxnNo>, SimError> {
        world.run_until(self.faults_end)?;
        match self.link_cut {
            Some(seed) => world.heal_but_one_link(seed, voters, self.clients_end),
            None => world.heal(),
        }
        world.run_until(self.quiet_end)?;
        bounded_state::come_to_rest(world)?;
        read_all(world, shared, reader, self.run_end)
    }
}

/// Has the clients that `reader` adds read everything; returns what they have read.
pub(crate) fn read_all<A: Actor>(
    world: &mut World<A>,
    shared: &RefCell<impl Recorded>,
    reader: impl FnOnce(&mut World<A>),
    until: Time,
) -> Result<Vec<TxnNo>, SimError> {
    let before = shared.borrow().history().txns().len();
    reader(world);
    world.run_clients(until)?;
    let after = shared.borrow().history().txns().len();
    Ok((before..after).map(|no| TxnNo(no as u32)).collect())
}

/// The report of a run that came to this end; `judge` says whether it is as it must be, given the final reads.
pub(crate) fn report<A: Actor>(
    world: &World<A>,
    shared: &impl Recorded,
    end: Result<Vec<TxnNo>, SimError>,
    judge: impl FnOnce(&[TxnNo]) -> Result<(), String>,
) -> Report {
    let mut report = Report::of(world, end.as_ref().map(|_| ()).map_err(Clone::clone));
    report.count(shared.history());
    if let Ok(finals) = end {
        report.violation = shared.wrong().cloned().or_else(|| judge(&finals).err());
    }
    if world.config().tracing {
        report.trace.push_str(&shared.history().to_string());
    }
    report
}

/// When the clients of a region end: as it is lost, if `plan` has that, or else at `clients_end`.
pub(crate) fn ends(plan: &FaultPlan, clients_end: Time, region: RegionId) -> Time {
    plan.losses().find(|(_, lost)| *lost == region).map_or(clients_end, |(at, _)| at)
}

/// A cluster whose steps take time, and whose disks take `sync` for a sync.
pub(crate) fn realistic(config: Config, sync: Span, tracing: bool) -> Config {
    let mut config = Config { tracing, costs: Costs::REALISTIC, ..config };
    config.local.sync = sync;
    config
}

/// Checks that at the end nothing is left open at any site, by what `left` counts there.
pub(crate) fn nothing_left<A: Actor>(world: &World<A>, what: &str, left: impl Fn(SiteId, &A) -> usize) -> Result<(), String> {
    for site in world.sites_left() {
        match world.actor(site).map(|actor| left(site, actor)) {
            Some(0) => {}
            Some(count) => return Err(format!("{site} has {count} {what} at the end")),
            None => return Err(format!("{site} is down at the end")),
        }
    }
    Ok(())
}

/// In [`interactive`] everything heals then.
const FAULTS_END: Time = Time::from_micros(10_000_000);
const COURSE: Course = Course {
    faults_end: FAULTS_END,
    clients_end: Time::from_micros(20_000_000),
    quiet_end: Time::from_micros(26_000_000),
    run_end: Time::from_micros(40_000_000),
    link_cut: None,
};
const GRACE: Span = Span::from_secs(4);

/// Tries a protocol for interactive transactions: a client at each site of `world` locks, reads and writes a few hot keys while things go
/// wrong at these rates, and what they saw has to be strictly serializable, with no acknowledged write lost.
pub fn interactive<A: Interactive + Inspect + 'static>(mut world: World<A>, rates: &FaultRates, seed: u64) -> Report {
    let mut rng = Rng::seeded(seed);
    world.observe(bounded_state::observer());
    let plan = FaultPlan::draw(rates, world.topology(), FAULTS_END.since(Time::ZERO), &mut rng).without_loss();
    world.follow(&plan);
    let shared = Rc::new(RefCell::new(Shared::default()));
    let sites: Vec<SiteId> = world.topology().sites().collect();
    for (number, site) in (0..).zip(&sites) {
        let workload = Workload::new(rng.fork(), Reads::Locking);
        world.add_client(*site, Client::new(number, site.region, COURSE.clients_end, workload, Rc::clone(&shared)));
    }
    let end = COURSE.run(&mut world, &[], &shared, |world| {
        world.add_client(sites[0], Client::final_reader(sites.len() as u32, sites[0].region, false, Rc::clone(&shared)));
    });
    let shared = shared.borrow();
    report(&world, &*shared, end, |finals| {
        strict_serializability::check(&shared.history)?;
        no_phantom::check(&shared.history)?;
        no_lost_write::check(&shared.history, finals)?;
        let demand = progress::Demand { committed_min: 5, committed_percent_min: 5 };
        Ok(progress::check(&shared.history, FAULTS_END, GRACE, demand)?)
    })
}
