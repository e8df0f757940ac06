//! Runs setups for the experiments.

use super::cluster::Cluster;
use super::parameters as p;
use super::run::{self, Run, Setup};
use super::system::System;
use crate::experiment::{Options, Progress};
use rhumb_quad::quorums::Quorums;
use rhumb_sim::SimError;

/// The laboratory.
pub struct Lab {
    options: Options,
}

impl Lab {
    /// A laboratory.
    pub fn new(options: Options) -> Lab {
        Lab { options }
    }

    /// Decides all that is random.
    pub fn seed(&self) -> u64 {
        self.options.seed
    }

    /// Of so many periods those that a run of this length has time for.
    pub fn periods(&self, all: u64) -> u64 {
        (all / self.options.shorter.max(1) as u64).max(1)
    }

    /// A sizeup run: more and more workers, in shares of the cluster.
    pub fn sizeup(&self, system: System, cluster: &Cluster, read_percent: u64) -> Setup {
        let title = format!("{}, {} sites, {read_percent} % reads", system.name(), cluster.shares.len());
        self.setup(title, cluster, system.quorums(cluster), read_percent, self.some(&p::WORKERS))
    }

    /// A speedup run: so many workers all the time.
    pub fn speedup(&self, title: String, cluster: &Cluster, quorums: Quorums, read_percent: u64, workers: u64) -> Setup {
        let setup = self.setup(title, cluster, quorums, read_percent, vec![workers]);
        Setup { measured: setup.measured * p::SPEEDUP_LONGER, ..setup }
    }

    fn setup(&self, title: String, cluster: &Cluster, quorums: Quorums, read_percent: u64, workers: Vec<u64>) -> Setup {
        let is_wide = cluster.rtt != Cluster::datacenter(&cluster.shares).rtt;
        let (warm_up, measured) = if is_wide { (p::WARM_UP_WIDE, p::MEASURED_WIDE) } else { (p::WARM_UP, p::MEASURED) };
        Setup {
            title,
            cluster: cluster.clone(),
            quorums,
            read_percent,
            workers,
            background: Vec::new(),
            local: p::LOCAL,
            warm_up,
            measured,
            seed: self.options.seed,
        }
    }

    /// Of `all`, so many as a run of this length has time for: all, or the first and the last.
    pub fn some<T: Copy>(&self, all: &[T]) -> Vec<T> {
        self.options.some(all)
    }

    /// Runs `setup`.
    pub fn run(&self, setup: &Setup, progress: &mut dyn Progress) -> Result<Run, SimError> {
        run::run(setup, progress)
    }
}
