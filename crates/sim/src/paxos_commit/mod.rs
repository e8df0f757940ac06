//! The scenario `paxos-commit`: the clients of [`catenae`](crate::catenae) on the protocols that it is measured against, under every kind
//! of fault.
//!
//! Clients run one-shot transactions and reads at all sites of three or five regions, under two-phase locking or optimistic
//! concurrency control, while a plan drawn from the seed crashes sites and cuts links. Then the network heals, but for a link that may
//! stay cut and a region that may be lost for good; unless one is, progress is demanded,
//! everything goes quiet and one client reads every row. What the clients saw is judged: strict serializability, phantoms,
//! lost writes, counters; and no region is left in doubt.

use crate::catenae::client::{Client, Shared};
use crate::catenae::workload::Workload;
use crate::checkers::{no_lost_write, no_phantom, progress, strict_serializability};
use crate::config::{draw_regions, draw_sync};
use crate::history::TxnNo;
use crate::kit::{self, Course};
use crate::observers::bounded_state;
use crate::{Config, FaultPlan, FaultRates, Report, Scenario, World};
use rhumb_core::{RegionId, Rng, Rules, Span, Time};
use rhumb_paxos_commit::{self as protocol, Concurrency, Site};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Clients of a site.
const CLIENTS: u32 = 2;
const COURSE: Course = Course {
    faults_end: Time::from_micros(10_000_000),
    // Late enough for many transactions while a link is cut: one that is in doubt takes seconds.
    clients_end: Time::from_micros(40_000_000),
    quiet_end: Time::from_micros(50_000_000),
    run_end: Time::from_micros(66_000_000),
    link_cut: None,
};
/// After the heal, this long until transactions must go through: what is in doubt is asked about, what was left behind is released.
const GRACE: Span = Span::from_secs(5);
/// After the final reads, this long until all regions know their outcome.
const SETTLING: Span = Span::from_secs(2);

/// One-shot transactions under faults.
#[derive(Clone, Debug, Default)]
pub struct PaxosCommit {
    /// Only this concurrency control; the seed decides if there is none.
    pub concurrency: Option<Concurrency>,
    /// The rules that the protocol goes by.
    pub rules: Rules<protocol::planted::Planted>,
    /// The rules that the driver goes by.
    pub driver: Rules<crate::Planted>,
    /// Nothing goes wrong.
    pub calm: bool,
}

impl Scenario for PaxosCommit {
    fn name(&self) -> &'static str {
        "paxos-commit"
    }

    fn is_calm(&self) -> bool {
        self.calm
    }

    fn run(&self, seed: u64, tracing: bool) -> Report {
        let mut rng = Rng::seeded(seed);
        let regions = draw_regions(&mut rng);
        let config = kit::realistic(Config::of_regions(regions, 1), draw_sync(&mut rng), tracing);
        let drawn = if rng.chance(0.5) { Concurrency::Locking } else { Concurrency::Optimistic };
        let rates = if rng.chance(0.3) { FaultRates::flaky() } else { FaultRates::stormy() }.with_losses();
        let rates = if self.calm { FaultRates::none() } else { rates };
        let mut world = self.world(config, self.concurrency.unwrap_or(drawn), seed);
        let plan = FaultPlan::draw(&rates, world.topology(), COURSE.faults_end.since(Time::ZERO), &mut rng);
        let plan = if regions >= 3 { plan } else { plan.without_loss() };
        world.follow(&plan);
        let shared = Rc::new(RefCell::new(Shared::default()));
        let mut number = 0;
        for site in world.topology().sites().collect::<Vec<_>>() {
            for _ in 0..CLIENTS {
                let workload = Some(Workload::new(rng.fork()));
                let client =
                    Client::new(number, site.region, kit::ends(&plan, COURSE.clients_end, site.region), workload, Rc::clone(&shared))
                        .with_fresh_reads();
                world.add_client(site, client);
                number += 1;
            }
        }
        let course = Course { link_cut: (!self.calm).then_some(seed), ..COURSE };
        let voters: Vec<RegionId> = world.topology().regions().collect();
        let end = course.run(&mut world, &voters, &shared, |world| {
            let site = world.sites_left().next().expect("a majority is left");
            let reader = Client::new(number, site.region, Time::from_micros(u64::MAX), None, Rc::clone(&shared)).with_fresh_reads();
            world.add_client(site, reader);
        });
        let end = end.and_then(|finals| world.run_for(SETTLING).map(|()| finals));
        let shared = shared.borrow();
        kit::report(&world, &*shared, end, |finals| judge(&world, &shared, finals))
    }
}

impl PaxosCommit {
    /// The same with faults, or without.
    pub fn with_calm(mut self, calm: bool) -> PaxosCommit {
        self.calm = calm;
        self
    }

    fn world(&self, config: Config, concurrency: Concurrency, seed: u64) -> World<Site> {
        let topology = Arc::new(config.topology.clone());
        let protocol = protocol::Config::new(concurrency);
        let rules = self.rules;
        let factory = move |site, _incarnation| Site::new(site, Arc::clone(&topology), protocol.clone()).with_rules(rules);
        let mut world = World::new(config, seed, factory);
        world.set_rules(self.driver);
        world.compare_agreed();
        world.observe(bounded_state::observer());
        world
    }
}

fn judge(world: &World<Site>, shared: &Shared, finals: &[TxnNo]) -> Result<(), String> {
    let history = &shared.history;
    strict_serializability::check(history)?;
    no_phantom::check(history)?;
    if world.regions_left().len() < world.topology().region_count() {
        // Whose votes are split waits for the lost region, with its rows, as `rhumb_paxos_commit` says.
        return Ok(());
    }
    no_lost_write::check(history, finals)?;
    shared.counters.check()?;
    let demand = progress::Demand { committed_min: 15, committed_percent_min: 10 };
    progress::check(history, COURSE.faults_end, GRACE, demand)?;
    kit::nothing_left(world, "attempts in doubt", |_, site| site.in_doubt())
}
