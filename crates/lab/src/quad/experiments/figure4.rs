//! Figure 4: what a transaction over majority quorums costs, by the share of reads, where all sites are alike and one worker is alone.
//!
//! The paper's three parts: *processing* until a transaction has begun at its gateway; *2PL* for the reads under locks at a read quorum;
//! *2PC* for the commit.

use super::super::cluster::Cluster;
use super::super::lab::Lab;
use super::super::meter::Counts;
use super::super::parameters::MIXES;
use super::super::system::System;
use super::common::{MIX, mix, updates};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, ratio};
use rhumb_quad::quorums::Policy;

/// The names of a transaction's parts, and where they are counted.
pub(super) const PARTS: [&str; 3] = ["processing", "2PL", "2PC"];

/// What each of [`PARTS`] takes, milliseconds.
pub(super) fn parts(counts: &Counts) -> [f64; 3] {
    [counts.part_ms(|times| times.begin), counts.part_ms(|times| times.read), counts.part_ms(|times| times.commit)]
}

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let cluster = Cluster::datacenter(&[1.0, 0.0, 0.0, 0.0]);
    let system = System::new(Policy::MajorityRandom, 1);
    let mut sheet = Sheet::new("MQ, 4 sites, one worker: parts of a transaction, ms", &[&[MIX][..], &PARTS, &["all"]].concat());
    let mut points: [Vec<(f64, f64)>; 3] = Default::default();
    for read_percent in lab.some(&MIXES) {
        let title = format!("MQ, {read_percent} % reads");
        let run = lab.run(&lab.speedup(title, &cluster, system.quorums(&cluster), read_percent, 1), progress)?;
        let counts = run.meter.all();
        let parts = parts(&counts);
        for (points, part) in points.iter_mut().zip(parts) {
            points.push((updates(read_percent), part));
        }
        sheet.row(std::iter::once(mix(read_percent)).chain(parts.map(one)).chain([one(counts.mean_ms())]));
    }
    let grows = |part: usize| ratio(points[part][points[part].len() - 1].1, points[part][0].1);
    outcome.findings.push(Finding::at_least("2PC, updates alone over reads alone", "grows with updates", grows(2), 1.5, "×"));
    outcome.findings.push(Finding::between("2PL, updates alone over reads alone", "constant", grows(1), 0.8, 1.25, "×"));
    let steadily = points[2].windows(2).all(|pair| pair[1].1 > pair[0].1);
    outcome.findings.push(Finding { met: Some(steadily), ..Finding::plain("2PC grows with each mix", "yes", yes(steadily)) });
    let mut chart = Chart::new("MQ, 4 sites, one worker", "updates, per cent of the transactions", "ms of a transaction");
    for (name, points) in PARTS.iter().zip(points) {
        chart.line(*name, points);
    }
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
    Ok(outcome)
}

/// A verdict as text.
pub(super) fn yes(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}
