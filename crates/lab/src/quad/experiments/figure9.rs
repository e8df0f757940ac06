//! Figure 9: an assignment by load and distance, beside one by load alone and one by distance alone.
//!
//! Three cores and a slave, at which all workers are. The nearest core has the most to do. As in the paper roles are given, and only
//! the slave's assignment differs.

use super::super::cluster::Cluster;
use super::super::lab::Lab;
use super::super::parameters::MIXES;
use super::super::run::{Run, Setup};
use super::super::system::one_slave;
use super::common::{MIX, mix, updates};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, ratio};
use rhumb_core::Span;
use rhumb_quad::quorums::CostWeights;

/// Workers, all at the slave.
const WORKERS: u64 = 20;
/// What an assignment goes by.
const BOTH: CostWeights = CostWeights { communication: 1.0, load: 1.0, balance: 1.0 };
const LOAD: CostWeights = CostWeights { communication: 0.0, ..BOTH };
const RTT: CostWeights = CostWeights { load: 0.0, ..BOTH };

/// One of the four comparisons.
struct Case {
    title: &'static str,
    other: (&'static str, CostWeights),
    /// Round trips from the slave to each core, milliseconds.
    rtt_ms: [u64; 3],
    /// Clients that keep the slave and each core busy, apart from the workers: so many milliseconds of latency.
    load_ms: [u64; 4],
    /// Whether QuAD is the faster one in the paper.
    wins: bool,
}

/// Loads are a tenth of the paper's 2,500, 500 and 100 ms. The slave has half of the most loaded core's, or a slave's load would not
/// count. Distances are in the loads' ratio for (a), and closer together for the others: where they differ as much as loads do, both
/// assignments are the same.
const CASES: [Case; 4] = [
    Case { title: "(a) load only", other: ("load only", LOAD), rtt_ms: [60, 120, 240], load_ms: [30, 60, 30, 15], wins: true },
    Case { title: "(b) RTT only, large load", other: ("RTT only", RTT), rtt_ms: [160, 200, 240], load_ms: [125, 250, 125, 62], wins: true },
    Case { title: "(c) RTT only, middle load", other: ("RTT only", RTT), rtt_ms: [160, 200, 240], load_ms: [25, 50, 25, 12], wins: false },
    Case { title: "(d) RTT only, small load", other: ("RTT only", RTT), rtt_ms: [160, 200, 240], load_ms: [5, 10, 5, 2], wins: false },
];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mixes = lab.some(&MIXES);
    let mut chart = Chart::new(
        "QuAD against assignments by one property",
        "updates, per cent of the transactions",
        "speedup: response time over QuAD's",
    );
    for case in &CASES {
        let columns = [MIX, "QuAD ms", &format!("{} ms", case.other.0), "speedup"];
        let mut sheet = Sheet::new(format!("{}: mean response time", case.title), &columns);
        let mut points = Vec::new();
        for &read_percent in &mixes {
            let mut mean = |name: &str, weights| -> Result<f64, Failure> {
                let title = format!("{}, {name}, {read_percent} % reads", case.title);
                Ok(case.run(title, weights, read_percent, lab, progress)?.mean_ms())
            };
            let (ours, theirs) = (mean("QuAD", BOTH)?, mean(case.other.0, case.other.1)?);
            let speedup = ratio(theirs, ours);
            sheet.row([mix(read_percent), one(ours), one(theirs), format!("{speedup:.2}")]);
            points.push((updates(read_percent), speedup));
        }
        let speedups = points.iter().map(|(_, speedup)| *speedup);
        outcome.findings.push(if case.wins {
            let least = speedups.fold(f64::INFINITY, f64::min);
            Finding::at_least(format!("{}: speedup, least of all mixes", case.title), "above 1", least, 1.0, "×")
        } else {
            let most = speedups.fold(0.0, f64::max);
            Finding::at_most(format!("{}: speedup, most of all mixes", case.title), "below 1", most, 1.0, "×")
        });
        chart.line(case.title, points);
        outcome.sheets.push(sheet);
    }
    outcome.charts.push(chart);
    Ok(outcome)
}

impl Case {
    fn run(&self, title: String, weights: CostWeights, read_percent: u64, lab: &Lab, progress: &mut dyn Progress) -> Result<Run, Failure> {
        let [near, middle, far] = self.rtt_ms.map(Span::from_millis);
        let cluster = Cluster::delayed(&[Span::ZERO, near, middle, far], &[1.0, 0.0, 0.0, 0.0]);
        let quorums = one_slave(&cluster, &self.load_ms.map(|load| load as f64), weights);
        let setup = lab.speedup(title, &cluster, quorums, read_percent, WORKERS);
        Ok(lab.run(&Setup { background: self.load_ms.to_vec(), ..setup }, progress)?)
    }
}
