//! The cluster under test: a demo of five regions, TPC-C loaded, a probe at every gateway.

use super::majority;
use super::probe::{self, Probe};
use crate::common::{self, Demo, until};
use crate::load;
use rhumb_bench::client::postgres::Endpoint;
use rhumb_core::{RegionId, RttMatrix, wan};
use rustix::process::Signal;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_postgres::Client;

const PROFILE: &str = "paper_replicated_commit_5";
/// So often a probe commits before anything is measured.
const WARM_UP_RAISES: usize = 5;
const WARM_UP_MAX: Duration = Duration::from_secs(60);
const BREATH: Duration = Duration::from_millis(50);

/// Five regions at work.
pub struct Cluster {
    demo: Demo,
    endpoints: Vec<Endpoint>,
    probes: Vec<Arc<Probe>>,
    matrix: RttMatrix,
    /// By how many regions the fates are moved on.
    turn: usize,
    _data: TempDir,
}

impl Cluster {
    /// Starts it.
    pub async fn start() -> Cluster {
        let turn = std::env::var("RHUMB_FAULTS_TURN").map_or(0, |turn| turn.parse().expect("RHUMB_FAULTS_TURN is a number"));
        let matrix = wan::profile(PROFILE).expect("shipped").matrix();
        let data = tempfile::tempdir().expect("a folder");
        let demo = Demo::start_alone(&["--wan", PROFILE, "--data", data.path().to_str().expect("text")]);
        let endpoints = Endpoint::from_ready_file(&demo.path("ready.json")).expect("the demo wrote it");
        load::init(&endpoints).await;
        majority::prepare(&demo.connect(0).await).await;
        let probes = probe::start(&endpoints).await;
        let started = Instant::now();
        for probe in &probes {
            while probe.acknowledged_from(started).len() < WARM_UP_RAISES {
                assert!(started.elapsed() < WARM_UP_MAX, "a probe does not commit");
                tokio::time::sleep(BREATH).await;
            }
        }
        Cluster { demo, endpoints, probes, matrix, turn, _data: data }
    }

    /// Where its gateways are, in the order of the regions.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// The probes, in the order of the regions.
    pub fn probes(&self) -> &[Arc<Probe>] {
        &self.probes
    }

    /// The regions that have these fates, in order.
    pub fn fated(&self, fates: &[usize]) -> Vec<usize> {
        let mut regions: Vec<usize> = fates.iter().map(|fate| (fate + self.turn) % self.endpoints.len()).collect();
        regions.sort_unstable();
        regions
    }

    /// All regions but these.
    pub fn others(&self, regions: &[usize]) -> Vec<usize> {
        (0..self.endpoints.len()).filter(|region| !regions.contains(region)).collect()
    }

    /// A region's name.
    pub fn name(&self, region: usize) -> &str {
        &self.matrix.names()[region]
    }

    /// The names of some regions, as a sentence lists them.
    pub fn names(&self, regions: &[usize]) -> String {
        regions.iter().map(|&region| self.name(region)).collect::<Vec<_>>().join(", ")
    }

    /// The round trip from `region` to the nearest majority of all regions in which none of `dead` is.
    pub fn majority_rtt(&self, region: usize, dead: &[usize]) -> Duration {
        let all = self.endpoints.len();
        let to = |other: usize| self.matrix.rtt(RegionId(region as u16), RegionId(other as u16));
        let mut trips: Vec<_> = (0..all).filter(|other| !dead.contains(other)).map(to).collect();
        trips.sort_unstable();
        Duration::from_micros(trips[all / 2].as_micros())
    }

    /// A new connection to the gateway of `region`.
    pub async fn connect(&self, region: usize) -> Client {
        self.demo.connect(region).await
    }

    /// Kills the sites of `regions` from outside, one right after the other, and returns when that was.
    pub fn kill(&self, regions: &[usize]) -> Instant {
        let sites = self.demo.running()["sites"].clone();
        let pid = |&region: &usize| sites[region]["pid"].as_u64().expect("it lives") as u32;
        let pids: Vec<u32> = regions.iter().map(pid).collect();
        let killed = Instant::now();
        pids.iter().for_each(|&pid| common::send(pid, Signal::KILL));
        killed
    }

    /// Starts the killed sites of `regions` again and waits until all sites are ready.
    pub fn restart(&self, regions: &[usize]) {
        until("the demo notices who died", || self.demo.pids().len() + regions.len() == self.endpoints.len());
        for &region in regions {
            let said = self.demo.chaos(&["restart", self.name(region)]);
            assert!(said.contains(" is back, ready after "), "{said}");
        }
        let of_demo = format!("--demo={}", self.demo.state());
        until("all sites are ready", || common::rhumb(&["status", &of_demo]).status.success());
    }
}
