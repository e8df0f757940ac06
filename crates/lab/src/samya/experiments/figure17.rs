//! Figure 17: throughput as the same requests come more slowly.

use super::super::lab::Lab;
use super::super::parameters::{POINTS_OF_TEN_MINUTES, RECORDED_INTERVAL};
use super::common::{MULTIPAXSYS, PAPER, SPARE};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, percent, ratio};
use rhumb_core::Span;

/// Seconds between two points of the trace.
const INTERVALS: [u64; 6] = [5, 10, 30, 60, 150, 300];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let limit = &lab.limits()[2];
    let columns = ["system", "interval s", "tps", "of offered", "per point"];
    let mut sheet = Sheet::new(format!("The same requests over longer times, {}", limit.name), &columns);
    let mut chart = Chart::new(format!("Success by interval, {}", limit.name), "seconds between two points", "% of offered");
    let mut slowest = Vec::new();
    for system in PAPER.into_iter().chain(SPARE).chain([MULTIPAXSYS]) {
        let mut line = Vec::new();
        for seconds in INTERVALS {
            let mut setup = lab.setup(system, POINTS_OF_TEN_MINUTES);
            (setup.limit, setup.interval) = (limit.tokens, Span::from_secs(seconds));
            let run = lab.run(&setup, progress)?;
            let meter = &run.meter;
            let per_point = meter.committed() as f64 / setup.points as f64;
            sheet.row([system.name(), seconds.to_string(), format!("{:.2}", meter.throughput()), percent(meter.success()), one(per_point)]);
            line.push((seconds as f64, meter.success() * 100.0));
            if setup.interval == RECORDED_INTERVAL {
                slowest.push(meter.throughput());
            }
        }
        chart.line(system.name(), line);
    }
    let over = ratio(slowest[0], slowest[4]);
    outcome.findings.push(Finding::at_least("majority over MultiPaxSys as recorded, 300 s", "1.43×", over, 1.43, "×"));
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
    outcome
        .note("Requests that come sixty times more slowly cannot be committed faster than they come: hold the shares against each other.");
    Ok(outcome)
}
