//! A run over periods: workers whose numbers change, under quorums that may follow them. Machines and networks inside a datacenter are
//! slower than in other runs ([`SLOWER`](p::SLOWER)).

use super::client::{Duty, Worker};
use super::cluster::Cluster;
use super::meter::{Counts, Meter};
use super::parameters as p;
use super::transactions::Transactions;
use crate::experiment::Progress;
use rhumb_core::{Rng, SiteId, Span};
use rhumb_quad::quorums::{Quorums, Settings};
use rhumb_quad::{Adaptation, Availability, Config as Protocol, Site};
use rhumb_sim::{Config, SimError, World};
use std::cell::RefCell;
use std::rc::Rc;

/// Some periods with the same workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Leg {
    /// How many.
    pub periods: u64,
    /// The workers at each site.
    pub workers: Vec<u64>,
}

/// What one run is made of. Two runs of equal courses are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// What the watcher is told.
    pub title: String,
    /// The sites.
    pub cluster: Cluster,
    /// Their processors' speed, in percent; none: all as configured.
    pub speeds: Vec<u64>,
    /// Whom transactions ask at first.
    pub quorums: Quorums,
    /// What quorums that follow are built with; none: the first ones stay.
    pub settings: Option<Settings>,
    /// Of a hundred transactions so many only read.
    pub read_percent: u64,
    /// What comes, one after another.
    pub legs: Vec<Leg>,
    /// Every second each site has more or fewer workers than its leg says, up to this share of them.
    pub noise: f64,
    /// A worker thinks for so long at the most between two transactions.
    pub think_max: Span,
    /// Decides all that is random.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Passed {
    /// What was counted and timed, with a stage for each period.
    pub meter: Meter,
    /// At the end of each period: how many configurations there had been, and the cores of the last.
    pub configurations: Vec<(u64, Vec<SiteId>)>,
}

impl Passed {
    /// The mean response time of each period, milliseconds.
    pub fn means_ms(&self) -> Vec<f64> {
        self.meter.stages.iter().map(|sites| sites.iter().sum::<Counts>().mean_ms()).collect()
    }

    /// How many changes of configuration there were in these periods; those before the first were none.
    pub fn changes(&self, periods: std::ops::Range<usize>) -> u64 {
        let before = periods.start.checked_sub(1).map_or(1, |last| self.configurations[last].0);
        self.configurations[periods.end - 1].0 - before
    }
}

impl Course {
    /// All periods of all legs.
    pub fn periods(&self) -> u64 {
        self.legs.iter().map(|leg| leg.periods).sum()
    }

    /// The greatest number of workers that a site ever has.
    fn most(&self, site: usize) -> u64 {
        let most = self.legs.iter().map(|leg| leg.workers[site]).max().unwrap_or(0);
        (most as f64 * (1.0 + self.noise)).ceil() as u64
    }

    /// Runs it. Periods begin in the middle of those of the sites, for what changes does not wait for them.
    pub fn run(&self, progress: &mut dyn Progress) -> Result<Passed, SimError> {
        progress.begin(&self.title);
        let rtt = self.cluster.with_home(p::RTT_AT_HOME * p::SLOWER).rtt;
        let config = Config { local: p::LOCAL_SLOWER, events_max: p::EVENTS_MAX, ..Config::new(rtt, 1) };
        let adaptation = self.settings.map(|settings| Adaptation {
            period: p::PERIOD,
            capacity: p::CAPACITY,
            settings,
            auto: false,
            availability: Availability::default(),
        });
        let quorums = self.quorums.clone();
        let factory =
            move |site, _incarnation| Site::new(site, quorums.clone(), Protocol { adaptation: adaptation.clone(), ..Protocol::default() });
        let mut world: World<Site> = World::new(config, self.seed, factory);
        let sites = self.cluster.sites();
        for (site, speed) in sites.iter().zip(&self.speeds) {
            world.set_speed(*site, *speed);
        }
        let mut rng = Rng::seeded(self.seed);
        let wanted = Rc::new(RefCell::new(self.legs.first().map_or_else(Vec::new, |leg| leg.workers.clone())));
        let meter = Rc::new(RefCell::new(Meter::new(self.periods() as usize, sites.len())));
        world.run_for(p::SETTLING)?;
        for (index, site) in sites.iter().enumerate() {
            for number in 0..self.most(index) {
                let mut rng = rng.fork();
                let delay = Span::from_micros(rng.below(p::STAGGER.as_micros()));
                let transactions = Transactions::new(self.read_percent, (index as u64) << 32 | number, rng);
                let duty = Duty { wanted: Rc::clone(&wanted), number, think_max: self.think_max };
                world.add_client(*site, Worker::new(index, delay, transactions, Rc::clone(&meter)).with_duty(duty));
            }
        }
        world.run_for(Span::from_micros(p::PERIOD.as_micros() * 3 / 2) - p::SETTLING)?;
        let mut configurations = Vec::new();
        for leg in &self.legs {
            for _ in 0..leg.periods {
                meter.borrow_mut().measuring = Some(configurations.len());
                for _ in 0..p::PERIOD.as_micros() / p::NOISE_EVERY.as_micros() {
                    *wanted.borrow_mut() = leg.workers.iter().map(|workers| around(*workers, self.noise, &mut rng)).collect();
                    world.run_for(p::NOISE_EVERY)?;
                }
                let newest = sites.iter().filter_map(|site| world.actor(*site)).map(Site::configuration);
                let newest = newest.max_by_key(|configuration| configuration.epoch).expect("nobody crashes");
                configurations.push((newest.epoch.0, newest.quorums.cores().to_vec()));
                progress.passed(configurations.len() as u64, self.periods());
            }
        }
        let meter = meter.borrow().clone();
        Ok(Passed { meter, configurations })
    }
}

/// `workers`, or up to this share more or fewer.
fn around(workers: u64, noise: f64, rng: &mut Rng) -> u64 {
    let most = (workers as f64 * noise).round() as u64;
    workers - most.min(workers) + rng.below(2 * most.min(workers) + 1)
}
