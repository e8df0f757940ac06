//! The scenario of QuAD: clients at every site run random transactions on a few hot keys while everything goes wrong that a
//! [`FaultPlan`] can draw; then the network heals and progress is demanded; then the checkers judge.
//!
//! ```text
//!   0 s ──────────── faults ──────────── 14 s ─── healed, clients go on ─── 32 s ─── quiet ─── 42 s: final reads, checks
//! ```
//!
//! The seed also decides the shape: three regions or five, one full copy in each or two, how quorums are built and how many
//! cores there are, the loads that they are built from, a storm of all kinds of faults or many short crashes, whether quorums
//! follow what sites measure, and whether operators change the configuration all the time (`operator.rs`). Where only operators change
//! it, a region may be lost for good, which one declares some seconds later. Where only what is measured changes it, one link may stay cut
//! until 32 s.

mod configurations;
mod holders;
mod lost;
mod operator;

use crate::checkers::{bounded_clocks, no_lost_write, no_phantom, progress, strict_serializability};
use crate::config::{draw_regions, draw_sync};
use crate::history::{History, TxnNo};
use crate::interactive::client::{Client, Shared};
use crate::interactive::workload::{self, Reads, Workload};
use crate::kit::{self, Course};
use crate::observers::bounded_state;
use crate::{Config, FaultPlan, FaultRates, Report, Scenario, SimError, World};
pub use lost::CoresLost;
use lost::Undertaker;
use operator::Operator;
use rhumb_core::{RegionId, Rng, Rules, SiteId, Span, Time};
use rhumb_quad::quorums::{CostWeights, Measures, Policy, Quorums, ScoreWeights, Settings};
use rhumb_quad::{self as protocol, Adaptation, Availability, Goal, Site};
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
/// The configuration is at rest by then; it is looked at so often.
const REST_END: Time = Time::from_micros(90_000_000);
const REST_STEP: Span = Span::from_secs(1);
/// So long after a region was lost an operator says so.
const DECLARED_AFTER: Span = Span::from_secs(2);
/// After the heal, this long until commits must go through: crashed sites recover, those in doubt ask.
const GRACE: Span = Span::from_secs(5);

/// In so many of the runs quorums follow what is measured.
const ADAPTING: f64 = 0.6;

/// Random transactions under faults.
#[derive(Clone, Debug, Default)]
pub struct Quad {
    /// The rules that the protocol goes by.
    pub rules: Rules<protocol::planted::Planted>,
    /// The rules that the driver goes by.
    pub driver: Rules<crate::Planted>,
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
    /// Quorums follow what sites measure in each period.
    adaptation: Option<Adaptation>,
    /// Transactions are large now and then.
    is_bulky: bool,
}

impl Shape {
    fn draw(rng: &mut Rng, seed: u64) -> Shape {
        let other = *rng.pick(&Policy::ALL).expect("there are policies");
        let shape = Shape {
            regions: draw_regions(rng),
            copies: if rng.chance(0.7) { 1 } else { 2 },
            policy: if rng.chance(0.6) { Policy::Quad } else { other },
            cores: rng.between(1, 5) as usize,
            flaky: rng.chance(0.3),
            sync: draw_sync(rng),
            operators: *rng.pick(&[0, 1, 1, 2]).expect("some of them"),
            is_bulky: workload::is_bulky(seed),
            adaptation: None,
        };
        let adaptation = rng.chance(ADAPTING).then(|| shape.draw_adaptation(rng));
        Shape { adaptation, ..shape }
    }

    /// True if enough sites are heard by all for the cores to be among them, whatever link is cut, and quorums follow that alone: operators
    /// take sites out, and choose cores that not all hear.
    fn bears_a_cut_link(&self, calm: bool) -> bool {
        let follows = self.adaptation.is_some() && self.policy == Policy::Quad;
        !calm && follows && self.operators == 0 && self.copies == 1 && self.cores + 2 <= self.regions
    }

    /// Periods so short and capacities so low that a few clients make a difference within a run.
    fn draw_adaptation(&self, rng: &mut Rng) -> Adaptation {
        Adaptation {
            period: Span::from_millis(*rng.pick(&[1_000, 2_000, 4_000]).expect("three of them")),
            capacity: rng.between(1, 4),
            settings: settings(self.policy, self.cores),
            auto: rng.chance(0.3),
            availability: Availability::default(),
        }
    }
}

fn settings(policy: Policy, cores: usize) -> Settings {
    Settings { policy, cores, score: ScoreWeights::default(), cost: CostWeights::default() }
}

/// Some quorums of `sites`, whose loads are drawn.
pub fn quorums(config: &Config, sites: Vec<SiteId>, policy: Policy, cores: usize, rng: &mut Rng) -> Quorums {
    let row = |from: &SiteId| sites.iter().map(|to| config.rtt.rtt(from.region, to.region).as_millis_f64()).collect();
    let rtt_ms: Vec<Vec<f64>> = sites.iter().map(row).collect();
    let load = sites.iter().map(|_| Some(rng.unit())).collect();
    let measures = Measures::new(sites, load, &rtt_ms).expect("drawn so that they are sound");
    settings(policy, cores).quorums(&measures, &BTreeSet::new())
}

impl Scenario for Quad {
    fn name(&self) -> &'static str {
        "quad"
    }

    fn is_calm(&self) -> bool {
        self.calm
    }

    fn run(&self, seed: u64, tracing: bool) -> Report {
        let mut rng = Rng::seeded(seed);
        let shape = Shape::draw(&mut rng, seed);
        let mut world = self.world(&shape, seed, tracing, &mut rng);
        let rates = match shape.flaky {
            _ if self.calm => FaultRates::none(),
            true => FaultRates::flaky().with_losses(),
            false => FaultRates::stormy().with_losses(),
        };
        let plan = FaultPlan::draw(&rates, world.topology(), FAULTS_END.since(Time::ZERO), &mut rng);
        let first = configurations::latest(&world).quorums;
        // Quorums that follow what is measured may come to lie in one region, and with it all that is committed.
        let can_lose = shape.regions >= 3 && shape.adaptation.is_none() && lost::outlives(&first, plan.loss().map(|(_, region)| region));
        let plan = if can_lose { plan } else { plan.without_loss() };
        world.follow(&plan);
        let shared = Rc::new(RefCell::new(Shared::default()));
        let mut clients = 0;
        for site in world.topology().sites().collect::<Vec<_>>() {
            let workload = Workload::new(rng.fork(), Reads::Locking).with_bulk(shape.is_bulky);
            world.add_client(
                site,
                Client::new(clients, site.region, kit::ends(&plan, CLIENTS_END, site.region), workload, Rc::clone(&shared)),
            );
            clients += 1;
        }
        let is_lost = |site: &SiteId| plan.loss().is_some_and(|(_, lost)| lost == site.region);
        let (lost, left): (Vec<SiteId>, Vec<SiteId>) = world.topology().sites().partition(is_lost);
        for _ in 0..shape.operators {
            let site = *rng.pick(&left).expect("a cluster has sites");
            let operator = Operator::new(site, world.config().clone(), OPERATORS_END, rng.fork());
            let operator = operator.with_adaptation(shape.adaptation.is_some()).with_loss(plan.loss());
            world.add_client(site, operator);
        }
        let goal = lost::without(world.config(), lost.into_iter().collect(), &left, &mut rng);
        let loss = plan.loss().map(|(at, region)| (at, region, goal));
        let reader = |site: SiteId| Client::final_reader(clients, site.region, shape.is_bulky, Rc::clone(&shared));
        let link_cut = shape.bears_a_cut_link(self.calm).then_some(seed);
        let end = drive(&mut world, &shared, reader, loss, link_cut);
        let shared = shared.borrow();
        kit::report(&world, &*shared, end, |finals| judge(&world, &shared.history, finals, &plan))
    }
}

impl Quad {
    /// The same with faults, or without.
    pub fn with_calm(mut self, calm: bool) -> Quad {
        self.calm = calm;
        self
    }

    fn world(&self, shape: &Shape, seed: u64, tracing: bool, rng: &mut Rng) -> World<Site> {
        let config = kit::realistic(Config::of_regions(shape.regions, shape.copies), shape.sync, tracing);
        let quorums = quorums(&config, config.topology.sites().collect(), shape.policy, shape.cores, rng);
        let rules = self.rules;
        let protocol = protocol::Config { adaptation: shape.adaptation.clone(), ..protocol::Config::default() };
        let factory = move |site, _incarnation| Site::new(site, quorums.clone(), protocol.clone()).with_rules(rules);
        let mut world = World::new(config, seed, factory);
        world.set_rules(self.driver);
        world.observe(configurations::observer());
        world.observe(holders::observer());
        world.compare_agreed();
        world.observe(bounded_state::observer());
        world
    }
}

/// Faults, heal, progress, quiet, final reads; returns the final reads. A region that is lost then is declared so by `loss`. A link may stay
/// cut.
fn drive(
    world: &mut World<Site>,
    shared: &Rc<RefCell<Shared>>,
    reader: impl FnOnce(SiteId) -> Client,
    loss: Option<(Time, RegionId, Goal)>,
    link_cut: Option<u64>,
) -> Result<Vec<TxnNo>, SimError> {
    if let Some((at, region, goal)) = loss {
        world.run_until(at)?;
        let left = world.sites_left().last().expect("a majority is left");
        if !world.regions_left().contains(&region) {
            world.add_client(left, Undertaker { at: at + DECLARED_AFTER, goal });
        }
    }
    let course = Course { faults_end: FAULTS_END, clients_end: CLIENTS_END, quiet_end: QUIET_END, run_end: RUN_END, link_cut };
    let voters: Vec<RegionId> = world.topology().regions().collect();
    let finals = course.run(world, &voters, shared, |world| {
        let members = configurations::latest(world).members();
        let site = *members.first().expect("a configuration has members");
        world.add_client(site, reader(site));
    })?;
    // Quorums that follow what is measured may change once more as the load ends, but not for ever.
    while configurations::at_rest(world).is_err() && world.now() < REST_END {
        world.run_for(REST_STEP)?;
    }
    // A read that a change interrupts is aborted, and made again.
    Ok(finals.last().copied().into_iter().collect())
}

fn judge(world: &World<Site>, history: &History, finals: &[TxnNo], plan: &FaultPlan) -> Result<(), String> {
    strict_serializability::check(history)?;
    no_phantom::check(history)?;
    bounded_clocks::check(history)?;
    no_lost_write::check(history, finals)?;
    let demand = progress::Demand { committed_min: 20, committed_percent_min: 10 };
    progress::check(history, FAULTS_END, GRACE, demand)?;
    let members = configurations::latest(world).members();
    let mut serving = world.regions_to_go_on(plan);
    serving.retain(|region| members.iter().any(|site| site.region == *region));
    progress::check_each(history, &serving, FAULTS_END + GRACE)?;
    kit::nothing_left(world, "unresolved transactions", |_, site| site.unresolved())?;
    configurations::at_rest(world)
}
