//! The scenario of Catenae: clients in every region run one-shot transactions on a few hot keys while everything goes wrong that a
//! [`FaultPlan`] can draw; then the network heals and progress is demanded; then the checkers judge.
//!
//! ```text
//!   0 s ──────────── faults ──────────── 10 s ─── healed, clients go on ─── 18 s ─── quiet ─── 24 s: final reads, checks
//! ```
//!
//! Where a majority suffices, one link may stay cut until 18 s, and a region may be lost for good, without anybody saying so: progress
//! is demanded of every other region all the same.
//!
//! The seed also decides the shape: three regions or five, secondary coordinators or none, the length of an epoch, when a batch
//! counts, how soon a silent region is passed over, how unevenly the chain servers of a site work, whether rows are large now and then. In another scenario, chains cross the
//! two sites of every region; in a third, both are coordinators, each of a part of the namespaces.

pub(crate) mod client;
pub(crate) mod counters;
pub(crate) mod fielded;
mod same_states;
pub(crate) mod workload;

use crate::checkers::{bounded_clocks, convergence, no_lost_write, no_phantom, progress, stale_reads, strict_serializability};
use crate::config::{draw_regions, draw_sync};
use crate::history::TxnNo;
use crate::kit::{self, Course};
use crate::observers::bounded_state;
use crate::{Config, FaultPlan, FaultRates, Report, Scenario, TOO_LARGE, World};
use client::{Client, Shared};
use rhumb_catenae::{self as protocol, ChainSites, Durability, Site};
use rhumb_core::{Key, RegionId, Rng, Row, Rules, SiteId, Span, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use workload::Workload;

/// Clients of a coordinator; a secondary one, which mostly has to refuse, has one.
const CLIENTS: u32 = 2;
const FAULTS_END: Time = Time::from_micros(10_000_000);
const CLIENTS_END: Time = Time::from_micros(18_000_000);
/// Clients go on for so many syncs longer: a slow disk takes its time with each transaction, and as many are demanded.
const CLIENTS_SYNCS: u64 = 40;
/// From the end of the clients to the final reads.
const QUIET: Span = Span::from_secs(6);
const RUN_END: Time = Time::from_micros(40_000_000);
/// After the heal, this long until transactions must go through: crashed sites recover and catch up.
const GRACE: Span = Span::from_secs(4);
/// One seed of so many has large rows: such a run takes long.
const BULKY_ONE_OF: u64 = 16;
/// How far clocks are off in the runs in which they are far off.
const SKEW: Span = Span::from_secs(1);

/// One-shot transactions under faults.
#[derive(Clone, Debug, Default)]
pub struct Catenae {
    /// The rules that the protocol goes by.
    pub rules: Rules<protocol::planted::Planted>,
    /// The rules that the driver goes by.
    pub driver: Rules<crate::Planted>,
    /// Nothing goes wrong.
    pub calm: bool,
    /// Every region has two sites, and chain servers on both.
    pub crossing: bool,
    /// Every region has two coordinators.
    pub namespaces: bool,
}

/// What a seed decides of the cluster.
struct Shape {
    regions: usize,
    shards: u16,
    durability: Durability,
    epoch: Span,
    /// A silent region is passed over soon.
    impatient: bool,
    /// How much longer a hop between chain servers takes at the most.
    jitter: Span,
    /// Many short crashes instead of a storm.
    flaky: bool,
    /// How long a sync takes.
    sync: Span,
    /// Clocks are off by up to a second.
    skewed: bool,
    collects: bool,
    chain_sites: ChainSites,
    coordinators: u16,
    /// Rows are large now and then, up to what a transaction may have.
    is_bulky: bool,
}

impl Shape {
    fn draw(rng: &mut Rng, seed: u64) -> Shape {
        Shape {
            regions: draw_regions(rng),
            shards: if rng.chance(0.8) { 1 } else { 2 },
            durability: if rng.chance(0.85) { Durability::Majority } else { Durability::Region },
            epoch: Span::from_millis(*rng.pick(&[20, 40, 80]).expect("three of them")),
            impatient: rng.chance(0.5),
            jitter: Span::from_micros(*rng.pick(&[0, 300, 3_000]).expect("three of them")),
            flaky: rng.chance(0.3),
            sync: draw_sync(rng),
            skewed: rng.chance(0.4),
            collects: rng.chance(0.3),
            chain_sites: ChainSites::Coordinator,
            coordinators: 1,
            is_bulky: seed % BULKY_ONE_OF == BULKY_ONE_OF - 1,
        }
    }

    /// The same with two sites in each region, and chain servers on both.
    fn crossing(self) -> Shape {
        Shape { shards: 2, chain_sites: ChainSites::Every, ..self }
    }

    /// The same with two coordinators in each region; in every other seed, chains cross both sites.
    fn namespaces(self, seed: u64) -> Shape {
        let chain_sites = if seed.is_multiple_of(2) { ChainSites::Coordinator } else { ChainSites::Every };
        Shape { shards: 2, coordinators: 2, chain_sites, ..self }
    }

    /// When the clients end.
    fn clients_end(&self) -> Time {
        CLIENTS_END + self.sync * CLIENTS_SYNCS
    }

    fn config(&self) -> protocol::Config {
        let epochs = |span: Span| span.as_micros() / self.epoch.as_micros();
        protocol::Config {
            epoch: self.epoch,
            durability: self.durability,
            window_epochs: epochs(Span::from_millis(if self.impatient { 480 } else { 960 })),
            tolerance_epochs: epochs(Span::from_millis(if self.impatient { 320 } else { 960 })),
            ahead_epochs: epochs(Span::from_millis(1_600)),
            deadline_epochs: epochs(Span::from_secs(5)),
            linger_epochs: if self.impatient { 3 } else { protocol::Config::default().linger_epochs },
            keep_epochs: if self.collects { epochs(Span::from_secs(3)) } else { protocol::Config::default().keep_epochs },
            chain_sites: self.chain_sites,
            coordinators: self.coordinators,
            ..protocol::Config::default()
        }
    }

    fn rates(&self) -> FaultRates {
        let rates = if self.flaky { FaultRates::flaky() } else { FaultRates::stormy() }.with_losses();
        FaultRates { skew_max: if self.skewed { SKEW } else { Span::from_millis(5) }, ..rates }
    }
}

impl Scenario for Catenae {
    fn name(&self) -> &'static str {
        match (self.crossing, self.namespaces) {
            (true, _) => "crossing-chains",
            (_, true) => "catenae-namespaces",
            _ => "catenae",
        }
    }

    fn is_calm(&self) -> bool {
        self.calm
    }

    fn run(&self, seed: u64, tracing: bool) -> Report {
        let mut rng = Rng::seeded(seed);
        let shape = Shape::draw(&mut rng, seed);
        let shape = if self.crossing { shape.crossing() } else { shape };
        let shape = if self.namespaces { shape.namespaces(seed) } else { shape };
        let mut world = self.world(&shape, seed, tracing);
        let rates = if self.calm { FaultRates::none() } else { shape.rates() };
        let plan = FaultPlan::draw(&rates, world.topology(), FAULTS_END.since(Time::ZERO), &mut rng);
        // With durability `region` the others wait for a lost region; and of two regions none is a majority.
        let can_lose = shape.durability == Durability::Majority && shape.regions >= 3;
        let plan = if can_lose { plan } else { plan.without_loss() };
        world.follow(&plan);
        let shared = Rc::new(RefCell::new(Shared::default()));
        let mut number = 0;
        for site in world.topology().sites().collect::<Vec<_>>() {
            for _ in 0..if site.shard < shape.coordinators { CLIENTS } else { 1 } {
                let workload = Some(Workload::new(rng.fork()).with_bulk(shape.is_bulky));
                world.add_client(
                    site,
                    Client::new(number, site.region, kit::ends(&plan, shape.clients_end(), site.region), workload, Rc::clone(&shared)),
                );
                number += 1;
            }
        }
        let link_cut = (shape.durability == Durability::Majority && !self.calm).then_some(seed);
        let course = Course {
            faults_end: FAULTS_END,
            clients_end: shape.clients_end(),
            quiet_end: shape.clients_end() + QUIET,
            run_end: RUN_END,
            link_cut,
        };
        let voters: Vec<RegionId> = world.topology().regions().collect();
        let end = course.run(&mut world, &voters, &shared, |world| {
            let site = world.sites_left().next().expect("a majority is left");
            world.add_client(site, Client::new(number, site.region, Time::from_micros(u64::MAX), None, Rc::clone(&shared)));
        });
        let shared = shared.borrow();
        kit::report(&world, &*shared, end, |finals| judge(&world, &shared, finals, &shape, &plan))
    }
}

impl Catenae {
    /// The same with faults, or without.
    pub fn with_calm(mut self, calm: bool) -> Catenae {
        self.calm = calm;
        self
    }

    /// The same with chain servers on both sites of every region.
    pub fn with_crossing(mut self) -> Catenae {
        self.crossing = true;
        self
    }

    /// The same with two coordinators in every region.
    pub fn with_namespaces(mut self) -> Catenae {
        self.namespaces = true;
        self
    }

    fn world(&self, shape: &Shape, seed: u64, tracing: bool) -> World<Site> {
        let config = kit::realistic(Config::of_regions(shape.regions, shape.shards), shape.sync, tracing);
        let topology = Arc::new(config.topology.clone());
        let protocol = shape.config();
        let rules = self.rules;
        let factory = move |site, _incarnation| Site::new(site, Arc::clone(&topology), protocol.clone()).with_rules(rules);
        let mut world = World::new(config, seed, factory);
        world.set_rules(self.driver);
        world.jitter_at_home(shape.jitter);
        world.observe(same_states::observer(shape.epoch));
        world.compare_agreed();
        world.observe(bounded_state::observer());
        world
    }
}

fn judge(world: &World<Site>, shared: &Shared, finals: &[TxnNo], shape: &Shape, plan: &FaultPlan) -> Result<(), String> {
    let history = &shared.history;
    strict_serializability::check(history)?;
    no_phantom::check(history)?;
    bounded_clocks::check(history)?;
    no_lost_write::check(history, finals)?;
    stale_reads::check(history)?;
    shared.counters.check()?;
    if world.probe(TOO_LARGE) > 0 {
        return Err(format!("{} messages were larger than a frame", world.probe(TOO_LARGE)));
    }
    let demand = progress::Demand { committed_min: 20, committed_percent_min: 20 };
    progress::check(history, FAULTS_END, GRACE, demand)?;
    progress::check_each(history, &world.regions_to_go_on(plan), FAULTS_END + GRACE)?;
    let dumps = world.regions_left().into_iter().map(|region| (region, dump(world, region, shape))).collect();
    convergence::check(&dumps)?;
    kit::nothing_left(world, "unsettled transactions", |_, site| site.status().unsettled)
}

/// The newest versions of a region. Where old versions are collected, deletions are left out: replicas drop them at
/// their own pace.
fn dump(world: &World<Site>, region: RegionId, shape: &Shape) -> BTreeMap<Key, Row> {
    let rows = world.newest(SiteId { region, shard: 0 }).into_iter();
    rows.filter(|row| !shape.collects || row.value.is_some()).map(|row| (row.key.clone(), row)).collect()
}
