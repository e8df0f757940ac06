//! The experiments, a file each, named after the paper's tables and figures.

mod common;
mod connections;
mod figure10;
mod figure11;
mod figure12;
mod figure13;
mod figure14;
mod figure15;
mod figure16;
mod figure17;
mod figure8;
mod figure9;
mod table6;
#[cfg(test)]
mod tests;

use super::lab::Lab;
use super::load::LoadError;
use super::outcome::Outcome;
use super::progress::Progress;

/// Runs an experiment.
pub type RunExperiment = fn(&mut Lab, &mut dyn Progress) -> Result<Outcome, LoadError>;

/// An experiment.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Runs it.
    pub run: RunExperiment,
}

macro_rules! experiment {
    ($module:ident, $name:literal, $title:literal) => {
        Experiment { name: $name, title: $title, run: $module::run }
    };
}

/// All experiments that run in virtual time, in the order of the paper; then what it leaves open.
pub const EXPERIMENTS: [Experiment; 12] = [
    experiment!(figure8, "samya-figure8", "Latency of transactions over an hour, a sample"),
    experiment!(table6, "samya-table6", "Latency at several percentiles"),
    experiment!(figure9, "samya-figure9", "Throughput over an hour"),
    experiment!(figure10, "samya-figure10", "Throughput while sites crash, one after another"),
    experiment!(figure11, "samya-figure11", "Throughput during a network partition"),
    experiment!(figure12, "samya-figure12", "No constraint and no redistribution"),
    experiment!(figure13, "samya-figure13", "With and without prediction"),
    experiment!(figure14, "samya-figure14", "More sites"),
    experiment!(figure15, "samya-figure15", "More reads"),
    experiment!(figure16, "samya-figure16", "The maximum limit"),
    experiment!(figure17, "samya-figure17", "The arrival rate of requests"),
    experiment!(connections, "samya-connections", "What hangs on the number of requests a client has outstanding"),
];

/// The experiment called `name`.
pub fn experiment(name: &str) -> Option<Experiment> {
    EXPERIMENTS.into_iter().find(|experiment| experiment.name == name)
}
