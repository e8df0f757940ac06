//! One run: so many clients of a form of the protocol in five regions.

use super::client::Client;
use super::form::Form;
use super::meter::Meter;
use super::parameters::{EVENTS_MAX, LENGTH, REGIONS, SETTLING, WARM_UP};
use super::placed;
use super::transactions::Transactions;
use crate::experiment::Progress;
use rhumb_core::{SiteId, Span, Time};
use rhumb_replicated_commit::{Config as SiteConfig, Site};
use rhumb_sim::{Config, SimError, World};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// What one run is made of. Two runs of equal setups are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setup {
    /// The form of the protocol.
    pub form: Form,
    /// Clients in all regions together; as many in each.
    pub clients: usize,
    /// The skew of the keys, in hundredths.
    pub skew_centi: u32,
    /// Transactions after which it ends.
    pub transactions: u64,
    /// Decides the keys, and when clients start.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What was counted.
    pub meter: Meter,
    /// How long clients began transactions that were measured.
    pub length: Span,
    /// What the sites counted, in warming up too.
    pub probes: BTreeMap<&'static str, u64>,
}

impl Run {
    /// Operations of committed transactions per second, of one region.
    pub fn operations_per_second(&self, region: usize) -> f64 {
        self.meter.operations_per_second(region, self.length)
    }

    /// The same of all regions.
    pub fn all_operations_per_second(&self) -> f64 {
        (0..REGIONS.len()).map(|region| self.operations_per_second(region)).sum()
    }

    /// How often a site counted `event`.
    pub fn probe(&self, event: &str) -> u64 {
        self.probes.get(event).copied().unwrap_or(0)
    }
}

/// Runs `setup`.
pub fn run(setup: &Setup, progress: &mut dyn Progress) -> Result<Run, SimError> {
    progress.begin(&format!("{}, {} clients", setup.form.name(), setup.clients));
    let config = Config { events_max: EVENTS_MAX, ..Config::new(placed::five(), 1) };
    let topology = Arc::new(config.topology.clone());
    let placement = placed::placement(setup.form);
    let factory = move |site, _incarnation| Site::new(site, Arc::clone(&topology), placement.clone(), SiteConfig::default());
    let mut world: World<Site> = World::new(config, setup.seed, factory);
    world.run_for(SETTLING)?;
    let meter = Rc::new(RefCell::new(Meter::default()));
    let measured_from = world.now() + WARM_UP;
    for client in 0..setup.clients {
        let region = client % REGIONS.len();
        let mut rng = world.fork_rng();
        let delay = Span::from_micros(rng.below(WARM_UP.as_micros() / 2));
        let transactions = Transactions::new(setup.skew_centi, rng);
        let program = Client::new(region, setup.form, delay, transactions, Rc::clone(&meter), measured_from);
        world.add_client(SiteId { region: placed::id(region), shard: 0 }, program);
    }
    world.run_until(measured_from)?;
    let end: Time = measured_from + LENGTH;
    while meter.borrow().ended() < setup.transactions && world.now() < end {
        world.run_for(Span::from_secs(1))?;
        progress.passed(meter.borrow().ended().min(setup.transactions), setup.transactions);
    }
    let length = world.now().since(measured_from);
    meter.borrow_mut().closed = true;
    world.run_clients(world.now() + LENGTH)?;
    let meter = meter.borrow().clone();
    Ok(Run { meter, length, probes: world.probes().clone() })
}
