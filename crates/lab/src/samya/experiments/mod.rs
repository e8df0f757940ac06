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
mod table4;
mod table6;
#[cfg(test)]
mod tests;

use super::lab::Lab;
use crate::experiment::Experiment;

/// All experiments in the order of the paper; then what it leaves open.
pub const EXPERIMENTS: [Experiment<Lab>; 13] = [
    Experiment { name: "samya-table4", title: "Errors of one-step forecasts of demand", run: table4::run },
    Experiment { name: "samya-figure8", title: "Latency of transactions over an hour, a sample", run: figure8::run },
    Experiment { name: "samya-table6", title: "Latency at several percentiles", run: table6::run },
    Experiment { name: "samya-figure9", title: "Throughput over an hour", run: figure9::run },
    Experiment { name: "samya-figure10", title: "Throughput while sites crash, one after another", run: figure10::run },
    Experiment { name: "samya-figure11", title: "Throughput during a network partition", run: figure11::run },
    Experiment { name: "samya-figure12", title: "No constraint and no redistribution", run: figure12::run },
    Experiment { name: "samya-figure13", title: "With and without prediction", run: figure13::run },
    Experiment { name: "samya-figure14", title: "More sites", run: figure14::run },
    Experiment { name: "samya-figure15", title: "More reads", run: figure15::run },
    Experiment { name: "samya-figure16", title: "The maximum limit", run: figure16::run },
    Experiment { name: "samya-figure17", title: "The arrival rate of requests", run: figure17::run },
    Experiment { name: "samya-connections", title: "What hangs on the number of requests a client has outstanding", run: connections::run },
];
