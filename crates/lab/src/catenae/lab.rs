//! Runs setups for the experiments, each once however many experiments ask for it.

use super::load::LoadError;
use super::parameters as p;
use super::run::{self, Run};
use super::setup::{Clients, Setup, System};
use super::workload::Workload;
use crate::experiment::{Options, Progress, RunCache};
use std::rc::Rc;

/// The laboratory.
pub struct Lab {
    options: Options,
    runs: RunCache<Setup, Run>,
}

impl Lab {
    /// A laboratory.
    pub fn new(options: Options) -> Lab {
        Lab { options, runs: RunCache::new() }
    }

    /// `system` under `workload` with so many clients per server, measured as long as the options have it.
    pub fn closed(&self, system: System, workload: Workload, clients: u64) -> Setup {
        let (warm_up, measured) = match self.options.shorter {
            0 | 1 => (p::WARM_UP, p::MEASURED),
            _ => (p::WARM_UP_QUICK, p::MEASURED_QUICK),
        };
        Setup { warm_up, measured, ..Setup::new(system, workload, Clients::Closed(clients), self.options.seed) }
    }

    /// `system` under `workload` at so many transactions a second.
    pub fn open(&self, system: System, workload: Workload, rate: u64) -> Setup {
        let count = p::TXNS_OF_FIGURE_1 / self.options.shorter.max(1) as u64;
        Setup::new(system, workload, Clients::Open { rate, count }, self.options.seed)
    }

    /// Of `all`, so many as a run of this length has time for: all, or the first and the last.
    pub fn some<T: Copy>(&self, all: &[T]) -> Vec<T> {
        self.options.some(all)
    }

    /// Runs `setup`, unless that was done before.
    pub fn run(&mut self, setup: &Setup, progress: &mut dyn Progress) -> Result<Rc<Run>, LoadError> {
        self.runs.once(setup, || run::run(setup, progress))
    }
}
