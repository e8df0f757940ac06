//! Figure 6: response time by the mix of reads and updates in one datacenter, where sites have different loads; and all other quorum
//! systems beside it.

use super::super::cluster::Cluster;
use super::super::lab::Lab;
use super::super::parameters::{MIXES, SHARES_4, SHARES_8, shares_16};
use super::super::system::System;
use super::common::{by_mix, factors, four, order};
use crate::experiment::{Failure, Finding, Outcome, Progress, ratio};
use rhumb_quad::quorums::Policy;

/// Beside the four of the paper's figure. In one datacenter QuAD by load alone is QuAD, and QuAD by distance alone does not adapt.
const OTHERS: [Policy; 6] = [Policy::QuadUnbalanced, Policy::QuadStatic, Policy::Rowa, Policy::Rowaa, Policy::Tree, Policy::Grid];
/// Their cores and mixes.
const OTHERS_CORES: usize = 4;
const OTHERS_MIXES: [u64; 2] = [100, 0];
/// Workers of the speedup run that holds QuAD against ROWAA: one at each site.
const ALONE: u64 = 4;

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for (shares, cores) in [(SHARES_4.to_vec(), 2), (SHARES_8.to_vec(), 4), (shares_16(), 8)] {
        let title = format!("{} sites, κ = {cores}, one datacenter", shares.len());
        let runs = by_mix(lab, &title, &Cluster::datacenter(&shares), &four(cores), &MIXES, &mut outcome, progress)?;
        let [quad, random, in_turn, _] = four(cores);
        for majority in [random, in_turn] {
            for (read_percent, factor) in factors(&runs, majority, quad).into_iter().filter(|(read_percent, _)| *read_percent <= 20) {
                let what = format!("{title}: QuAD below {}, {read_percent}/{}", majority.name(), 100 - read_percent);
                outcome.findings.push(Finding::at_least(what, "over 50 %", (1.0 - 1.0 / factor) * 100.0, 50.0, " %"));
            }
        }
        order(&title, &runs, cores, &mut outcome);
    }
    let title = format!("Other systems, {} sites, κ = {OTHERS_CORES}", SHARES_8.len());
    let others = OTHERS.map(|policy| System::new(policy, OTHERS_CORES));
    by_mix(lab, &title, &Cluster::datacenter(&SHARES_8), &others, &OTHERS_MIXES, &mut outcome, progress)?;
    let alike = Cluster::datacenter(&[1.0; 4]);
    let mut mean_of_reads = |policy| -> Result<f64, Failure> {
        let system = System::new(policy, 2);
        let title = format!("{}, reads alone, all sites alike", system.name());
        Ok(lab.run(&lab.speedup(title, &alike, system.quorums(&alike), 100, ALONE), progress)?.mean_ms())
    };
    let (quad, rowaa) = (mean_of_reads(Policy::Quad)?, mean_of_reads(Policy::Rowaa)?);
    let what = "reads alone, all sites alike: QuAD over ROWAA";
    outcome.findings.push(Finding::between(what, "2.5×", ratio(quad, rowaa), 2.0, 3.0, "×"));
    Ok(outcome)
}
