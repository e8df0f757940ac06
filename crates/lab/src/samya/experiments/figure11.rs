//! Figure 11: throughput while three sites and two are cut off from each other.

use super::super::lab::Lab;
use super::super::parameters::POINTS_OF_HALF_AN_HOUR;
use super::super::setup::Trouble;
use super::common::{MULTIPAXSYS, PAPER, SPARE, in_minutes, redistributions};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, percent, ratio};

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for limit in lab.limits() {
        let mut sheet =
            Sheet::new(format!("Throughput during a 3-2 partition, {}", limit.name), &["system", "tps", "of offered", "redistributions"]);
        let mut chart = Chart::new(format!("Throughput during a 3-2 partition, {}", limit.name), "minutes", "transactions per second");
        let mut rates = Vec::new();
        for system in PAPER.into_iter().chain(SPARE).chain([MULTIPAXSYS]) {
            let mut setup = lab.setup(system, POINTS_OF_HALF_AN_HOUR);
            (setup.limit, setup.trouble) = (limit.tokens, Trouble::Partition);
            let run = lab.run(&setup, progress)?;
            let meter = &run.meter;
            sheet.row([system.name(), one(meter.throughput()), percent(meter.success()), redistributions(&run).to_string()]);
            chart.line(system.name(), in_minutes(meter.moving_average()));
            rates.push(meter.throughput());
        }
        let name = |what: &str| format!("{what}, {}", limit.name);
        outcome.findings.push(Finding::at_least(name("any over majority"), "above 1×", ratio(rates[1], rates[0]), 1.0, "×"));
        outcome.findings.push(Finding::at_least(name("any over majority, spare"), "above 1×", ratio(rates[3], rates[2]), 1.0, "×"));
        outcome.findings.push(Finding::at_least(name("any over MultiPaxSys"), "far above 1×", ratio(rates[1], rates[4]), 1.0, "×"));
        outcome.sheets.push(sheet);
        outcome.charts.push(chart);
    }
    outcome.note("Asia and Europe are cut off from the Americas and Australia from the start to the end.");
    Ok(outcome)
}
