//! The experiments, a file each, named after the paper's figures (1 to 3 are diagrams), and two more of what the paper leaves open.

mod common;
mod figure10;
mod figure11;
mod figure4;
mod figure5;
mod figure6;
mod figure7;
mod figure8;
mod figure9;
mod machines;
mod noise;
#[cfg(test)]
mod tests;
mod unequal;

use super::lab::Lab;
use crate::experiment::Experiment;

/// All experiments in the order of the paper.
pub const EXPERIMENTS: [Experiment<Lab>; 11] = [
    Experiment { name: "quad-figure4", title: "A majority quorum's overhead, by reads", run: figure4::run },
    Experiment { name: "quad-figure5", title: "… by the distance and the load of one of its sites", run: figure5::run },
    Experiment { name: "quad-figure6", title: "Response time where loads differ, in one datacenter", run: figure6::run },
    Experiment { name: "quad-figure7", title: "… by the number of cores", run: figure7::run },
    Experiment { name: "quad-figure8", title: "… where distances differ", run: figure8::run },
    Experiment { name: "quad-figure9", title: "What an assignment should go by: load, distance, both", run: figure9::run },
    Experiment { name: "quad-figure10", title: "Balanced and unbalanced assignments", run: figure10::run },
    Experiment { name: "quad-figure11", title: "Quorums that follow a change of load, over time", run: figure11::run },
    Experiment { name: "quad-machines", title: "Figures 6 and 8 by what a message costs and by the workers", run: machines::run },
    Experiment { name: "quad-noise", title: "An hour of noise, and changes that last", run: noise::run },
    Experiment { name: "quad-unequal", title: "Unequal machines: scores by load and by latency", run: unequal::run },
];
