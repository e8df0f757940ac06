//! Runs setups for the experiments, each once however many experiments ask for it.

use super::form::Form;
use super::parameters::{CLIENTS, CLIENTS_BEFORE_THROTTLING, SKEW_CENTI, TRANSACTIONS};
use super::run::{self, Run, Setup};
use crate::experiment::{Options, Progress, RunCache};
use rhumb_sim::SimError;
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

    /// Decides all that is random.
    pub fn seed(&self) -> u64 {
        self.options.seed
    }

    /// `count` of something that a shorter evaluation has fewer of; at least one.
    pub fn fewer(&self, count: usize) -> usize {
        (count / self.options.shorter.max(1)).max(1)
    }

    /// `form` with so many clients, all else as in section 5.1.
    pub fn setup(&self, form: Form, clients: usize) -> Setup {
        let transactions = TRANSACTIONS / self.options.shorter.max(1) as u64;
        Setup { form, clients, skew_centi: SKEW_CENTI, transactions, seed: self.options.seed }
    }

    /// The numbers of clients that figures 6 to 9 go through; in a shorter evaluation only the one that claims are about.
    pub fn clients(&self) -> &'static [usize] {
        if self.options.shorter > 1 { &[CLIENTS_BEFORE_THROTTLING] } else { &CLIENTS }
    }

    /// Runs `setup`, unless that was done before.
    pub fn run(&mut self, setup: &Setup, progress: &mut dyn Progress) -> Result<Rc<Run>, SimError> {
        self.runs.once(setup, || run::run(setup, progress))
    }
}
