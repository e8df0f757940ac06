//! Figure 10: throughput while site after site crashes together with a client, until one is left.

use super::super::lab::Lab;
use super::super::parameters::{INTERVAL, POINTS_OF_AN_HOUR, REGIONS};
use super::super::setup::Trouble;
use super::common::{MULTIPAXSYS, PAPER, SPARE, in_minutes, redistributions};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, ratio};

/// Crashes after which the paper compares the protocols: a majority is gone.
const MAJORITY_GONE: usize = 3;
/// What was under way when the majority went may still be answered.
const LAST_WORDS_TPS: f64 = 0.1;

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for limit in lab.limits() {
        let columns = ["system", "5 up tps", "4 up", "3 up", "2 up", "1 up", "redistributions"];
        let mut sheet = Sheet::new(format!("Throughput by the number of sites left, {}", limit.name), &columns);
        let mut chart = Chart::new(format!("Throughput while sites crash, {}", limit.name), "minutes", "transactions per second");
        let mut late = Vec::new();
        for system in PAPER.into_iter().chain(SPARE).chain([MULTIPAXSYS]) {
            let mut setup = lab.setup(system, POINTS_OF_AN_HOUR);
            (setup.limit, setup.trouble) = (limit.tokens, Trouble::Crashes);
            let run = lab.run(&setup, progress)?;
            let phase = (INTERVAL * setup.points as u64).as_millis_f64() / 1_000.0 / REGIONS.len() as f64;
            let rates: Vec<f64> =
                (0..REGIONS.len()).map(|index| run.meter.throughput_between(phase * index as f64, phase * (index + 1) as f64)).collect();
            let cells = std::iter::once(system.name()).chain(rates.iter().map(|rate| one(*rate)));
            sheet.row(cells.chain([redistributions(&run).to_string()]));
            chart.line(system.name(), in_minutes(run.meter.moving_average()));
            late.push(rates[MAJORITY_GONE]);
        }
        let after = |what: &str| format!("{what} after three crashes, {}", limit.name);
        outcome.findings.push(Finding::at_most(after("MultiPaxSys"), "0 tps", late[4], LAST_WORDS_TPS, " tps"));
        outcome.findings.push(Finding::at_least(after("any over majority"), "above 1×", ratio(late[1], late[0]), 1.0, "×"));
        outcome.findings.push(Finding::at_least(after("any over majority, spare"), "above 1×", ratio(late[3], late[2]), 1.0, "×"));
        outcome.sheets.push(sheet);
        outcome.charts.push(chart);
    }
    Ok(outcome)
}
