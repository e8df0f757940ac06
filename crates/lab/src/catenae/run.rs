//! Builds the world of each system, runs a setup in it, and keeps what was measured.

use super::load::{self, LoadError};
use super::meter::Meter;
use super::parameters as p;
use super::setup::{Adversity, Clients, Setup, System};
use crate::experiment::Progress;
use rhumb_catenae as catenae;
use rhumb_commit::one_shot::OneShot;
use rhumb_core::{SiteId, Span, Time, wan};
use rhumb_paxos_commit as paxos_commit;
use rhumb_sim::{Config, Fault, LinkFaults, Links, LocalDelays, World};
use std::collections::BTreeMap;
use std::sync::Arc;

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
