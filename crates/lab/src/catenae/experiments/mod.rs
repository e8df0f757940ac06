//! The experiments, a file each, most of them named after the paper's figures.

mod asymmetric;
mod common;
mod contention;
mod figure1;
mod figure5;
mod figure6;
mod figure7;
#[cfg(test)]
mod tests;

use super::lab::Lab;
use crate::experiment::Experiment;

/// All experiments in the order of the paper; two more of our own.
pub const EXPERIMENTS: [Experiment<Lab>; 6] = [
    Experiment { name: "catenae-figure1", title: "How often speculation succeeds", run: figure1::run },
    Experiment { name: "catenae-figure5", title: "Micro-benchmark: reads, and reads with writes", run: figure5::run },
    Experiment { name: "catenae-figure6", title: "The length of an epoch", run: figure6::run },
    Experiment { name: "catenae-figure7", title: "TPC-C: New-Order and Order-Status under contention", run: figure7::run },
    Experiment { name: "catenae-contention", title: "New-Order by the number of warehouses", run: contention::run },
    Experiment { name: "catenae-asymmetric", title: "Unequal machines, late and lost messages", run: asymmetric::run },
];
