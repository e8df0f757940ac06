//! Figure 6: latency over the length of an epoch.

use super::super::lab::Lab;
use super::super::parameters::{COMPARED_AT, EPOCHS_MS};
use super::super::setup::Setup;
use super::super::workload::{Skew, Workload};
use super::common::CATENAE;
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one};
use rhumb_core::Span;

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let workload = Workload::ReadWrite(Skew::Uniform);
    let title = format!("{}, {COMPARED_AT} clients/server", workload.name());
    let mut sheet = Sheet::new(title.clone(), &["epoch ms", "tps", "mean ms", "p50 ms", "p99 ms"]);
    let mut chart = Chart::new(title, "length of an epoch, ms", "mean latency, ms");
    let mut points = Vec::new();
    for epoch in EPOCHS_MS {
        let setup = Setup { epoch: Span::from_millis(epoch), ..lab.closed(CATENAE, workload, COMPARED_AT) };
        let run = lab.run(&setup, progress)?;
        let meter = &run.meter;
        points.push((epoch as f64, meter.mean_ms()));
        sheet.row([
            epoch.to_string(),
            one(meter.throughput()),
            one(meter.mean_ms()),
            one(meter.percentile_ms(0.5)),
            one(meter.percentile_ms(0.99)),
        ]);
    }
    let ((first, low), (last, high)) = (points[0], points[points.len() - 1]);
    let what = format!("ms of latency per ms of epoch, from {first} to {last} ms");
    outcome.findings.push(Finding::at_least(what, "rises steadily", (high - low) / (last - first), 0.5, ""));
    chart.line(CATENAE.name(), points);
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
    Ok(outcome)
}
