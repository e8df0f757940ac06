//! Runs a load on a quota, and reports.

use super::client::{QuotaClient, kind};
use super::meter::Meter;
use super::mix::Mix;
use super::places::{Place, group_by_region};
use super::redistributions;
use super::report::{RegionReport, Report};
use super::stages::{known, unreachable_at};
use super::trace::Want;
use super::wants::Wants;
use crate::client::redis::{Connection, Endpoint, Reply};
use crate::driver::{self, ClientSlot, DriverOptions, Results, Workload};
use crate::error::BenchError;
use crate::lock::lock;
use crate::progress::Progress;
use crate::report::Conditions;
use rhumb_core::Rng;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// Operations that a client sends together at the most: as many as a site takes of one connection.
pub const PIPELINE_MAX: usize = 1_024;

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// How much load, how, and for how long.
    pub driver: DriverOptions,
    /// The quota.
    pub quota: String,
    /// What clients ask for.
    pub mix: Mix,
    /// Operations that a client sends together.
    pub pipeline: usize,
    /// Give every operation an id.
    pub ids: bool,
}

/// Runs and reports.
pub async fn run(endpoints: &[Endpoint], options: &RunOptions, progress: &dyn Progress) -> Result<Report, BenchError> {
    options.driver.check()?;
    if !(1..=PIPELINE_MAX).contains(&options.pipeline) {
        let found = options.pipeline;
        return Err(BenchError::Options(format!("a pipeline of {found} operations; allowed are 1 to {PIPELINE_MAX}")));
    }
    let mut limit = 0;
    for endpoint in endpoints {
        limit = known(endpoint, &options.quota).await?;
    }
    let before = redistributions::of_all(endpoints).await;
    let mut rng = Rng::seeded(options.driver.seed);
    let places = group_by_region(endpoints)?;
    let wants = (0..places.len()).map(|region| Arc::new(Mutex::new(Wants::new(options.mix, region, rng.fork())))).collect();
    let run = Run { options, places, wants, id: options.ids.then(run_id) };
    let results = driver::run(&run, &options.driver, progress).await?;
    let redistributions = redistributions::since(before, redistributions::of_all(endpoints).await);
    let kept = run.give_back().await;
    Ok(run.report(limit, &results, redistributions, kept))
}

/// What ids of this run begin with, unlike those of runs before.
fn run_id() -> String {
    format!("bench-{:x}", SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros()))
}

/// A load on its way to the sites.
struct Run<'a> {
    options: &'a RunOptions,
    places: Vec<Place>,
    /// What is wanted and held, by region.
    wants: Vec<Arc<Mutex<Wants>>>,
    /// What the ids of operations begin with, if they have any.
    id: Option<String>,
}

impl Workload for Run<'_> {
    type Client = QuotaClient;

    fn regions(&self) -> usize {
        self.places.len()
    }

    fn kinds(&self) -> usize {
        [Want::Acquire, Want::Release].len()
    }

    fn batch_max(&self) -> usize {
        self.options.pipeline
    }

    async fn client(&self, slot: ClientSlot, _: Rng) -> Result<QuotaClient, BenchError> {
        let addresses = &self.places[slot.region].addresses;
        let address = addresses[slot.index % addresses.len()].clone();
        let connection = Some(Connection::open(&address).await.map_err(|error| unreachable_at(&address, &error))?);
        let id = self.id.as_ref().map(|run| format!("{run}-{}", slot.number()));
        let wants = self.wants[slot.region].clone();
        Ok(QuotaClient { quota: self.options.quota.clone(), id, wants, address, connection, sent: 0 })
    }
}

impl Run<'_> {
    /// Releases what clients hold, each region at one of its own sites. Returns how many tokens could not be given back.
    async fn give_back(&self) -> u64 {
        let mut kept = 0;
        for (place, wants) in self.places.iter().zip(&self.wants) {
            let held = lock(wants).take_held();
            let release = async {
                let mut connection = Connection::open(&place.addresses[0]).await?;
                connection.ask(&["RELEASE", &self.options.quota, &held.to_string()]).await
            };
            if held > 0 && !matches!(release.await, Ok(Reply::Integer(_))) {
                kept += held;
            }
        }
        kept
    }

    fn report(&self, limit: u64, results: &Results<Meter>, redistributions: Option<BTreeMap<String, u64>>, kept: u64) -> Report {
        let (options, measured_s) = (&self.options.driver, results.measured_s);
        let clients = options.clients_per_region;
        let (acquire, release) = (kind(Want::Acquire), kind(Want::Release));
        let regions: Vec<RegionReport> = self
            .places
            .iter()
            .zip(&results.regions)
            .map(|(place, measured)| {
                let (acquire, release) = (&measured.meters[acquire], &measured.meters[release]);
                RegionReport::new(&place.name, clients, acquire, release, measured.overdue, measured_s)
            })
            .collect();
        let overdue = regions.iter().map(|region| region.overdue).sum();
        let all = clients * regions.len();
        let load = format!("{}, pipeline {}, {}", options.pace.describe(clients), self.options.pipeline, self.options.mix);
        let mut warnings = Vec::new();
        if kept > 0 {
            warnings.push(format!("{kept} tokens could not be given back after the run and stay held"));
        }
        Report {
            quota: self.options.quota.clone(),
            limit,
            conditions: Conditions::new(load, options, measured_s),
            total: RegionReport::new("all", all, &results.kind(acquire), &results.kind(release), overdue, measured_s),
            regions,
            redistributions,
            warnings,
        }
    }
}
