//! The scenario `replicated-log`: clients at every site run random transactions on a few hot keys over a replicated log per shard, with two-phase
//! commit across shards, under every kind of fault.
//!
//! ```text
//!   0 s ──────────── faults ──────────── 14 s ─── healed, clients go on ─── 40 s ─── quiet ─── 50 s: final reads, checks
//! ```
//!
//! The seed also decides the shape: how many regions, one to three shards, where leaders are preferred, how many outcomes a group remembers
//! and how much of its log it keeps, down to so few that forgotten outcomes and transferred states are common, whether clients read snapshots
//! besides what they lock, and whether a region is lost for good.

use crate::checkers::{no_lost_write, no_phantom, progress, stale_reads, strict_serializability};
use crate::config::{draw_regions, draw_sync};
use crate::history::{History, TxnNo};
use crate::interactive::client::{Client, Shared};
use crate::interactive::workload::{self, Reads, Workload};
use crate::kit::{self, Course};
use crate::observers::bounded_state;
use crate::{Config, FaultPlan, FaultRates, Report, Scenario, World};
use rhumb_core::{RegionId, Rng, Rules, SiteId, Span, Time};
use rhumb_replicated_log::{self as protocol, Site};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const FAULTS_END: Time = Time::from_micros(14_000_000);
const COURSE: Course = Course {
    faults_end: FAULTS_END,
    clients_end: Time::from_micros(40_000_000),
    quiet_end: Time::from_micros(50_000_000),
    run_end: Time::from_micros(68_000_000),
    link_cut: None,
};
/// After the heal, this long until commits must go through: leases are waited out, leaders elected, those in doubt ask.
const GRACE: Span = Span::from_secs(8);
/// After the final reads, this long until all groups know all outcomes.
const SETTLING: Span = Span::from_secs(5);

/// Transactions under faults.
#[derive(Clone, Debug, Default)]
pub struct ReplicatedLog {
    /// The rules that the protocol goes by.
    pub rules: Rules<protocol::planted::Planted>,
    /// The rules that the driver goes by.
    pub driver: Rules<crate::Planted>,
    /// Nothing goes wrong.
    pub calm: bool,
}

impl Scenario for ReplicatedLog {
    fn name(&self) -> &'static str {
        "replicated-log"
    }

    fn is_calm(&self) -> bool {
        self.calm
    }

    fn run(&self, seed: u64, tracing: bool) -> Report {
        let mut rng = Rng::seeded(seed);
        let regions = draw_regions(&mut rng);
        let shards = *rng.pick(&[1, 2, 2, 3]).expect("some of them");
        let config = kit::realistic(Config::of_regions(regions, shards), draw_sync(&mut rng), tracing);
        let protocol = self.protocol(regions, &mut rng);
        let rates = if rng.chance(0.3) { FaultRates::flaky() } else { FaultRates::stormy() }.with_losses();
        let rates = if self.calm { FaultRates::none() } else { rates };
        let reads = if rng.chance(0.6) { Reads::Everywhere } else { Reads::Locking };
        let is_bulky = workload::is_bulky(seed);
        let mut world = self.world(config, protocol, seed);
        let plan = FaultPlan::draw(&rates, world.topology(), FAULTS_END.since(Time::ZERO), &mut rng);
        let plan = if regions >= 3 { plan } else { plan.without_loss() };
        world.follow(&plan);
        let shared = Rc::new(RefCell::new(Shared::default()));
        let sites: Vec<SiteId> = world.topology().sites().collect();
        for (number, site) in (0..).zip(&sites) {
            let workload = Workload::new(rng.fork(), reads).with_bulk(is_bulky);
            let ends = kit::ends(&plan, COURSE.clients_end, site.region);
            world.add_client(*site, Client::new(number, site.region, ends, workload, Rc::clone(&shared)));
        }
        let course = Course { link_cut: (!self.calm && rng.chance(0.3)).then_some(seed), ..COURSE };
        let voters: Vec<RegionId> = world.topology().regions().collect();
        let end = course.run(&mut world, &voters, &shared, |world| {
            let site = world.sites_left().next().expect("a majority is left");
            let reader = Client::final_reader(sites.len() as u32, site.region, is_bulky, Rc::clone(&shared));
            world.add_client(site, reader);
        });
        let end = end.and_then(|finals| world.run_for(SETTLING).map(|()| finals));
        let shared = shared.borrow();
        kit::report(&world, &*shared, end, |finals| judge(&world, &shared.history, finals))
    }
}

impl ReplicatedLog {
    /// The same with faults, or without.
    pub fn with_calm(mut self, calm: bool) -> ReplicatedLog {
        self.calm = calm;
        self
    }

    fn protocol(&self, regions: usize, rng: &mut Rng) -> protocol::Config {
        let few = |rng: &mut Rng, many| if self.calm { many } else { *rng.pick(&[4, 32, many, many]).expect("some of them") };
        let mut leaders: Vec<RegionId> = (0..regions as u16).map(RegionId).collect();
        rng.shuffle(&mut leaders);
        let defaults = protocol::Config::default();
        let outcomes_max = few(rng, defaults.outcomes_max);
        let log_entries_kept = few(rng, defaults.log_entries_kept);
        protocol::Config { leaders, outcomes_max, log_entries_kept, ..defaults }
    }

    fn world(&self, config: Config, protocol: protocol::Config, seed: u64) -> World<Site> {
        let topology = Arc::new(config.topology.clone());
        let rules = self.rules;
        let factory = move |site, _incarnation| Site::new(site, Arc::clone(&topology), protocol.clone()).with_rules(rules);
        let mut world = World::new(config, seed, factory);
        world.set_rules(self.driver);
        world.compare_agreed();
        world.observe(bounded_state::observer());
        world
    }
}

fn judge(world: &World<Site>, history: &History, finals: &[TxnNo]) -> Result<(), String> {
    strict_serializability::check(history)?;
    stale_reads::check(history)?;
    no_phantom::check(history)?;
    no_lost_write::check(history, finals)?;
    let demand = progress::Demand { committed_min: 10, committed_percent_min: 10 };
    progress::check(history, FAULTS_END, GRACE, demand)?;
    kit::nothing_left(world, "transactions in doubt", |_, site| site.in_doubt())
}
