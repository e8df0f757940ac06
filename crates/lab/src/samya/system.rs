//! Builds the world of each system, and runs a setup in it.

use super::baselines::escrow::{Escrow, Shortage};
use super::baselines::multipaxsys::{self, Replica};
use super::load::{self, Blow, Load, LoadError, Place};
use super::meter::Meter;
use super::parameters::{EVENTS_MAX, LOCAL, MULTIPAXSYS_US, REGIONS};
pub use super::prediction::Models;
use super::prediction::{Foresight, LastEpoch};
use super::setup::{LeaderRegion, Prediction, Samya, Setup, System, Trouble};
use crate::experiment::Progress;
use rhumb_core::actor::Actor;
use rhumb_core::{RegionId, RttMatrix, SiteId, Span, Topology, wan};
use rhumb_quota::config::Config as SiteConfig;
use rhumb_quota::demand::Predictor;
use rhumb_quota::request::{Answer, Request};
use rhumb_quota::site::Site;
use rhumb_quota::spec::Spec;
use rhumb_sim::{Config, Fault, Links, Place as Where, World};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// What was run.
    pub setup: Setup,
    /// What was counted and timed.
    pub meter: Meter,
    /// How often the sites counted each event.
    pub probes: BTreeMap<&'static str, u64>,
    /// Events of the simulation.
    pub events: u64,
}

impl Run {
    /// How often the sites counted `event`.
    pub fn probe(&self, event: &str) -> u64 {
        self.probes.get(event).copied().unwrap_or(0)
    }
}

/// Runs `setup`.
pub fn run(setup: &Setup, models: Option<&Models>, progress: &mut dyn Progress) -> Result<Run, LoadError> {
    progress.begin(&setup.system.name());
    match setup.system {
        System::Samya(form) => samya(setup, form, models, progress),
        System::MultiPaxSys(settings, leader_region) => multipaxsys(setup, settings, leader_region, progress),
        System::Demarcation(lending) => escrow(setup, Shortage::Borrow(lending), progress),
        System::NoConstraint => escrow(setup, Shortage::Allow, progress),
        System::NoRedistribution => escrow(setup, Shortage::Reject, progress),
    }
}

fn samya(setup: &Setup, form: Samya, models: Option<&Models>, progress: &mut dyn Progress) -> Result<Run, LoadError> {
    let config = config(wan::profile("paper_samya_5").expect("it ships").matrix(), setup.sites_per_region);
    let cluster = Cluster::of_equals(setup);
    let predictors: Arc<dyn Fn(SiteId) -> Box<dyn Predictor> + Send + Sync> = {
        let (setup, models, places) = (setup.clone(), models.cloned(), cluster.places.clone());
        Arc::new(move |site| {
            let client = places.iter().position(|place| place.site == site).expect("every site has a client");
            let region = places[client].region;
            match (form.prediction, &models) {
                (Prediction::Perfect, _) => Box::new(Foresight::new(&setup, region, load::client_rngs(&setup, client).0)),
                (_, Some(models)) => models(region),
                (_, None) => Box::new(LastEpoch::default()),
            }
        })
    };
    let (topology, epoch) = (config.topology.clone(), setup.interval);
    let factory = move |site, _| {
        let predictors = Arc::clone(&predictors);
        let predictor: rhumb_quota::config::Predictors = Arc::new(move |_| Some(predictors(site)));
        let predictors = (form.prediction != Prediction::None).then_some(predictor);
        Site::new(site, &topology, SiteConfig { epoch, predictors, ..SiteConfig::default() })
    };
    let spec = Spec { protocol: form.protocol, offer: form.offer, ..Spec::new(setup.limit) };
    measure(World::new(config, setup.seed, factory), setup, &cluster, spec, true, progress)
}

fn escrow(setup: &Setup, shortage: Shortage, progress: &mut dyn Progress) -> Result<Run, LoadError> {
    let config = config(wan::profile("paper_samya_5").expect("it ships").matrix(), setup.sites_per_region);
    let (topology, rtt) = (config.topology.clone(), config.rtt.clone());
    let factory = move |site, _| Escrow::new(site, nearest_first(site, &topology, &rtt), shortage);
    let cluster = Cluster::of_equals(setup);
    measure(World::new(config, setup.seed, factory), setup, &cluster, Spec::new(setup.limit), shortage != Shortage::Allow, progress)
}

fn multipaxsys(
    setup: &Setup,
    settings: multipaxsys::Settings,
    leader_region: LeaderRegion,
    progress: &mut dyn Progress,
) -> Result<Run, LoadError> {
    let matrix = RttMatrix::parse("multipaxsys_7.csv", include_str!("../../data/multipaxsys_7.csv")).expect("a test reads it");
    let config = config(matrix, setup.sites_per_region);
    let cluster = Cluster::of_multipaxsys(setup, &config.topology);
    let sites: Vec<SiteId> = config.topology.sites().collect();
    let mut voters = cluster.servers.clone();
    voters.sort_by_key(|voter| config.topology.name(voter.region) != leader_region.region());
    let factory = move |site, _| Replica::new(site, sites.clone(), voters.clone(), settings);
    measure(World::new(config, setup.seed, factory), setup, &cluster, Spec::new(setup.limit), true, progress)
}

fn measure<A>(
    mut world: World<A>,
    setup: &Setup,
    cluster: &Cluster,
    spec: Spec,
    limited: bool,
    progress: &mut dyn Progress,
) -> Result<Run, LoadError>
where
    A: Actor<Request = Request, Answer = Answer>,
{
    let blows = cluster.blows(setup);
    let load = Load { setup, spec, places: &cluster.places, blows: &blows, limited };
    let meter = load::run(&mut world, &load, progress)?;
    Ok(Run { setup: setup.clone(), meter, probes: world.probes().clone(), events: world.events() })
}

fn config(rtt: RttMatrix, sites_per_region: u16) -> Config {
    Config { local: LOCAL, events_max: EVENTS_MAX, ..Config::new(rtt, sites_per_region) }
}

/// All sites but `site`, the nearest first; of equally near ones the first.
fn nearest_first(site: SiteId, topology: &Topology, rtt: &RttMatrix) -> Vec<SiteId> {
    let mut others: Vec<SiteId> = topology.sites().filter(|other| *other != site).collect();
    others.sort_by_key(|other| (rtt.one_way(site.region, other.region), *other));
    others
}

/// Who is where.
struct Cluster {
    /// The clients, each with the site it asks.
    places: Vec<Place>,
    /// The sites that keep the data, in the order in which they crash; the last one stays.
    servers: Vec<SiteId>,
    /// The clients that end with each of these, by place.
    paired: Vec<usize>,
}

/// The regions on the smaller side of a partition.
const CUT_OFF: [&str; 2] = ["asia-east2", "europe-west2"];

impl Cluster {
    /// A site with a client in each region, several if the setup says so. They crash from the last to the first.
    fn of_equals(setup: &Setup) -> Cluster {
        let place = |region: usize, shard| Place { site: SiteId::new(region as u16, shard), region };
        let places: Vec<Place> =
            (0..REGIONS.len()).flat_map(|region| (0..setup.sites_per_region).map(move |shard| place(region, shard))).collect();
        let paired: Vec<usize> = (0..places.len()).rev().collect();
        Cluster { servers: paired.iter().map(|&index| places[index].site).collect(), paired, places }
    }

    /// Five replicas and five clients, of which two have a gateway but no replica in their region: each replica in the US
    /// beyond the first crashes together with one of those. A leader in us-central1 is the second to crash.
    fn of_multipaxsys(setup: &Setup, topology: &Topology) -> Cluster {
        let places = Cluster::of_equals(setup).places.into_iter().filter(|place| place.site.shard == 0).collect();
        let site = |name: &str| SiteId { region: topology.region(name).expect("the matrix has it"), shard: 0 };
        let [second, first] = MULTIPAXSYS_US;
        let servers = [first, second, "europe-west2", "asia-east2", "us-west1"].map(site).to_vec();
        Cluster { places, servers, paired: vec![4, 3, 2, 1, 0] }
    }

    fn blows(&self, setup: &Setup) -> Vec<Blow> {
        match setup.trouble {
            Trouble::None => Vec::new(),
            Trouble::Crashes => {
                let apart = setup.length().as_micros() / self.servers.len() as u64;
                let crash = |(index, (server, client)): (usize, (&SiteId, &usize))| Blow {
                    at: Span::from_micros(apart * (index as u64 + 1)),
                    faults: vec![crash(*server), crash(self.places[*client].site)],
                    clients: vec![*client],
                };
                self.servers.iter().zip(&self.paired).enumerate().take(self.servers.len() - 1).map(crash).collect()
            }
            Trouble::Partition => {
                let cut_off = |index: usize| CUT_OFF.contains(&REGIONS[index].name);
                let cuts = (0..REGIONS.len()).filter(|&index| cut_off(index)).flat_map(|index| self.cuts(index));
                vec![Blow { at: Span::ZERO, faults: cuts.collect(), clients: Vec::new() }]
            }
        }
    }

    /// Cuts region number `index` off from every region with a site that is not cut off itself.
    fn cuts(&self, index: usize) -> Vec<Fault> {
        let here = RegionId(index as u16);
        let is_cut_off = |region: RegionId| REGIONS.get(usize::from(region.0)).is_some_and(|region| CUT_OFF.contains(&region.name));
        let mut others: Vec<RegionId> =
            self.places.iter().map(|place| place.site.region).chain(self.servers.iter().map(|it| it.region)).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|region| !is_cut_off(*region));
        let links = |other| Links::new(Where::Region(here), Where::Region(other));
        others.into_iter().flat_map(|other| [links(other), links(other).reversed()]).map(|links| Fault::Cut { links, span: None }).collect()
    }
}

fn crash(site: SiteId) -> Fault {
    Fault::Crash { place: Where::Site(site), down: None }
}
