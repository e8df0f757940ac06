//! The scenario of QuAD: clients at every site run random transactions on a few hot keys while everything goes wrong that a
//! [`FaultPlan`] can draw; then the network heals and progress is demanded; then the checkers judge.
//!
//! ```text
//!   0 s ──────────── faults ──────────── 14 s ─── healed, clients go on ─── 32 s ─── quiet ─── 42 s: final reads, checks
//! ```
//!
//! The seed also decides the shape: three regions or five, one full copy in each or two, how quorums are built and how many
//! cores there are, the loads that they are built from, a storm of all kinds of faults or many short crashes, and whether the
//! configuration stays as it is, or operators change it all the time (`operator.rs`).

mod configurations;
mod holders;
mod lost;
mod operator;

use crate::checkers::{bounded_clocks, no_lost_write, no_phantom, progress, strict_serializability};
use crate::config::{draw_regions, draw_sync};
use crate::history::{History, TxnNo};
use crate::replicated_commit::client::{Client, Shared};
use crate::replicated_commit::workload::{Reads, Workload};
use crate::{Config, FaultPlan, FaultRates, Report, Scenario, SimError, World};
pub use lost::CoresLost;
use operator::Operator;
use rhumb_commit::quad::quorums::{CostWeights, Measures, Policy, Quorums, ScoreWeights, Settings};
use rhumb_commit::quad::{self as protocol, Site};
use rhumb_core::{Rng, SiteId, Span, Time};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

const FAULTS_END: Time = Time::from_micros(14_000_000);
/// Operators let the configuration be from then on, once all sites are members.
const OPERATORS_END: Time = Time::from_micros(16_000_000);
/// Late enough for the commits that are asked for where a site is taken in as late as operators go on: its clients are refused before.
const CLIENTS_END: Time = Time::from_micros(32_000_000);
const QUIET_END: Time = Time::from_micros(42_000_000);
const RUN_END: Time = Time::from_micros(60_000_000);
/// After the heal, this long until commits must go through: crashed sites recover, those in doubt ask.
const GRACE: Span = Span::from_secs(5);

/// Random transactions under faults.
#[derive(Clone, Debug, Default)]
pub struct Quad {
    /// A bug planted in the protocol.
    #[cfg(feature = "planted")]
    pub planted: Option<protocol::planted::Planted>,
    /// A bug planted in the driver.
    #[cfg(feature = "planted")]
    pub driver: Option<crate::Planted>,
    /// Nothing goes wrong.
    pub calm: bool,
}

/// What a seed decides of the cluster.
struct Shape {
    regions: usize,
    /// Full copies in each region.
    copies: u16,
    policy: Policy,
    cores: usize,
    flaky: bool,
    /// How long a sync takes.
    sync: Span,
    /// Operators who change the configuration.
    operators: usize,
}

impl Shape {
    fn draw(rng: &mut Rng) -> Shape {
        let other = *rng.pick(&Policy::ALL).expect("there are policies");
        Shape {
            regions: draw_regions(rng),
            copies: if rng.chance(0.7) { 1 } else { 2 },
            policy: if rng.chance(0.6) { Policy::Quad } else { other },
            cores: rng.between(1, 5) as usize,
            flaky: rng.chance(0.3),
            sync: draw_sync(rng),
            operators: *rng.pick(&[0, 1, 1, 2]).expect("some of them"),
        }
    }
}

/// Some quorums of `sites`, whose loads are drawn.
pub fn quorums(config: &Config, sites: Vec<SiteId>, policy: Policy, cores: usize, rng: &mut Rng) -> Quorums {
    let row = |from: &SiteId| sites.iter().map(|to| config.rtt.rtt(from.region, to.region).as_millis_f64()).collect();
    let rtt_ms: Vec<Vec<f64>> = sites.iter().map(row).collect();
    let load = sites.iter().map(|_| Some(rng.unit())).collect();
    let measures = Measures::new(sites, load, &rtt_ms).expect("drawn so that they are sound");
    let settings = Settings { policy, cores, score: ScoreWeights::default(), cost: CostWeights::default() };
    settings.quorums(&measures, &BTreeSet::new())
}

impl Scenario for Quad {
    fn name(&self) -> &'static str {
        "quad"
    }

    fn options(&self) -> String {
        if self.calm { " --calm".into() } else { String::new() }
    }

    fn run(&self, seed: u64, tracing: bool) -> Report {
        let mut rng = Rng::seeded(seed);
        let shape = Shape::draw(&mut rng);
        let mut world = self.world(&shape, seed, tracing, &mut rng);
        let rates = match shape.flaky {
            _ if self.calm => FaultRates::none(),
            true => FaultRates::flaky(),
            false => FaultRates::stormy(),
        };
        let plan = FaultPlan::draw(&rates, world.topology(), FAULTS_END.since(Time::ZERO), &mut rng);
        world.follow(&plan);
        let shared = Rc::new(RefCell::new(Shared::default()));
        let mut clients = 0;
        for site in world.topology().sites().collect::<Vec<_>>() {
            let workload = Workload::new(rng.fork(), Reads::Locking);
            world.add_client(site, Client::new(clients, site.region, CLIENTS_END, workload, Rc::clone(&shared)));
            clients += 1;
        }
        for _ in 0..shape.operators {
            let operator = Operator::new(world.config().clone(), OPERATORS_END, rng.fork());
            let site = *rng.pick(&world.topology().sites().collect::<Vec<_>>()).expect("a cluster has sites");
            world.add_client(site, operator);
        }
        let end = drive(&mut world, &shared, clients);
        let shared = shared.borrow();
        let mut report = Report::of(&world, end.as_ref().map(|_| ()).map_err(Clone::clone));
        report.count(&shared.history);
        if let Ok(finals) = end {
            report.violation = shared.garbled.clone().or_else(|| judge(&world, &shared.history, &finals).err());
        }
        if tracing {
            report.trace.push_str(&shared.history.to_string());
        }
        report
    }
}

impl Quad {
    /// The same with faults, or without.
    pub fn with_calm(mut self, calm: bool) -> Quad {
        self.calm = calm;
        self
    }

    fn world(&self, shape: &Shape, seed: u64, tracing: bool, rng: &mut Rng) -> World<Site> {
        let mut config = Config { tracing, ..Config::of_regions(shape.regions, shape.copies) };
        config.local.sync = shape.sync;
        let quorums = quorums(&config, config.topology.sites().collect(), shape.policy, shape.cores, rng);
        #[cfg(feature = "planted")]
        let planted = self.planted;
        let factory = move |site, _life| {
            let actor = Site::new(site, quorums.clone(), protocol::Config::default());
            #[cfg(feature = "planted")]
            let actor = actor.with_planted(planted);
            actor
        };
        #[cfg_attr(not(feature = "planted"), allow(unused_mut))]
        let mut world = World::new(config, seed, factory);
        #[cfg(feature = "planted")]
        if let Some(driver) = self.driver {
            world.plant(driver);
        }
        world.observe(configurations::observer());
        world.observe(holders::observer());
        world
    }
}

/// Faults, heal, progress, quiet, final reads; returns the final reads.
fn drive(world: &mut World<Site>, shared: &Rc<RefCell<Shared>>, clients: u32) -> Result<Vec<TxnNo>, SimError> {
    world.run_until(FAULTS_END)?;
    world.heal();
    world.run_until(QUIET_END)?;
    let before = shared.borrow().history.txns().len();
    let members = configurations::latest(world).members();
    let site = *members.first().expect("a configuration has members");
    world.add_client(site, Client::final_reader(clients, site.region, Rc::clone(shared)));
    world.run_clients(RUN_END)?;
    let after = shared.borrow().history.txns().len();
    Ok((before..after).map(|no| TxnNo(no as u32)).collect())
}

fn judge(world: &World<Site>, history: &History, finals: &[TxnNo]) -> Result<(), String> {
    let text = |violation: crate::checkers::Violation| violation.to_string();
    strict_serializability::check(history).map_err(text)?;
    no_phantom::check(history).map_err(text)?;
    bounded_clocks::check(history).map_err(text)?;
    no_lost_write::check(history, finals).map_err(text)?;
    let demand = progress::Demand { committed_min: 20, committed_percent_min: 10 };
    progress::check(history, FAULTS_END, GRACE, demand).map_err(text)?;
    for site in world.topology().sites() {
        let unresolved = world.actor(site).map(Site::unresolved);
        if unresolved != Some(0) {
            return Err(format!("{site} has {unresolved:?} unresolved transactions at the end"));
        }
    }
    configurations::at_rest(world)
}
