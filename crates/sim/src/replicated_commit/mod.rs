//! The scenario of Replicated Commit: clients in every region run random transactions on a few hot keys while everything
//! goes wrong that a [`FaultPlan`] can draw; then the network heals and progress is demanded; then the checkers judge.
//!
//! ```text
//!   0 s ──────────── faults ──────────── 20 s ─── healed, clients go on ─── 44 s ─── quiet ─── 62 s: final reads, checks
//! ```
//!
//! Where each region reaches a majority without it, one link may stay cut until 44 s. A region may be lost for good, all its sites with
//! their disks; some seconds later an operator declares it lost. Progress is demanded of every other region all the same.
//!
//! The seed also decides the shape: three regions or five, one site in each or two, versions kept long or collected
//! soon, clock bounds far ahead of the clock or hardly, a storm of all kinds of faults or many short crashes. Where replicas are
//! *placed*, it decides too which regions are active, which passive, and which hold nothing. In a cluster of one site nothing is replicated.

mod mover;

use crate::checkers::{bounded_clocks, convergence, no_lost_write, no_phantom, progress, stale_reads, strict_serializability};
use crate::config::{draw_regions, draw_sync};
use crate::history::{History, TxnNo};
use crate::interactive::client::{Client, Shared};
use crate::interactive::workload::{self, Reads, Workload};
use crate::kit::{self, Course};
use crate::observers::bounded_state;
use crate::world::healing::keeps_a_link_cut;
use crate::{Config, FaultPlan, FaultRates, Report, Scenario, SimError, World};
use mover::{Bounds, Mover};
use rhumb_commit::placement::{Placement, Regions};
use rhumb_commit::votes::Vote;
use rhumb_core::{RegionId, Rng, Row, Rules, SiteId, Span, Time, record};
use rhumb_replicated_commit::message::{ABORTED, ASSUMED};
use rhumb_replicated_commit::records::{VOTES, VoteRecord};
use rhumb_replicated_commit::{self as protocol, Site};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Clients that move replicas, each in a region of its own.
const MOVERS: usize = 2;
/// Clients per region.
const CLIENTS: u32 = 2;
const FAULTS_END: Time = Time::from_micros(20_000_000);
const CLIENTS_END: Time = Time::from_micros(44_000_000);
const QUIET_END: Time = Time::from_micros(62_000_000);
const RUN_END: Time = Time::from_micros(82_000_000);
/// How likely a second region is lost, where one is and the cluster can go on without both.
const SECOND_LOSS: f64 = 0.5;
/// After the heal, this long until commits must go through: crashed sites recover, votes in doubt are asked for.
const GRACE: Span = Span::from_secs(5);
/// At most so long after a region was lost an operator says so.
const DECLARED_AFTER_MAX: Span = Span::from_secs(14);
/// How soon versions are collected in the runs that do so, and outcomes forgotten.
const KEEP_VERSIONS_SHORT: Span = Span::from_secs(8);
const FORGET_SHORT: Span = Span::from_secs(5);
/// How far clock bounds are ahead in the runs in which they hardly are.
const CLOCK_LEAD_SHORT: Span = Span::from_millis(2);

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
    /// There is one, at the only site of the cluster.
    Alone,
}

/// Random transactions under faults.
#[derive(Clone, Debug, Default)]
pub struct ReplicatedCommit {
    /// The rules that the protocol goes by.
    pub rules: Rules<protocol::planted::Planted>,
    /// The rules that the driver goes by.
    pub driver: Rules<crate::Planted>,
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
    /// A site that restarts refuses little besides what it must: its clock bound was hardly ahead of its clock.
    low_clock_bounds: bool,
    /// Many short crashes instead of a storm.
    flaky: bool,
    /// How long a sync takes.
    sync: Span,
    /// Transactions are large now and then.
    is_bulky: bool,
    /// Regions are lost for good.
    loses_regions: bool,
    placement: Placement,
    /// What placements there may be, where they change.
    bounds: Bounds,
}

/// How long a long load takes at a site alone: long enough for commits to overtake what it reads.
const LONG_LOAD_ALONE: Span = Span::from_millis(2);

impl Scenario for ReplicatedCommit {
    fn name(&self) -> &'static str {
        match self.replicas {
            Replicas::Everywhere => "replicated-commit",
            Replicas::Placed => "placed-replicas",
            Replicas::Moving => "moving-replicas",
            Replicas::Alone => "one-site",
        }
    }

    fn is_calm(&self) -> bool {
        self.calm
    }

    fn run(&self, seed: u64, tracing: bool) -> Report {
        let mut rng = Rng::seeded(seed);
        let regions = if self.replicas == Replicas::Alone { 1 } else { draw_regions(&mut rng) };
        let shape = Shape {
            regions,
            shards: if self.replicas == Replicas::Alone || rng.chance(0.5) { 1 } else { 2 },
            collects: rng.chance(0.5),
            loses_deletions: false,
            low_clock_bounds: rng.chance(0.5),
            flaky: rng.chance(0.3),
            sync: draw_sync(&mut rng),
            is_bulky: workload::is_bulky(seed),
            loses_regions: false,
            placement: match self.replicas {
                Replicas::Everywhere | Replicas::Alone => Placement::everywhere(regions),
                Replicas::Placed | Replicas::Moving => place(regions, Bounds::default(), &mut rng.fork()),
            },
            bounds: Bounds::default(),
        };
        let mut shape = Shape { loses_deletions: shape.collects || self.replicas == Replicas::Moving, ..shape };
        let plan = self.plan(&mut shape, seed, &mut rng);
        shape.loses_regions = plan.loss().is_some();
        let mut world = self.world(&shape, seed, tracing);
        world.follow(&plan);
        let losses: Vec<(Time, RegionId)> = plan.losses().collect();
        // What a lost region refused may be known to nobody any more: then it counts as committed.
        match losses[..] {
            [] => world.compare_agreed(),
            _ => world.compare_agreed_but(losses.iter().map(|(_, region)| *region), &ABORTED),
        }
        let shared = Rc::new(RefCell::new(Shared::default()));
        let reads = if matches!(self.replicas, Replicas::Everywhere | Replicas::Alone) { Reads::Everywhere } else { Reads::Placed };
        let mut number = 0;
        for region in world.topology().regions().collect::<Vec<_>>() {
            for client in 0..CLIENTS {
                let shard = client as u16 % shape.shards;
                let program = Client::new(
                    number,
                    region,
                    kit::ends(&plan, CLIENTS_END, region),
                    Workload::new(rng.fork(), reads).with_bulk(shape.is_bulky),
                    Rc::clone(&shared),
                );
                world.add_client(SiteId { region, shard }, program);
                number += 1;
            }
        }
        self.add_movers(&mut world, &shape, &mut rng);
        let end = Run { shape: &shape, losses, link_cut: (!self.calm).then_some(seed), rng }.drive(&mut world, &shared, number);
        let shared = shared.borrow();
        kit::report(&world, &*shared, end, |finals| judge(&world, &shared.history, finals, &shape, &plan))
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

    /// What goes wrong. Of what the cluster could not go on with nothing is left in the plan, or in the shape.
    fn plan(&self, shape: &mut Shape, seed: u64, rng: &mut Rng) -> FaultPlan {
        let rates = match shape.flaky {
            _ if self.calm => FaultRates::none(),
            true => FaultRates::flaky().with_losses(),
            false => FaultRates::stormy().with_losses(),
        };
        let topology = Config::of_regions(shape.regions, shape.shards).topology;
        let span = FAULTS_END.since(Time::ZERO);
        let mut plan = FaultPlan::draw(&rates, &topology, span, rng);
        // Where five regions vote, or can, two may be lost.
        let can_lose_two = self.replicas == Replicas::Moving || shape.placement.voters.len() >= 5;
        if plan.loss().is_some() && shape.regions >= 5 && can_lose_two && rng.chance(SECOND_LOSS) {
            plan = plan.with_another_loss(&topology, span, rng);
        }
        let doomed: Regions = plan.losses().map(|(_, region)| region).collect();
        let can_lose = Bounds { doomed, voters_min: 1 };
        if self.replicas == Replicas::Moving {
            let link_cut = doomed.is_empty() && !self.calm && shape.regions >= 3 && keeps_a_link_cut(seed);
            let voters_min = if link_cut { 3 } else { 1 };
            shape.bounds = Bounds { doomed, voters_min };
            if !shape.bounds.hold(shape.placement.voters) {
                shape.placement = place(shape.regions, shape.bounds, rng);
            }
        }
        if shape.regions >= 3 && can_lose.hold(shape.placement.voters) { plan } else { plan.without_loss() }
    }

    /// Where replicas move: adds the clients that move them.
    fn add_movers(&self, world: &mut World<Site>, shape: &Shape, rng: &mut Rng) {
        let topology = world.topology().clone();
        let is_left = |region: &RegionId| !shape.bounds.doomed.contains(*region);
        for region in topology.regions().filter(is_left).take(if self.replicas == Replicas::Moving { MOVERS } else { 0 }) {
            let mover = Mover::new(topology.clone(), shape.placement.clone(), shape.bounds, CLIENTS_END, rng.fork());
            world.add_client(SiteId { region, shard: 0 }, mover);
        }
    }

    fn world(&self, shape: &Shape, seed: u64, tracing: bool) -> World<Site> {
        let mut config = kit::realistic(Config::of_regions(shape.regions, shape.shards), shape.sync, tracing);
        if self.replicas == Replicas::Alone {
            config.local.long_load = LONG_LOAD_ALONE;
        }
        let topology = Arc::new(config.topology.clone());
        let mut protocol = protocol::Config::default();
        if shape.collects {
            protocol.keep_versions = KEEP_VERSIONS_SHORT;
            protocol.forget_after = FORGET_SHORT;
            // A region that was away asks for what is forgotten. Without a lost one its votes decide it all the same.
            protocol.refusals_kept = if shape.loses_regions { protocol.refusals_kept } else { 0 };
        }
        if shape.low_clock_bounds {
            protocol.clock_lead = CLOCK_LEAD_SHORT;
        }
        let rules = self.rules;
        let placement = shape.placement.clone();
        let factory =
            move |site, _incarnation| Site::new(site, Arc::clone(&topology), placement.clone(), protocol.clone()).with_rules(rules);
        let mut world = World::new(config, seed, factory);
        world.set_rules(self.driver);
        world.observe(bounded_state::observer());
        world
    }
}

/// Some placement of `regions` regions.
fn place(regions: usize, bounds: Bounds, rng: &mut Rng) -> Placement {
    let all = Regions::first(regions);
    Placement::first(mover::draw(all, all, bounds, rng)).expect("drawn so that it may be")
}

/// How a run goes on once its clients are there.
struct Run<'a> {
    shape: &'a Shape,
    /// The regions that are lost, and when, unless their sites can go on.
    losses: Vec<(Time, RegionId)>,
    /// A link may stay cut, by this seed.
    link_cut: Option<u64>,
    rng: Rng,
}

impl Run<'_> {
    /// Faults, heal, progress, quiet, final reads; returns the final reads.
    fn drive(mut self, world: &mut World<Site>, shared: &Rc<RefCell<Shared>>, clients: u32) -> Result<Vec<TxnNo>, SimError> {
        for (at, region) in self.losses.clone() {
            world.run_until(at)?;
            self.declare(world, shared, region);
        }
        let voters: Vec<RegionId> = self.shape.placement.voters.iter().collect();
        let link_cut = self.link_cut.filter(|_| self.shape.bounds.doomed.is_empty());
        let course = Course { faults_end: FAULTS_END, clients_end: CLIENTS_END, quiet_end: QUIET_END, run_end: RUN_END, link_cut };
        course.run(world, &voters, shared, |world| {
            let site = world.sites_left().next().expect("a majority is left");
            world.add_client(site, Client::final_reader(clients, site.region, self.shape.is_bulky, Rc::clone(shared)));
        })
    }

    /// Adds an operator who some time from now declares `region` lost, if it is, and all that are lost by now.
    fn declare(&mut self, world: &mut World<Site>, shared: &Rc<RefCell<Shared>>, region: RegionId) {
        let left = world.regions_left();
        if left.contains(&region) {
            return;
        }
        shared.borrow_mut().doubt_refusals_of(region);
        let at = world.now() + Span::from_micros(self.rng.below(DECLARED_AFTER_MAX.as_micros()));
        let lost: Regions = world.topology().regions().filter(|region| !left.contains(region)).collect();
        let operator = Mover::declaring(world.topology().clone(), self.shape.placement.clone(), lost, at, self.rng.fork());
        let region = *self.rng.pick(&left).expect("a majority is left");
        world.add_client(SiteId { region, shard: 0 }, operator);
    }
}

fn judge(world: &World<Site>, history: &History, finals: &[TxnNo], shape: &Shape, plan: &FaultPlan) -> Result<(), String> {
    // A site alone has no other clock to hold its own against.
    if shape.regions > 1 {
        bounded_clocks::check(history)?;
    }
    if assumed_rightly(world) {
        strict_serializability::check(history)?;
        no_phantom::check(history)?;
        no_lost_write::check(history, finals)?;
        stale_reads::check(history)?;
    }
    // What only lost regions can decide keeps rows locked until they are declared lost, and meanwhile few transactions are begun.
    let committed_min = if world.topology().sites().any(|site| world.is_lost(site)) { 10 } else { 20 };
    progress::check(history, FAULTS_END, GRACE, progress::Demand { committed_min, committed_percent_min: 10 })?;
    progress::check_each(history, &world.regions_to_go_on(plan), FAULTS_END + GRACE)?;
    let placement = settled(world)?;
    if let Some(site) = world.topology().sites().find(|site| world.is_lost(*site) && !placement.lost.contains_key(&site.region)) {
        return Err(format!("{} is lost, and was not declared so by the end: {placement}", site.region));
    }
    let dumps = placement.copies().iter().map(|region| (region, dump(world, region, shape))).collect();
    convergence::check(&dumps)?;
    // A region without a copy stays prepared for what the others have forgotten.
    kit::nothing_left(
        world,
        "prepared attempts",
        |site, actor| {
            if placement.copies().contains(site.region) { actor.status().prepared } else { 0 }
        },
    )
}

/// True if all that was taken to be committed for the votes of lost regions has those votes, on disks that only the simulator can still read.
/// Where the region had refused, what it knew then may contradict what counts as committed now: that is a limit, see decision 0013.
fn assumed_rightly(world: &World<Site>) -> bool {
    let topology = world.topology();
    let lost: Vec<SiteId> = topology.sites().filter(|site| world.is_lost(*site)).collect();
    let regions: Regions = lost.iter().map(|site| site.region).collect();
    // By attempt: the lost regions with a vote on it, and those that voted for it.
    let mut votes: BTreeMap<String, (Regions, Regions)> = BTreeMap::new();
    for site in lost {
        for bytes in world.records(site, VOTES) {
            let VoteRecord { meta, vote, .. } = record::decode(&bytes).expect("a vote decodes");
            let (of, yes) = votes.entry(meta.attempt.to_string()).or_default();
            *of = meta.electorate.and(regions);
            *yes = if vote.as_ref().is_some_and(Vote::is_yes) { yes.or(site.region.into()) } else { *yes };
        }
    }
    world.agreed(ASSUMED).all(|attempt| votes.get(attempt).is_some_and(|(of, yes)| of == yes))
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
    for site in world.sites_left() {
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
