//! One run: workers at the sites of a cluster under one configuration of quorums, in stages of more and more workers.

use super::client::{Background, Worker};
use super::cluster::Cluster;
use super::meter::Meter;
use super::parameters as p;
use super::transactions::Transactions;
use crate::experiment::Progress;
use rhumb_core::{Rng, Span};
use rhumb_quad::quorums::Quorums;
use rhumb_quad::{Config as Protocol, Site};
use rhumb_sim::{Config, LocalDelays, SimError, World};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What one run is made of. Two runs of equal setups are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// What the watcher is told.
    pub title: String,
    /// The sites.
    pub cluster: Cluster,
    /// Whom transactions ask.
    pub quorums: Quorums,
    /// Of a hundred transactions so many only read.
    pub read_percent: u64,
    /// Workers of each stage, ascending: one for a speedup run, more for a sizeup run.
    pub workers: Vec<u64>,
    /// By site, clients that keep it busy with requests that concern no other. None, or one number for each site.
    pub background: Vec<u64>,
    /// What a site costs.
    pub local: LocalDelays,
    /// How long each stage runs before it is measured.
    pub warm_up: Span,
    /// How long each is measured.
    pub measured: Span,
    /// Decides all that is random.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What was counted and timed.
    pub meter: Meter,
    /// How long each stage was measured.
    pub measured: Span,
    /// What the sites counted, in warming up too.
    pub probes: BTreeMap<&'static str, u64>,
}

impl Run {
    /// The mean response time of all stages, milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.meter.all().mean_ms()
    }

    /// Transactions committed a second, over all stages.
    pub fn throughput(&self) -> f64 {
        let measured = self.measured.as_millis_f64() * self.meter.stages.len() as f64;
        self.meter.all().committed as f64 * 1_000.0 / measured.max(1.0)
    }
}

/// Runs `setup`.
pub fn run(setup: &Setup, progress: &mut dyn Progress) -> Result<Run, SimError> {
    progress.begin(&setup.title);
    let config = Config { local: setup.local, events_max: p::EVENTS_MAX, ..Config::new(setup.cluster.rtt.clone(), 1) };
    let quorums = setup.quorums.clone();
    let factory = move |site, _incarnation| Site::new(site, quorums.clone(), Protocol::default());
    let mut world: World<Site> = World::new(config, setup.seed, factory);
    world.run_for(p::SETTLING)?;
    let sites = setup.cluster.sites();
    for (site, clients) in sites.iter().zip(&setup.background) {
        (0..*clients).for_each(|_| world.add_client(*site, Background));
    }
    let meter = Rc::new(RefCell::new(Meter::new(setup.workers.len(), sites.len())));
    let mut rng = Rng::seeded(setup.seed);
    let places = setup.cluster.places(setup.workers.last().copied().unwrap_or(0));
    let mut begun = 0;
    for (stage, workers) in setup.workers.iter().enumerate() {
        for (worker, &site) in places.iter().enumerate().take(*workers as usize).skip(begun) {
            let mut rng = rng.fork();
            let delay = Span::from_micros(rng.below(p::STAGGER.as_micros()));
            let transactions = Transactions::new(setup.read_percent, worker as u64, rng);
            world.add_client(sites[site], Worker::new(site, delay, transactions, Rc::clone(&meter)));
        }
        begun = *workers as usize;
        world.run_for(setup.warm_up)?;
        meter.borrow_mut().measuring = Some(stage);
        world.run_for(setup.measured)?;
        meter.borrow_mut().measuring = None;
        progress.passed(stage as u64 + 1, setup.workers.len() as u64);
    }
    let meter = meter.borrow().clone();
    Ok(Run { meter, measured: setup.measured, probes: world.probes().clone() })
}
