//! Figure 10: QuAD with and without the penalty that spreads slaves over majorities of the cores, over workers.

use super::super::cluster::Cluster;
use super::super::lab::Lab;
use super::super::run::Run;
use super::super::system::System;
use super::common::mix;
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, ratio};
use rhumb_quad::quorums::Policy;

/// The mixes of the figure.
const MIXES: [u64; 2] = [80, 50];
const SITES: usize = 16;
const CORES: usize = 3;

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let cluster = Cluster::datacenter(&[1.0; SITES]);
    let systems = [Policy::Quad, Policy::QuadUnbalanced].map(|policy| System::new(policy, CORES));
    for read_percent in MIXES {
        let title = format!("{}, {SITES} sites alike, κ = {CORES}", mix(read_percent));
        let mut runs = Vec::new();
        for system in systems {
            let setup = lab.sizeup(system, &cluster, read_percent);
            let run = lab.run(&setup, progress)?;
            runs.push((system, setup.workers, run));
        }
        let stage = |run: &Run, stage: usize| run.meter.stage(stage).mean_ms();
        let mut sheet = Sheet::new(format!("{title}: mean response time, ms"), &["workers", "balanced", "unbalanced", "ratio"]);
        let [(_, workers, balanced), (_, _, unbalanced)] = &runs[..] else { unreachable!("two systems ran") };
        for (number, workers) in workers.iter().enumerate() {
            let (ours, theirs) = (stage(balanced, number), stage(unbalanced, number));
            sheet.row([workers.to_string(), one(ours), one(theirs), format!("{:.2}", ratio(theirs, ours))]);
        }
        let last = workers.len() - 1;
        let factor = |number: usize| ratio(stage(unbalanced, number), stage(balanced, number));
        let what = |workers: u64| format!("{}: unbalanced over balanced, {workers} workers", mix(read_percent));
        outcome.findings.push(Finding::at_least(what(workers[last]), "above", factor(last), 1.0, "×"));
        outcome.findings.push(Finding::plain(what(workers[0]), "", format!("{:.2}×", factor(0))));
        let mut chart = Chart::new(title, "workers", "mean response time, ms");
        for (system, workers, run) in &runs {
            let points = workers.iter().enumerate().map(|(number, workers)| (*workers as f64, stage(run, number)));
            chart.line(if system.policy == Policy::Quad { "balanced" } else { "unbalanced" }, points.collect());
        }
        outcome.sheets.push(sheet);
        outcome.charts.push(chart);
    }
    Ok(outcome)
}
