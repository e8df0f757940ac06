//! Figure 10: how long searches take to place five or seven replicas. The only figures here that depend on the machine.

use super::super::instances;
use super::super::lab::Lab;
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet};
use rhumb_core::Rng;
use rhumb_plan::exhaustive::placements;
use rhumb_plan::{Problem, exact, exhaustive, greedy, weighted};
use std::time::Instant;

/// Datacenters, for five replicas and for seven.
const FIVE_OF: [usize; 7] = [10, 20, 30, 40, 60, 100, 200];
const SEVEN_OF: [usize; 7] = [10, 15, 20, 25, 30, 40, 60];
/// More placements are not looked at one after another.
const PLACEMENTS_MAX: u64 = 6_000_000;
/// What heuristics are to take at the most.
const HEURISTIC_SECONDS_MAX: f64 = 1.0;
/// In a shorter evaluation.
const SIZES_SHORTER: usize = 3;

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mut slowest: f64 = 0.0;
    for (faults, sizes) in [(2, FIVE_OF), (3, SEVEN_OF)] {
        let replicas = 2 * faults + 1;
        let title = format!("Time to place {replicas} replicas");
        let mut sheet = Sheet::new(
            format!("{title}, this machine"),
            &["datacenters", "placements", "exhaustive s", "exact s", "greedy s", "weighted s"],
        );
        let mut curves = [("exhaustive", Vec::new()), ("exact", Vec::new()), ("greedy", Vec::new()), ("weighted", Vec::new())];
        progress.begin(&title);
        let sizes = if lab.fewer(sizes.len()) < sizes.len() { &sizes[..SIZES_SHORTER] } else { &sizes[..] };
        let mut speed = 0.0;
        for (done, &size) in sizes.iter().enumerate() {
            let problem = instances::random(size, faults, &mut Rng::seeded(lab.seed()));
            let count = placements(&problem).expect("few enough to be counted");
            let all = (count <= PLACEMENTS_MAX).then(|| seconds(&problem, |problem| drop(exhaustive(problem))));
            speed = all.map_or(speed, |seconds| count as f64 / seconds);
            let heuristics = [seconds(&problem, |problem| drop(greedy(problem))), seconds(&problem, |problem| drop(weighted(problem)))];
            let took = [all, Some(seconds(&problem, |problem| drop(exact(problem)))), Some(heuristics[0]), Some(heuristics[1])];
            slowest = heuristics.into_iter().fold(slowest, f64::max);
            for ((_, points), seconds) in curves.iter_mut().zip(took) {
                points.extend(seconds.map(|seconds| (size as f64, seconds)));
            }
            let cells = took.map(|seconds| seconds.map_or(format!("about {:.0}", count as f64 / speed), |seconds| format!("{seconds:.6}")));
            sheet.row([size.to_string(), count.to_string()].into_iter().chain(cells));
            progress.passed(done as u64 + 1, sizes.len() as u64);
        }
        let mut chart = Chart::new(format!("{title}, this machine"), "datacenters", "seconds").with_log_y();
        for (name, points) in curves {
            chart.line(name, points);
        }
        outcome.sheets.push(sheet);
        outcome.charts.push(chart);
    }
    outcome.findings.push(Finding::at_most("the slower heuristic, at the most", "below 1 s", slowest, HEURISTIC_SECONDS_MAX, " s"));
    outcome.note(format!(
        "Wall time on this machine, whatever else it does; the paper's exhaustive search of 7 of 60 took 2 hours. \"About\": more than \
         {PLACEMENTS_MAX} placements are not looked at, the time follows from the speed of the largest search that was run. Exact search \
         is the product's own, and finds what exhaustive search does."
    ));
    Ok(outcome)
}

/// How long `search` takes.
fn seconds(problem: &Problem, search: impl FnOnce(&Problem)) -> f64 {
    let begun = Instant::now();
    search(problem);
    begun.elapsed().as_secs_f64()
}
