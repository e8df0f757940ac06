//! Figure 2: how long clients in nine regions wait for the nearest majority, under each of the 84 placements of three
//! replicas. The planner works it out; a commit of one round from every region measures it.

use super::super::idle::Idle;
use super::super::lab::Lab;
use super::super::placed::{self, commits, one_each};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, ratio};
use rhumb_commit::transaction::CommitOptions;
use rhumb_plan::{Protocol, evaluate};
use std::collections::BTreeMap;

/// What worst over best is to come to. The paper prints its round trips in whole milliseconds, and handling a commit adds the
/// same to both.
const SPREAD: f64 = 1.75;
const TOLERANCE: f64 = 0.02;

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let rtt = placed::nine();
    let regions = rtt.names().len();
    let problem = placed::problem(&rtt, commits(Protocol::ReplicatedCommit, false), 1, &one_each(regions));
    let triples = (0..regions).flat_map(|a| (a + 1..regions).flat_map(move |b| (b + 1..regions).map(move |c| [a, b, c])));
    let mut placements: Vec<(u64, [usize; 3])> = triples.map(|replicas| (evaluate(&problem, &replicas).mean_ns, replicas)).collect();
    placements.sort_unstable();
    let measured_one_in = placements.len() / lab.fewer(placements.len());
    progress.begin("placements");
    let mut sheet = Sheet::new("Mean wait for the nearest two of three, by placement", &["placement", "planned ms", "measured ms"]);
    let (mut planned, mut measured) = (Vec::new(), Vec::new());
    let mut excess_ms: f64 = 0.0;
    for (index, &(mean_ns, replicas)) in placements.iter().enumerate() {
        let planned_ms = mean_ns as f64 / 1e6;
        planned.push(((index + 1) as f64, planned_ms));
        let mut cell = String::new();
        if index % measured_one_in == 0 || index + 1 == placements.len() {
            let placement = placed::place(regions, &replicas, false, BTreeMap::new());
            let mut idle = Idle::new(rtt.clone(), placement, lab.seed())?;
            let mut total_ms = 0.0;
            for region in 0..regions {
                total_ms += idle.commit(placed::id(region), CommitOptions { two_rounds: false, handoff: false })?.as_millis_f64();
            }
            let mean_ms = total_ms / regions as f64;
            measured.push(((index + 1) as f64, mean_ms));
            excess_ms = excess_ms.max((mean_ms - planned_ms).abs());
            cell = format!("{mean_ms:.1}");
        }
        let names: Vec<&str> = replicas.iter().map(|&region| rtt.names()[region].as_str()).collect();
        sheet.row([names.join(", "), format!("{planned_ms:.1}"), cell]);
        progress.passed(index as u64 + 1, placements.len() as u64);
    }
    let spread = |points: &[(f64, f64)]| ratio(points[points.len() - 1].1, points[0].1);
    let finding = |what: &str, value| Finding::between(what, "1.75×", value, SPREAD - TOLERANCE, SPREAD + TOLERANCE, "×");
    let findings = vec![
        finding("worst placement over best, planned", spread(&planned)),
        finding("worst placement over best, measured", spread(&measured)),
        Finding::plain("measured and planned differ by at most", "", format!("{excess_ms:.2} ms")),
    ];
    let mut chart = Chart::new("The nearest quorum, by placement", "placements, best first", "mean latency (ms)");
    chart.line("planned", planned);
    chart.points("measured", measured);
    let mut outcome = Outcome { sheets: vec![sheet], findings, charts: vec![chart], notes: Vec::new() };
    outcome.note("Measured is a commit of one round in an idle cluster; a sync of a disk and four steps of sites are in it.");
    Ok(outcome)
}
