//! The scenario of Samya: clients in every region acquire and release tokens of a few scarce quotas, limits go up and down,
//! while everything goes wrong that a [`FaultPlan`] can draw; then the network heals, and nothing may be missing.
//!
//! ```text
//!   0 s ─ quotas are made ─ 6 s ─── faults ─── 20 s ─── healed, clients go on ─── 30 s ─── quiet ─── 40 s: all is counted
//! ```
//!
//! Where no site is lost, one link between two regions may stay cut until 30 s: what clients ask for has its outcome all the same.
//!
//! The seed also decides the shape: three regions or five, one site in each or two, which protocol, what is offered, who
//! gets what, whether quotas stand above one another, whether limits change, and whether sites are lost for ever: out of reach from some moment
//! on, dead or alive, declared lost by the others, and perhaps back when nobody reckons with them any more.

mod agreement;
mod client;
mod conservation;
mod ledger;
mod lost;
mod rest;
mod same_quotas;

use crate::config::{draw_regions, draw_sync};
use crate::kit;
use crate::observers::bounded_state;
use crate::{Config, Fault, FaultPlan, FaultRates, Place, Report, Scenario, SimError, World};
use client::{Churner, Client, Operator};
use ledger::Ledger;
use lost::{Declarer, Lost};
use rhumb_core::{Rng, Rules, SiteId, Span, Time};
use rhumb_quota::config::Predictors;
use rhumb_quota::demand::Predictor;
use rhumb_quota::name::Name;
use rhumb_quota::request::Request;
use rhumb_quota::spec::{OfferPolicy, ProtocolKind, Reallocation, Spec};
use rhumb_quota::{self as quota, Site};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Clients per site.
const CLIENTS: u32 = 3;
/// Clients that make and drop one and the same quota.
const CHURNERS: usize = 2;
/// Clients that declare the same site lost.
const DECLARERS: usize = 2;
const FAULTS_BEGIN: Time = Time::from_micros(6_000_000);
const FAULTS_END: Time = Time::from_micros(20_000_000);
const LOSSES_BEGIN: Time = Time::from_micros(7_000_000);
const LOSSES_END: Time = Time::from_micros(16_000_000);
const CLIENTS_END: Time = Time::from_micros(30_000_000);
const QUIET_END: Time = Time::from_micros(45_000_000);
const RUN_END: Time = Time::from_micros(120_000_000);

/// Tokens under faults.
#[derive(Clone, Debug, Default)]
pub struct Samya {
    /// The rules that the protocol goes by.
    pub rules: Rules<quota::planted::Planted>,
    /// The rules that the driver goes by.
    pub driver: Rules<crate::Planted>,
    /// Nothing goes wrong.
    pub calm: bool,
}

/// What a seed decides.
struct Shape {
    regions: usize,
    shards: u16,
    /// Many short crashes instead of a storm.
    flaky: bool,
    /// How long a sync takes.
    sync: Span,
    /// Limits go up and down while they are in use.
    limits_change: bool,
    /// Sites look ahead.
    foresees: bool,
    /// Sites do not answer from what they learnt of the limit just before.
    asks_anew: bool,
    /// Sites are lost for ever.
    loses: bool,
    /// The quota below which another one is made and dropped while clients hold tokens of it.
    churned: Option<Name>,
    quotas: Vec<(Name, Spec)>,
}

/// Forecasts that the next epoch will be as the last.
struct Again(Option<f64>);

impl Predictor for Again {
    fn observe(&mut self, demand: f64) {
        self.0 = Some(demand);
    }

    fn predict(&self) -> Option<f64> {
        self.0
    }
}

impl Shape {
    fn draw(rng: &mut Rng, seed: u64) -> Shape {
        let regions = draw_regions(rng);
        let shards = if rng.chance(0.8) { 1 } else { 2 };
        let mut spec = |limit: u64, parent: Option<&Name>| Spec {
            limit,
            parent: parent.cloned(),
            protocol: if rng.chance(0.5) { ProtocolKind::Majority } else { ProtocolKind::Any },
            offer: if rng.chance(0.5) { OfferPolicy::All } else { OfferPolicy::Spare },
            reallocation: match rng.below(3) {
                0 => Reallocation::MaximumUsage,
                1 => Reallocation::MostSatisfied,
                _ => Reallocation::Proportional,
            },
        };
        let name = |text: &str| Name::new(text).expect("a name");
        let organisation = name("org");
        let above = spec(120, None);
        let below = [spec(80, Some(&organisation)), spec(70, Some(&organisation))];
        let alone = spec(60, None);
        let hierarchical = rng.chance(0.5);
        // Drawn by itself, so that all else of a seed stays as it was.
        let churned = Some(organisation.clone()).filter(|_| hierarchical && Rng::seeded(!seed).chance(0.5));
        let mut quotas = vec![(name("vm"), alone)];
        if hierarchical {
            quotas.push((organisation, above));
            quotas.extend(below.into_iter().zip(["web", "data"]).map(|(spec, text)| (name(text), spec)));
        }
        Shape {
            regions,
            shards,
            flaky: rng.chance(0.3),
            sync: draw_sync(rng),
            limits_change: rng.chance(0.5),
            foresees: rng.chance(0.5),
            asks_anew: rng.chance(0.5),
            loses: rng.chance(0.4),
            churned,
            quotas,
        }
    }
}

impl Scenario for Samya {
    fn name(&self) -> &'static str {
        "samya"
    }

    fn is_calm(&self) -> bool {
        self.calm
    }

    fn run(&self, seed: u64, tracing: bool) -> Report {
        let mut rng = Rng::seeded(seed);
        let shape = Shape::draw(&mut rng, seed);
        let mut world = self.world(&shape, seed, tracing);
        let rates = match shape.flaky {
            _ if self.calm => FaultRates::none(),
            true => FaultRates::flaky(),
            false => FaultRates::stormy(),
        };
        let plan = FaultPlan::draw(&rates, world.topology(), FAULTS_END.since(FAULTS_BEGIN), &mut rng);
        for (site, skew) in plan.clocks {
            world.skew_clock(site, skew);
        }
        for (at, fault) in plan.faults {
            world.strike_at(at + FAULTS_BEGIN.since(Time::ZERO), fault);
        }
        let ledger = Rc::new(RefCell::new(Ledger::new(shape.asks_anew, shape.churned.clone())));
        let sites: Vec<SiteId> = world.topology().sites().collect();
        let lost = if shape.loses && !self.calm { Lost::draw(&sites, LOSSES_BEGIN, LOSSES_END, &mut rng) } else { Vec::new() };
        lost.iter().for_each(|lost| lost.strike(&mut world, FAULTS_END));
        let end = self.drive(&mut world, (&shape, &lost, seed), &ledger, &mut rng);
        let ledger = ledger.borrow();
        let mut report = Report::of(&world, end);
        report.committed = ledger.done;
        report.aborted = ledger.refused;
        report.unknown = ledger.lost;
        if report.violation.is_none() {
            report.violation = ledger.wrong.clone();
        }
        report
    }
}

impl Samya {
    /// The same with faults, or without.
    pub fn with_calm(mut self, calm: bool) -> Samya {
        self.calm = calm;
        self
    }

    fn world(&self, shape: &Shape, seed: u64, tracing: bool) -> World<Site> {
        let config = kit::realistic(Config::of_regions(shape.regions, shape.shards), shape.sync, tracing);
        let topology = config.topology.clone();
        let rules = self.rules;
        let configuration = quota::Config {
            epoch: Span::from_secs(2),
            predictors: shape.foresees.then(|| Arc::new(|_: &Name| Some(Box::new(Again(None)) as Box<dyn Predictor>)) as Predictors),
            dry_ticks: if shape.asks_anew { 0 } else { quota::Config::default().dry_ticks },
            ..quota::Config::default()
        };
        let factory = move |site, _incarnation| Site::new(site, &topology, configuration.clone()).with_rules(rules);
        let mut world = World::new(config, seed, factory);
        world.set_rules(self.driver);
        world
    }

    /// Quotas, faults, heal, quiet, count.
    fn drive(
        &self,
        world: &mut World<Site>,
        (shape, lost, seed): (&Shape, &[Lost], u64),
        ledger: &Rc<RefCell<Ledger>>,
        rng: &mut Rng,
    ) -> Result<(), SimError> {
        let sites: Vec<SiteId> = lost.iter().map(|lost| lost.site).collect();
        world.observe(agreement::observer(sites.clone()));
        world.compare_agreed();
        world.observe(bounded_state::observer());
        world.observe(lost::observer());
        world.observe(conservation::observer(sites));
        world.observe(same_quotas::observer());
        world.run_until(Time::from_micros(100_000))?;
        for (name, spec) in &shape.quotas {
            let request = Request::Create { name: name.clone(), spec: spec.clone() };
            // One after the other: a parent has to be known before its children are made.
            world.submit(SiteId::new(0, 0), request);
            let made = world.run_until_reply(FAULTS_BEGIN)? && world.take_replies().iter().all(|reply| reply.answer.is_some());
            assert!(made, "quotas are made in time where nothing goes wrong yet");
            // Until all sites have heard of it.
            world.run_for(Span::from_millis(450))?;
            ledger.borrow_mut().create(name, spec);
        }
        world.run_until(FAULTS_BEGIN)?;
        Self::add_clients(world, (shape, lost), ledger, rng);
        world.run_until(FAULTS_END)?;
        match lost {
            [] => world.heal_but_one_link(seed, &world.topology().regions().collect::<Vec<_>>(), CLIENTS_END),
            _ => world.heal(),
        }
        for lost in lost.iter().filter(|lost| !lost.returns) {
            world.strike(&Fault::Crash { place: Place::Site(lost.site), down: None });
        }
        world.run_until(QUIET_END)?;
        if lost.is_empty() {
            bounded_state::come_to_rest(world)?;
        }
        rest::check(world, &ledger.borrow(), RUN_END)
    }

    fn add_clients(world: &mut World<Site>, (shape, lost): (&Shape, &[Lost]), ledger: &Rc<RefCell<Ledger>>, rng: &mut Rng) {
        let names: Vec<Name> = shape.quotas.iter().map(|(name, _)| name.clone()).collect();
        let mut number = 0;
        for site in world.topology().sites().collect::<Vec<_>>() {
            for _ in 0..CLIENTS {
                world.add_client(site, Client::new(number, site, names.clone(), CLIENTS_END, rng.fork(), Rc::clone(ledger)));
                number += 1;
            }
        }
        // Whoever changes quotas does so where it can be waited for.
        let stays = |site: &SiteId| lost.iter().all(|lost| lost.site != *site);
        let sites: Vec<SiteId> = world.topology().sites().filter(stays).collect();
        let mut somewhere = || *rng.pick(&sites).expect("a cluster has sites");
        for (index, name) in names.into_iter().enumerate().filter(|_| shape.limits_change) {
            world.add_client(somewhere(), Operator::new(name, FAULTS_END, Rng::seeded(index as u64), Rc::clone(ledger)));
        }
        for _ in 0..CHURNERS {
            world.add_client(somewhere(), Churner::new(FAULTS_END, shape.churned.clone()));
        }
        for lost in lost.iter().flat_map(|lost| [lost; DECLARERS]) {
            world.add_client(somewhere(), Declarer::new(*lost, Rc::clone(ledger)));
        }
    }
}
