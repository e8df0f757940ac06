//! Figure 8: latencies of single transactions over an hour, a sample of them.

use super::super::lab::Lab;
use super::super::parameters::{POINTS_OF_AN_HOUR, SAMPLE_ONE_IN};
use super::common::{DEMARCATION, MULTIPAXSYS, all_samya};
use crate::experiment::{Chart, Failure, Outcome, Progress, Sheet, one};

/// Above this a transaction has waited for another region.
const LOCAL_MS_MAX: f64 = 10.0;

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for limit in lab.limits() {
        let mut sheet = Sheet::new(format!("Sampled latencies, {}", limit.name), &["system", "samples", "above 10 ms", "highest ms"]);
        let mut chart = Chart::new(format!("Latency of single transactions, {}", limit.name), "minutes", "ms");
        for system in all_samya().into_iter().chain([DEMARCATION, MULTIPAXSYS]) {
            let mut setup = lab.setup(system, POINTS_OF_AN_HOUR);
            setup.limit = limit.tokens;
            let run = lab.run(&setup, progress)?;
            let samples = &run.meter.samples;
            let distant = samples.iter().filter(|(_, latency)| *latency > LOCAL_MS_MAX).count();
            let highest = samples.iter().map(|(_, latency)| *latency).fold(0.0, f64::max);
            sheet.row([system.name(), samples.len().to_string(), distant.to_string(), one(highest)]);
            chart.points(system.name(), samples.iter().map(|(at, latency)| (at / 60_000.0, *latency)).collect());
        }
        outcome.sheets.push(sheet);
        outcome.charts.push(chart);
    }
    outcome.note(format!("One transaction in {SAMPLE_ONE_IN} is a sample."));
    Ok(outcome)
}
