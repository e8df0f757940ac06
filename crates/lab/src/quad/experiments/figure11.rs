//! Figure 11: response time over periods, while the loads of a core and a slave are swapped, and while one core's load rises.
//!
//! The same quorums at first, from the first loads; then QuAD follows what its sites measure, and the others stay.

use super::super::cluster::Cluster;
use super::super::course::{Course, Leg, Passed};
use super::super::lab::Lab;
use super::super::system::System;
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one};
use rhumb_core::Span;
use rhumb_quad::quorums::Policy;

/// Workers by site at first: sites 2 and 3 are the cores.
const BEFORE: [u64; 4] = [12, 4, 2, 2];
/// The loads of site 0, a slave, and site 3, a core, are swapped.
pub(super) const SWAPPED: [u64; 4] = [2, 4, 2, 12];
/// The load of site 3, a core, rises above that of site 1, one of the slaves.
const RISEN: [u64; 4] = [12, 4, 2, 8];
const CORES: usize = 2;
/// Of a hundred transactions so many only read; the paper does not say.
const READ_PERCENT: u64 = 80;
/// Periods before the change, and after.
pub(super) const PERIODS: (u64, u64) = (12, 12);
/// Within so many periods the response time is to be back: those of the sites end in the middle of these, so the second one that tells of the
/// new loads ends with half a period left.
pub(super) const WITHIN: usize = 2;
/// It is back if it is at most so much above what it was.
pub(super) const BACK: f64 = 1.1;

/// What is compared.
const SYSTEMS: [(&str, Policy, bool); 4] = [
    ("QuAD", Policy::Quad, true),
    ("QuAD, not adaptive", Policy::Quad, false),
    ("MQ-RA", Policy::MajorityRandom, false),
    ("MQ-RR", Policy::MajorityRoundRobin, false),
];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let swapped = part(lab, "(a) loads of a core and a slave swapped", SWAPPED, &mut outcome, progress)?;
    for (name, means) in &swapped[..2] {
        let factor = after(means) / before(means);
        let what = format!("(a) {name}: response time once {WITHIN} periods have passed since the swap, over before");
        outcome.findings.push(if *name == "QuAD" {
            Finding::at_most(what, "back at its level", factor, BACK, "×")
        } else {
            Finding::at_least(what, "stays above", factor, BACK, "×")
        });
    }
    let risen = part(lab, "(b) load of a core risen", RISEN, &mut outcome, progress)?;
    let [(_, ours), (_, theirs), ..] = &risen[..] else { unreachable!("four systems ran") };
    let what = "(b) QuAD: response time in the last two periods, over before";
    outcome.findings.push(Finding::at_least(what, "stays higher", last(ours) / before(ours), 1.0, "×"));
    let what = "(b) not adaptive over QuAD, in the last two periods";
    outcome.findings.push(Finding::at_least(what, "above 1", last(theirs) / last(ours), 1.0, "×"));
    Ok(outcome)
}

/// One of both parts: a table, a chart, and the mean response times of each system by period.
fn part(
    lab: &Lab,
    title: &str,
    then: [u64; 4],
    outcome: &mut Outcome,
    progress: &mut dyn Progress,
) -> Result<Vec<(&'static str, Vec<f64>)>, Failure> {
    let columns: Vec<&str> = std::iter::once("period").chain(SYSTEMS.map(|(name, ..)| name)).chain(["cores of QuAD"]).collect();
    let mut sheet = Sheet::new(format!("{title}: mean response time by period of 5 s, ms"), &columns);
    let mut chart = Chart::new(title, "periods since the change", "mean response time, ms");
    let mut all = Vec::new();
    let mut cores = Vec::new();
    for (name, policy, is_adaptive) in SYSTEMS {
        let passed = swap(lab, name, policy, is_adaptive, then).run(progress)?;
        let means = passed.means_ms();
        let since = |period: usize| period as f64 + 0.5 - PERIODS.0 as f64;
        chart.line(name, means.iter().enumerate().map(|(period, mean)| (since(period), *mean)).collect());
        if is_adaptive {
            cores = (0..means.len()).map(|period| cores_of(&passed, period)).collect();
            let (before, after) = (passed.changes(0..PERIODS.0 as usize), passed.changes(PERIODS.0 as usize..means.len()));
            outcome.findings.push(Finding::at_most(format!("{title}: changes before it"), "none", before as f64, 0.0, ""));
            outcome.findings.push(Finding::between(format!("{title}: changes after it"), "one", after as f64, 1.0, 1.0, ""));
        }
        all.push((name, means));
    }
    for (period, cores) in cores.into_iter().enumerate() {
        let number = period as i64 - PERIODS.0 as i64;
        let number = if number < 0 { number } else { number + 1 };
        sheet.row(std::iter::once(format!("{number:+}")).chain(all.iter().map(|(_, means)| one(means[period]))).chain([cores]));
    }
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
    Ok(all)
}

/// Four sites of one datacenter, whose loads change from [`BEFORE`] to `then`.
pub(super) fn swap(lab: &Lab, title: &str, policy: Policy, is_adaptive: bool, then: [u64; 4]) -> Course {
    let cluster = Cluster::datacenter(&BEFORE.map(|workers| workers as f64));
    let system = System::new(policy, CORES);
    let legs = [(PERIODS.0, BEFORE), (PERIODS.1, then)].map(|(periods, workers)| Leg { periods, workers: workers.to_vec() });
    Course {
        title: title.to_owned(),
        quorums: system.quorums(&cluster),
        cluster,
        speeds: Vec::new(),
        settings: is_adaptive.then(|| system.settings()),
        read_percent: READ_PERCENT,
        legs: legs.to_vec(),
        noise: 0.0,
        think_max: Span::ZERO,
        seed: lab.seed(),
    }
}

/// The mean of all periods before the change.
pub(super) fn before(means: &[f64]) -> f64 {
    mean(&means[..PERIODS.0 as usize])
}

/// The mean of all periods in which it is to have recovered.
pub(super) fn after(means: &[f64]) -> f64 {
    mean(&means[PERIODS.0 as usize + WITHIN..])
}

/// A change that gains little comes late: what counts is how it ends.
fn last(means: &[f64]) -> f64 {
    mean(&means[means.len() - 2..])
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len().max(1) as f64
}

fn cores_of(passed: &Passed, period: usize) -> String {
    let mut cores: Vec<String> = passed.configurations[period].1.iter().map(|site| site.region.0.to_string()).collect();
    cores.sort();
    cores.join(", ")
}
