//! The experiments, a file each, named after the paper's figures. Figure 1 is of memory and networks in general, Figure 3 a
//! diagram.

mod common;
mod figure10;
mod figure11;
mod figure12;
mod figure2;
mod figure4;
mod figure5;
mod figure6;
mod figure7;
mod figure8;
mod figure9;
#[cfg(test)]
mod tests;

use super::lab::Lab;
use crate::experiment::Experiment;

/// All experiments in the order of the paper.
pub const EXPERIMENTS: [Experiment<Lab>; 10] = [
    Experiment { name: "gplacer-figure2", title: "The nearest quorum under every placement of three replicas", run: figure2::run },
    Experiment { name: "gplacer-figure4", title: "Commits handed over", run: figure4::run },
    Experiment { name: "gplacer-figure5", title: "Replicas where no clients are", run: figure5::run },
    Experiment { name: "gplacer-figure6", title: "Transaction latency by reads and handoff", run: figure6::run },
    Experiment { name: "gplacer-figure7", title: "Commit latency", run: figure7::run },
    Experiment { name: "gplacer-figure8", title: "Throughput", run: figure8::run },
    Experiment { name: "gplacer-figure9", title: "Abort rate", run: figure9::run },
    Experiment { name: "gplacer-figure10", title: "How long searches for a placement take on this machine", run: figure10::run },
    Experiment { name: "gplacer-figure11", title: "How good the placements of heuristics are", run: figure11::run },
    Experiment { name: "gplacer-figure12", title: "Where leaders of partitions stand", run: figure12::run },
];
