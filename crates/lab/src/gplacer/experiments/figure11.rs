//! Figure 11: the latency of what the heuristics find, as a multiple of the optimum.

use super::super::instances;
use super::super::lab::Lab;
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, percent};
use rhumb_core::Rng;
use rhumb_plan::{exact, greedy, weighted};

/// Datacenters.
const SIZES: [usize; 6] = [10, 15, 20, 30, 40, 60];
/// Random instances of each size.
const INSTANCES: usize = 50;
/// Of all instances, the best of two heuristics is to be optimal in so many.
const OPTIMAL_MIN: f64 = 0.70;
/// And nowhere worse than this.
const WORST_MAX: f64 = 1.11;

/// What came of one instance: latencies over the optimum.
struct Found {
    greedy: f64,
    weighted: f64,
}

impl Found {
    fn best(&self) -> f64 {
        self.greedy.min(self.weighted)
    }
}

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mut rng = Rng::seeded(lab.seed());
    for faults in [2, 3] {
        let replicas = 2 * faults + 1;
        let title = format!("{replicas} replicas: latency over the optimum");
        let columns = ["datacenters", "greedy, mean", "weighted, mean", "best, mean", "best, worst", "best is optimal", "within 11 %"];
        let mut sheet = Sheet::new(&title, &columns);
        let mut curves =
            [("greedy", Vec::new()), ("weighted", Vec::new()), ("best of the two", Vec::new()), ("best, worst case", Vec::new())];
        progress.begin(&title);
        let mut all: Vec<Found> = Vec::new();
        for size in SIZES {
            let found: Vec<Found> = (0..lab.fewer(INSTANCES)).map(|_| instance(size, faults, &mut rng)).collect();
            let mean = |of: &dyn Fn(&Found) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
            let worst = found.iter().map(Found::best).fold(1.0, f64::max);
            let figures = [mean(&|it| it.greedy), mean(&|it| it.weighted), mean(&Found::best), worst];
            for ((_, points), y) in curves.iter_mut().zip(figures) {
                points.push((size as f64, (y - 1.0) * 100.0));
            }
            let cells = figures.map(|y| format!("{y:.3}"));
            sheet.row(std::iter::once(size.to_string()).chain(cells).chain([percent(optimal(&found)), percent(near(&found))]));
            all.extend(found);
            progress.passed(size as u64, SIZES[SIZES.len() - 1] as u64);
        }
        let mut chart = Chart::new(&title, "datacenters", "above the optimum (%)");
        for (name, points) in curves {
            chart.line(name, points);
        }
        outcome.sheets.push(sheet);
        outcome.charts.push(chart);
        let what = |what: &str| format!("{what}, {replicas} replicas");
        let share = optimal(&all) * 100.0;
        outcome.findings.push(Finding::at_least(what("best of the two is optimal"), "70 %", share, OPTIMAL_MIN * 100.0, " %"));
        outcome.findings.push(Finding::plain(what("best of the two is within 11 % of it"), "all cases shown", percent(near(&all))));
        let worst = all.iter().map(Found::best).fold(1.0, f64::max);
        outcome.findings.push(Finding::at_most(what("best of the two over the optimum, worst"), "1.05-1.11", worst, WORST_MAX, "×"));
    }
    outcome.note("Commits of two rounds with handoff. The optimum is from exact search, which finds what exhaustive search does.");
    Ok(outcome)
}

fn instance(size: usize, faults: usize, rng: &mut Rng) -> Found {
    let problem = instances::random(size, faults, rng);
    let optimum = exact(&problem).cost as f64;
    Found { greedy: greedy(&problem).cost as f64 / optimum, weighted: weighted(&problem).cost as f64 / optimum }
}

/// The share of instances in which the best of the two is no worse than the worst that the paper shows.
fn near(found: &[Found]) -> f64 {
    found.iter().filter(|it| it.best() <= WORST_MAX).count() as f64 / found.len() as f64
}

/// The share of instances in which the best of the two is the optimum.
fn optimal(found: &[Found]) -> f64 {
    found.iter().filter(|it| it.best() <= 1.0).count() as f64 / found.len() as f64
}
