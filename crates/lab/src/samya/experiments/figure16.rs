//! Figure 16: throughput by the maximum limit.

use super::super::lab::Lab;
use super::super::parameters::POINTS_OF_HALF_AN_HOUR;
use super::common::{all_samya, redistributions};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, percent, ratio};

/// The paper's range; the lowest and the highest are the mean and beyond the highest demand of its series.
const LIMITS: [u64; 7] = [600, 1_000, 2_000, 4_000, 5_000, 8_000, 16_000];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for (name, scale) in [("as printed", 1.0), ("to demand as in the paper", lab.demand_ratio())] {
        let mut sheet = Sheet::new(format!("Limits {name}"), &["system", "limit", "tps", "of offered", "mean ms", "redistributions"]);
        let mut chart = Chart::new(format!("Throughput by limit, {name}"), "tokens", "transactions per second");
        for system in all_samya() {
            let mut points = Vec::new();
            for limit in LIMITS {
                let mut setup = lab.setup(system, POINTS_OF_HALF_AN_HOUR);
                setup.limit = (limit as f64 * scale).round() as u64;
                let run = lab.run(&setup, progress)?;
                let meter = &run.meter;
                let count = redistributions(&run).to_string();
                let figures = [one(meter.throughput()), percent(meter.success()), one(meter.mean_ms()), count];
                sheet.row([system.name(), setup.limit.to_string()].into_iter().chain(figures));
                points.push((setup.limit as f64, meter.throughput()));
            }
            let growth = ratio(points[points.len() - 1].1, points[0].1);
            let what = format!("{}: the highest limit over the lowest, {name}", system.name());
            outcome.findings.push(Finding::plain(what, "about 5×", format!("{growth:.2}×")));
            chart.line(system.name(), points);
        }
        outcome.sheets.push(sheet);
        outcome.charts.push(chart);
    }
    outcome.note("The paper counts 1960 redistributions at its lowest limit and none at its highest.");
    Ok(outcome)
}
