//! Builds the world of each system, runs a setup in it, and keeps what was measured.

use super::load::{self, LoadError};
use super::parameters as p;
use super::setup::{Adversity, Clients, Setup, System};
use crate::experiment::Progress;
use hdrhistogram::Histogram;
use rhumb_catenae as catenae;
use rhumb_commit::one_shot::OneShot;
use rhumb_core::{SiteId, Span, Time, wan};
use rhumb_paxos_commit as paxos_commit;
use rhumb_sim::{Config, Fault, LinkFaults, Links, LocalDelays, World};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Latencies are kept in microseconds up to ten minutes, with three significant digits.
const LATENCY_US_MAX: u64 = 600_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// What was counted and timed, of what ended while it was measured.
#[derive(Clone, Debug)]
pub struct Meter {
    /// For how long.
    pub measured: Span,
    /// Transactions aborted as others were in the way.
    pub aborted: u64,
    /// Transactions that failed for another reason.
    pub failed: u64,
    /// Transactions that rejected themselves.
    pub rejected: u64,
    /// Transactions without an answer long after an open loop's end.
    pub unanswered: u64,
    latency: Histogram<u64>,
}

impl Default for Meter {
    fn default() -> Meter {
        let latency = Histogram::new_with_bounds(1, LATENCY_US_MAX, SIGNIFICANT_DIGITS).expect("the bounds are in order");
        Meter { measured: Span::ZERO, aborted: 0, failed: 0, rejected: 0, unanswered: 0, latency }
    }
}

impl Meter {
    /// A transaction committed, so long after it was asked for the first time.
    pub(super) fn commit(&mut self, took: Span) {
        self.latency.saturating_record(took.as_micros().max(1));
    }

    /// Transactions committed.
    pub fn committed(&self) -> u64 {
        self.latency.len()
    }

    /// Committed a second.
    pub fn throughput(&self) -> f64 {
        self.committed() as f64 * 1_000.0 / self.measured.as_millis_f64().max(1.0)
    }

    /// Mean latency of what committed, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.latency.mean() / 1_000.0
    }

    /// Latency in milliseconds below which this share of what committed stayed.
    pub fn percentile_ms(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1_000.0
    }

    /// Of what ended, the share that was aborted.
    pub fn abort_share(&self) -> f64 {
        self.aborted as f64 / (self.committed() + self.aborted + self.failed + self.rejected).max(1) as f64
    }
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// What was counted and timed.
    pub meter: Meter,
    /// How often the sites counted each event.
    pub probes: BTreeMap<&'static str, u64>,
}

impl Run {
    /// How often the sites counted `event`.
    pub fn probe(&self, event: &str) -> u64 {
        self.probes.get(event).copied().unwrap_or(0)
    }
}

/// Runs `setup`.
pub fn run(setup: &Setup, progress: &mut dyn Progress) -> Result<Run, LoadError> {
    let clients = match setup.clients {
        Clients::Closed(clients) => format!("{clients} clients per server"),
        Clients::Open { rate, .. } => format!("{rate} a second"),
    };
    progress.begin(&format!("{}, {}, {clients}", setup.system.name(), setup.workload.name()));
    let matrix = wan::profile("gcp_39").expect("it ships").matrix().restrict(&p::REGIONS).expect("the profile has them");
    let local = LocalDelays { row: setup.row, ..p::LOCAL };
    let config = Config { local, events_max: p::EVENTS_MAX, ..Config::new(matrix, 1) };
    let topology = Arc::new(config.topology.clone());
    match setup.system {
        System::Catenae(when) => {
            let protocol = catenae::Config { epoch: setup.epoch, durability: when.durability(), ..catenae::Config::default() };
            let factory = move |site, _| catenae::Site::new(site, Arc::clone(&topology), protocol.clone());
            measure(World::new(config, setup.seed, factory), setup, progress)
        }
        System::Locking | System::Optimistic => {
            let protocol = paxos_commit::Config::new(setup.system.concurrency().expect("it is a baseline"));
            let factory = move |site, _| paxos_commit::Site::new(site, Arc::clone(&topology), protocol.clone());
            measure(World::new(config, setup.seed, factory), setup, progress)
        }
    }
}

fn measure<A>(mut world: World<A>, setup: &Setup, progress: &mut dyn Progress) -> Result<Run, LoadError>
where
    A: OneShot,
{
    world.jitter_at_home(setup.jitter);
    let Adversity { speeds_percent, late, loss_percent } = setup.adversity;
    let sites: Vec<SiteId> = world.topology().sites().collect();
    sites.into_iter().zip(speeds_percent).for_each(|(site, percent)| world.set_speed(site, percent));
    if late > Span::ZERO || loss_percent > 0 {
        let faults = LinkFaults { jitter: late, loss: loss_percent as f64 / 100.0, ..LinkFaults::default() };
        world.strike_at(Time::ZERO, Fault::Disturb { links: Links::ALL, faults, span: None });
    }
    let meter = load::run(&mut world, setup, progress)?;
    Ok(Run { meter, probes: world.probes().clone() })
}
