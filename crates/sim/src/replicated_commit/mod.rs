//! The scenario of Replicated Commit: clients in every region run random transactions on a few hot keys while everything
//! goes wrong that a [`FaultPlan`] can draw; then the network heals and progress is demanded; then the checkers judge.
//!
//! ```text
//!   0 s ──────────── faults ──────────── 20 s ─── healed, clients go on ─── 32 s ─── quiet ─── 50 s: final reads, checks
//! ```
//!
//! Where all regions vote, one link may stay cut until 32 s: progress is demanded all the same.
//!
//! The seed also decides the shape: three regions or five, one site in each or two, versions kept long or collected
//! soon, ceilings far ahead of the clock or hardly, a storm of all kinds of faults or many short crashes. Where replicas are
//! *placed*, it decides too which regions are active, which passive, and which hold nothing.

pub(crate) mod client;
mod mover;
pub(crate) mod workload;

use crate::checkers::{bounded_clocks, convergence, no_lost_write, no_phantom, progress, stale_reads, strict_serializability};
use crate::config::{draw_regions, draw_sync};
use crate::history::{History, TxnNo};
use crate::observers::bounded_state;
use crate::{Config, Costs, FaultPlan, FaultRates, Report, Scenario, SimError, World};
use client::{Client, Shared};
use mover::Mover;
use rhumb_commit::placement::{Placement, Regions};
use rhumb_commit::replicated_commit::{self as protocol, Site};
use rhumb_core::{RegionId, Rng, Row, SiteId, Span, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use workload::{Reads, Workload};

/// Clients that move replicas, each in a region of its own.
const MOVERS: usize = 2;
/// Clients per region.
const CLIENTS: u32 = 2;
const FAULTS_END: Time = Time::from_micros(20_000_000);
const CLIENTS_END: Time = Time::from_micros(32_000_000);
const QUIET_END: Time = Time::from_micros(50_000_000);
const RUN_END: Time = Time::from_micros(70_000_000);
/// After the heal, this long until commits must go through: crashed sites recover, votes in doubt are asked for.
const GRACE: Span = Span::from_secs(5);
/// How soon versions are collected in the runs that do so.
const KEEP_VERSIONS_SHORT: Span = Span::from_secs(14);
/// How far ceilings are ahead in the runs in which they hardly are.
const CEILING_LEAD_SHORT: Span = Span::from_millis(2);

/// Where the replicas are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replicas {
    /// In every region, all active.
    #[default]
    Everywhere,
    /// Some regions are active, some passive, and some hold nothing.
    Placed,
    /// The same, and what a region is changes while clients run.
    Moving,
}

/// Random transactions under faults.
#[derive(Clone, Debug, Default)]
pub struct ReplicatedCommit {
    /// A bug planted in the protocol.
    #[cfg(feature = "planted")]
    pub planted: Option<protocol::planted::Planted>,
    /// A bug planted in the driver.
    #[cfg(feature = "planted")]
    pub driver: Option<crate::Planted>,
    /// Where the replicas are.
    pub replicas: Replicas,
    /// Nothing goes wrong.
    pub calm: bool,
}

/// What a seed decides of the cluster.
struct Shape {
    regions: usize,
    shards: u16,
    collects: bool,
    /// Replicas need not hold the same deletions.
    loses_deletions: bool,
    /// A site that restarts refuses little besides what it must: its ceiling was hardly ahead of its clock.
    low_ceilings: bool,
    /// Many short crashes instead of a storm.
    flaky: bool,
    /// How long a sync takes.
    sync: Span,
    /// Transactions are large now and then.
    is_bulky: bool,
    placement: Placement,
}

impl Scenario for ReplicatedCommit {
    fn name(&self) -> &'static str {
        match self.replicas {
            Replicas::Everywhere => "replicated-commit",
            Replicas::Placed => "placed-replicas",
            Replicas::Moving => "moving-replicas",
        }
    }

    fn options(&self) -> String {
        if self.calm { " --calm".into() } else { String::new() }
    }

    fn run(&self, seed: u64, tracing: bool) -> Report {
        let mut rng = Rng::seeded(seed);
        let regions = draw_regions(&mut rng);
        let shape = Shape {
            regions,
            shards: if rng.chance(0.7) { 1 } else { 2 },
            collects: rng.chance(0.3),
            loses_deletions: false,
            low_ceilings: rng.chance(0.5),
            flaky: rng.chance(0.3),
            sync: draw_sync(&mut rng),
            is_bulky: workload::is_bulky(seed),
            placement: match self.replicas {
                Replicas::Everywhere => Placement::everywhere(regions),
                Replicas::Placed | Replicas::Moving => place(regions, &mut rng.fork()),
            },
        };
        let shape = Shape { loses_deletions: shape.collects || self.replicas == Replicas::Moving, ..shape };
        let mut world = self.world(&shape, seed, tracing);
        let rates = match shape.flaky {
            _ if self.calm => FaultRates::none(),
            true => FaultRates::flaky(),
            false => FaultRates::stormy(),
        };
        let plan = FaultPlan::draw(&rates, world.topology(), FAULTS_END.since(Time::ZERO), &mut rng);
        world.follow(&plan);
        let shared = Rc::new(RefCell::new(Shared::default()));
        let reads = if self.replicas == Replicas::Everywhere { Reads::Everywhere } else { Reads::Placed };
        let mut number = 0;
        for region in world.topology().regions().collect::<Vec<_>>() {
            for client in 0..CLIENTS {
                let shard = client as u16 % shape.shards;
                let program = Client::new(
                    number,
                    region,
                    CLIENTS_END,
                    Workload::new(rng.fork(), reads).with_bulk(shape.is_bulky),
                    Rc::clone(&shared),
                );
                world.add_client(SiteId { region, shard }, program);
                number += 1;
            }
        }
        if self.replicas == Replicas::Moving {
            for region in world.topology().regions().take(MOVERS).collect::<Vec<_>>() {
                let mover = Mover::new(world.topology().clone(), shape.placement.clone(), CLIENTS_END, rng.fork());
                world.add_client(SiteId { region, shard: 0 }, mover);
            }
        }
        let link_cut = (self.replicas == Replicas::Everywhere && !self.calm).then_some(seed);
        let reader = Client::final_reader(number, RegionId(0), shape.is_bulky, Rc::clone(&shared));
        let end = drive(&mut world, &shared, reader, link_cut);
        let shared = shared.borrow();
        let mut report = Report::of(&world, end.as_ref().map(|_| ()).map_err(Clone::clone));
        report.count(&shared.history);
        if let Ok(finals) = end {
            report.violation = shared.garbled.clone().or_else(|| judge(&world, &shared.history, &finals, &shape).err());
        }
        if tracing {
            report.trace.push_str(&shared.history.to_string());
        }
        report
    }
}

impl ReplicatedCommit {
    /// The same with replicas elsewhere.
    pub fn with_replicas(mut self, replicas: Replicas) -> ReplicatedCommit {
        self.replicas = replicas;
        self
    }

    /// The same with faults, or without.
    pub fn with_calm(mut self, calm: bool) -> ReplicatedCommit {
        self.calm = calm;
        self
    }

    fn world(&self, shape: &Shape, seed: u64, tracing: bool) -> World<Site> {
        let mut config = Config { tracing, ..Config::of_regions(shape.regions, shape.shards) };
        config.local.sync = shape.sync;
        config.costs = Costs::REALISTIC;
        let topology = Arc::new(config.topology.clone());
        let mut protocol = protocol::Config::default();
        if shape.collects {
            protocol.keep_versions = KEEP_VERSIONS_SHORT;
            protocol.forget_after = Span::from_secs(9);
        }
        if shape.low_ceilings {
            protocol.ceiling_lead = CEILING_LEAD_SHORT;
        }
        #[cfg(feature = "planted")]
        let planted = self.planted;
        let placement = shape.placement.clone();
        let factory = move |site, _life| {
            let actor = Site::new(site, Arc::clone(&topology), placement.clone(), protocol.clone());
            #[cfg(feature = "planted")]
            let actor = actor.with_planted(planted);
            actor
        };
        let mut world = World::new(config, seed, factory);
        #[cfg(feature = "planted")]
        if let Some(driver) = self.driver {
            world.plant(driver);
        }
        world.compare_agreed();
        world.observe(bounded_state::observer());
        world
    }
}

/// Some placement of `regions` regions.
fn place(regions: usize, rng: &mut Rng) -> Placement {
    Placement::first(mover::draw(Regions::first(regions), regions, rng)).expect("drawn so that it may be")
}

/// Faults, heal, progress, quiet, final reads; returns the final reads. Where any region reaches a majority without it, a link may stay cut.
fn drive(world: &mut World<Site>, shared: &Rc<RefCell<Shared>>, reader: Client, link_cut: Option<u64>) -> Result<Vec<TxnNo>, SimError> {
    world.run_until(FAULTS_END)?;
    match link_cut {
        Some(seed) => world.heal_but_one_link(seed, CLIENTS_END),
        None => world.heal(),
    }
    world.run_until(QUIET_END)?;
    bounded_state::come_to_rest(world)?;
    let before = shared.borrow().history.txns().len();
    world.add_client(SiteId::new(0, 0), reader);
    world.run_clients(RUN_END)?;
    let after = shared.borrow().history.txns().len();
    Ok((before..after).map(|no| TxnNo(no as u32)).collect())
}

fn judge(world: &World<Site>, history: &History, finals: &[TxnNo], shape: &Shape) -> Result<(), String> {
    let text = |violation: crate::checkers::Violation| violation.to_string();
    strict_serializability::check(history).map_err(text)?;
    no_phantom::check(history).map_err(text)?;
    bounded_clocks::check(history).map_err(text)?;
    no_lost_write::check(history, finals).map_err(text)?;
    stale_reads::check(history).map_err(text)?;
    let demand = progress::Demand { committed_min: 20, committed_percent_min: 10 };
    progress::check(history, FAULTS_END, GRACE, demand).map_err(text)?;
    let placement = settled(world)?;
    let dumps = placement.copies().iter().map(|region| (region, dump(world, region, shape))).collect();
    convergence::check(&dumps).map_err(text)?;
    unresolved(world)
}

/// The newest versions of a region. Where old versions are collected, or copied, deletions are left out: replicas drop them at
/// their own pace.
fn dump(world: &World<Site>, region: RegionId, shape: &Shape) -> BTreeMap<rhumb_core::Key, Row> {
    let mut rows = BTreeMap::new();
    for shard in 0..shape.shards {
        let found = world.newest(SiteId { region, shard }).into_iter();
        rows.extend(found.filter(|row| !shape.loses_deletions || row.value.is_some()).map(|row| (row.key.clone(), row)));
    }
    rows
}

/// Once all is healed and quiet, all sites are in the same epoch, and settled.
fn settled(world: &World<Site>) -> Result<Placement, String> {
    let mut found: Option<Placement> = None;
    for site in world.topology().sites() {
        let Some(status) = world.actor(site).map(Site::status) else { return Err(format!("{site} is down at the end")) };
        if !status.settled {
            return Err(format!("{site} has not settled in {} at the end", status.placement));
        }
        match &found {
            None => found = Some(status.placement),
            Some(placement) if *placement == status.placement => {}
            Some(placement) => return Err(format!("{site} is in {} at the end, another one in {placement}", status.placement)),
        }
    }
    Ok(found.expect("a cluster has a site"))
}

/// Once all is healed and quiet, no site holds anything in doubt.
fn unresolved(world: &World<Site>) -> Result<(), String> {
    for site in world.topology().sites() {
        let prepared = world.actor(site).map(|actor| actor.status().prepared);
        if prepared != Some(0) {
            return Err(format!("{site} is still prepared for {prepared:?} attempts at the end"));
        }
    }
    Ok(())
}
