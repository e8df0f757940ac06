//! Table 6: latency at several percentiles.

use super::super::lab::Lab;
use super::super::parameters::POINTS_OF_AN_HOUR;
use super::super::setup::System;
use super::common::{DEMARCATION, MULTIPAXSYS, PAPER, SPARE, redistributions};
use crate::experiment::{Failure, Finding, Outcome, Progress, Sheet, one};

const COLUMNS: [&str; 8] = ["system", "mean ms", "p90 ms", "p95 ms", "p99 ms", "paper p90", "paper p95", "paper p99"];
/// The 99th percentile of Avantan[(n+1)/2] in the paper.
const PAPER_P99_MS: f64 = 65.1;

/// The paper's percentiles of a system; none of the offer policy that it does not have.
fn paper(system: System) -> [&'static str; 3] {
    match system {
        it if it == PAPER[0] => ["1.4", "10.2", "65.1"],
        it if it == PAPER[1] => ["2.9", "37.3", "97.3"],
        it if it == DEMARCATION => ["3.5", "59.6", "213.9"],
        it if it == MULTIPAXSYS => ["126.8", "172.7", "276.3"],
        _ => ["", "", ""],
    }
}

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for limit in lab.limits() {
        let mut sheet = Sheet::new(format!("Latency of committed transactions, {}", limit.name), &COLUMNS);
        let mut counts = Vec::new();
        for system in PAPER.into_iter().chain(SPARE).chain([DEMARCATION, MULTIPAXSYS]) {
            let mut setup = lab.setup(system, POINTS_OF_AN_HOUR);
            setup.limit = limit.tokens;
            let run = lab.run(&setup, progress)?;
            let meter = &run.meter;
            let percentiles = [0.90, 0.95, 0.99].map(|quantile| one(meter.percentile_ms(quantile)));
            let cells = [system.name(), one(meter.mean_ms())].into_iter().chain(percentiles);
            sheet.row(cells.chain(paper(system).map(str::to_owned)));
            if SPARE.contains(&system) {
                let what = format!("99th percentile of {}, {}", system.name(), limit.name);
                outcome.findings.push(Finding::at_most(what, "65.1 ms, Avantan[(n+1)/2]", meter.percentile_ms(0.99), PAPER_P99_MS, " ms"));
            }
            if PAPER.contains(&system) {
                counts.push(redistributions(&run));
            }
        }
        let measured = format!("{} against {}", counts[0], counts[1]);
        outcome.findings.push(Finding::plain(
            format!("redistributions, majority against any, {}", limit.name),
            "208 against 792",
            measured,
        ));
        outcome.sheets.push(sheet);
    }
    outcome.note("Latency runs from sending a transaction to its answer; time in the client's own queue does not count, as in the paper.");
    Ok(outcome)
}
