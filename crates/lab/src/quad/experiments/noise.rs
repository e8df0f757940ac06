//! Quorums under noise: an hour of loads that fluctuate at random and twice change for good. Noise is to change no roles, and what lasts
//! to change them once at the most.
//!
//! Real feedback: clients wait for their answers, so that whoever is served faster asks more often, and cores work for others.

use super::super::cluster::Cluster;
use super::super::course::{Course, Leg};
use super::super::lab::Lab;
use super::super::system::System;
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one};
use rhumb_core::Span;
use rhumb_quad::quorums::Policy;

const CORES: usize = 2;
const SITES: usize = 4;
/// Twenty minutes.
const PERIODS: u64 = 240;
/// Workers of a site …
const WORKERS: u64 = 4;
/// … more or fewer by up to this share of them, every second …
const NOISE: f64 = 0.5;
/// … and where a change has lasted, at one site so many times as many.
const MORE: u64 = 4;

/// One of the worlds.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) title: &'static str,
    pub(super) is_wide: bool,
    /// Workers think for so long at the most.
    pub(super) think_max: Span,
}

pub(super) const CASES: [Case; 3] = [
    Case { title: "four distances, workers without a pause", is_wide: true, think_max: Span::ZERO },
    Case { title: "four distances, workers that think", is_wide: true, think_max: Span::from_secs(2) },
    Case { title: "one datacenter, workers that think", is_wide: false, think_max: Span::from_secs(1) },
];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let periods = lab.periods(PERIODS);
    let columns = ["", "noise alone", "the nearest core loaded", "that load elsewhere", "cores at the end of each"];
    let mut sheet = Sheet::new(format!("Changes of the configuration in {} minutes of each", periods * 5 / 60), &columns);
    let mut chart = Chart::new("Response time under noise, and two changes", "minutes", "mean response time, ms");
    for case in CASES {
        let passed = case.course(lab.seed(), periods).run(progress)?;
        let legs: Vec<u64> = (0..3).map(|leg| passed.changes(leg * periods as usize..(leg + 1) * periods as usize)).collect();
        let cores = (1..=3).map(|leg| {
            let (_, cores) = &passed.configurations[leg * periods as usize - 1];
            cores.iter().map(|site| site.region.0.to_string()).collect::<Vec<_>>().join("+")
        });
        let cores = cores.collect::<Vec<_>>().join(", ");
        sheet.row([case.title.to_owned(), legs[0].to_string(), legs[1].to_string(), legs[2].to_string(), cores]);
        for (changes, what) in legs.iter().zip(["noise alone, beyond the first scoring", "the first change", "the second change"]) {
            outcome.findings.push(Finding::at_most(format!("{}: {what}", case.title), "at most one", *changes as f64, 1.0, ""));
        }
        // A minute to a point.
        let means = passed.means_ms();
        let minutes = means.chunks(12).enumerate();
        chart.line(case.title, minutes.map(|(minute, of)| (minute as f64 + 0.5, of.iter().sum::<f64>() / of.len() as f64)).collect());
        outcome.note(format!("{}: {} ms on average.", case.title, one(passed.meter.all().mean_ms())));
    }
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
    Ok(outcome)
}

impl Case {
    /// Three legs: noise; with a loaded core; with that load at a slave.
    pub(super) fn course(self, seed: u64, periods: u64) -> Course {
        let cluster = if self.is_wide { Cluster::classes(SITES) } else { Cluster::datacenter(&[1.0; SITES]) };
        let system = System::new(Policy::Quad, CORES);
        let loaded = |at: Option<usize>| (0..SITES).map(|site| if Some(site) == at { WORKERS * MORE } else { WORKERS }).collect();
        let legs = [None, Some(SITES - 1), Some(0)].map(|at| Leg { periods, workers: loaded(at) });
        Course {
            title: self.title.to_owned(),
            // As before anything was measured.
            quorums: System::new(Policy::QuadStatic, CORES).quorums(&Cluster::datacenter(&[1.0; SITES])),
            cluster,
            speeds: Vec::new(),
            settings: Some(system.settings()),
            read_percent: 80,
            legs: legs.to_vec(),
            noise: NOISE,
            think_max: self.think_max,
            seed,
        }
    }
}
