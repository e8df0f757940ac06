//! Unequal machines: cores by the load of sites, and by the latency that is expected of them under it.
//!
//! The paper has machines of one kind, and says of others that scores could be based on latency (section III-B).

use super::super::cluster::Cluster;
use super::super::course::{Course, Leg};
use super::super::lab::Lab;
use super::super::meter::Counts;
use super::super::system::System;
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, ratio};
use rhumb_core::Span;
use rhumb_quad::quorums::{Policy, ScoreWeights, Scoring, Settings};

const CORES: usize = 2;
/// Periods, of which those from [`SETTLED`] on are measured.
const PERIODS: u64 = 24;
const SETTLED: usize = 20;
/// Speeds of the machines, per cent.
const SLOW_FIRST: [u64; 4] = [25, 25, 100, 100];
/// The slow ones have so many workers, by the case.
pub(super) const WORKERS: [(&str, [u64; 4]); 3] = [
    ("slow machines with half the load", [2, 2, 4, 4]),
    ("all with the same load", [4, 4, 4, 4]),
    ("slow machines with twice the load", [8, 8, 4, 4]),
];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let columns = ["", "by load ms", "by latency ms", "ratio", "by load tps", "by latency tps", "cores by load", "cores by latency"];
    let mut sheet = Sheet::new("Two of four machines four times slower, one datacenter: mean response time", &columns);
    let mut chart = Chart::new("Two of four machines four times slower", "periods", "mean response time, ms");
    for (title, workers) in WORKERS {
        let [load, latency] = [(Scoring::Load, "by load"), (Scoring::Latency, "by latency")].map(|(scoring, name)| {
            let course = course(lab.seed(), format!("{title}, {name}"), scoring, workers);
            let passed = course.run(progress)?;
            let points = passed.means_ms().into_iter().enumerate().map(|(period, mean)| (period as f64 + 0.5, mean));
            chart.line(course.title, points.collect());
            let counts: Counts = passed.meter.stages[SETTLED..].iter().flatten().sum();
            let (_, cores) = passed.configurations.last().expect("there were periods");
            let cores = cores.iter().map(|site| site.region.0.to_string()).collect::<Vec<_>>().join(", ");
            let seconds = (PERIODS as usize - SETTLED) as f64 * 5.0;
            Ok::<_, Failure>((counts.mean_ms(), counts.committed as f64 / seconds, cores))
        });
        let (load, latency) = (load?, latency?);
        let factor = ratio(load.0, latency.0);
        let cells = [one(load.0), one(latency.0), format!("{factor:.2}"), one(load.1), one(latency.1), load.2, latency.2];
        sheet.row(std::iter::once(title.to_owned()).chain(cells));
        outcome.findings.push(Finding::plain(format!("{title}: response time by load over by latency"), "", format!("{factor:.2}×")));
    }
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
    Ok(outcome)
}

/// Four sites, the first two on slow machines, under quorums that follow what is measured.
pub(super) fn course(seed: u64, title: String, scoring: Scoring, workers: [u64; 4]) -> Course {
    let system = System::new(Policy::Quad, CORES);
    let cluster = Cluster::datacenter(&[1.0; 4]);
    let settings = Settings { score: ScoreWeights { scoring, ..ScoreWeights::default() }, ..system.settings() };
    Course {
        title,
        quorums: System::new(Policy::QuadStatic, CORES).quorums(&cluster),
        cluster,
        speeds: SLOW_FIRST.to_vec(),
        settings: Some(settings),
        read_percent: 80,
        legs: vec![Leg { periods: PERIODS, workers: workers.to_vec() }],
        noise: 0.0,
        think_max: Span::ZERO,
        seed,
    }
}
