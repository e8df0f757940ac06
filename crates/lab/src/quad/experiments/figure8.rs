//! Figure 8: response time by the mix of reads and updates over several datacenters, where sites are alike but for their distances.

use super::super::cluster::Cluster;
use super::super::lab::Lab;
use super::super::parameters::MIXES;
use super::common::{by_mix, factors, four, order};
use crate::experiment::{Failure, Finding, Outcome, Progress};

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for (sites, cores) in [(4, 2), (8, 4), (16, 8)] {
        let title = format!("{sites} sites, κ = {cores}, distances of 4 : 2 : 1");
        let runs = by_mix(lab, &title, &Cluster::classes(sites), &four(cores), &MIXES, &mut outcome, progress)?;
        let [quad, random, in_turn, _] = four(cores);
        for majority in [random, in_turn] {
            for (read_percent, factor) in factors(&runs, majority, quad).into_iter().filter(|(read_percent, _)| *read_percent <= 20) {
                let what = format!("{title}: {} over QuAD, {read_percent}/{}", majority.name(), 100 - read_percent);
                outcome.findings.push(Finding::at_least(what, "nearly 3×", factor, 2.5, "×"));
            }
        }
        order(&title, &runs, cores, &mut outcome);
    }
    Ok(outcome)
}
