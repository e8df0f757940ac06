//! Figure 9: throughput of the systems over an hour, as a moving average.

use super::super::baselines::escrow::Lending;
use super::super::baselines::multipaxsys::Settings;
use super::super::lab::Lab;
use super::super::parameters::POINTS_OF_AN_HOUR;
use super::super::setup::{LeaderRegion, System};
use super::common::{DEMARCATION, MULTIPAXSYS, all_samya, in_minutes, redistributions};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, percent, ratio};

const COLUMNS: [&str; 7] = ["system", "tps", "of offered", "refused", "given up", "redistributions", "vs MultiPaxSys"];

/// Forms of the baselines that the paper leaves open.
const OTHERS: [System; 4] = [
    System::Demarcation(Lending::Need),
    System::MultiPaxSys(Settings { depth: 1, batch: 1 }, LeaderRegion::UsWest),
    System::MultiPaxSys(Settings { depth: 16, batch: 1 }, LeaderRegion::UsCentral),
    System::MultiPaxSys(Settings { depth: 1, batch: 64 }, LeaderRegion::UsCentral),
];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for limit in lab.limits() {
        let mut sheet = Sheet::new(format!("Throughput, {}", limit.name), &COLUMNS);
        let mut chart = Chart::new(format!("Throughput, {}", limit.name), "minutes", "transactions per second");
        let mut baseline = |system, progress: &mut dyn Progress| {
            let mut setup = lab.setup(system, POINTS_OF_AN_HOUR);
            setup.limit = limit.tokens;
            lab.run(&setup, progress)
        };
        let multipaxsys = baseline(MULTIPAXSYS, progress)?.meter.throughput();
        let demarcation = baseline(DEMARCATION, progress)?.meter.throughput();
        for system in all_samya().into_iter().chain([System::NoConstraint, DEMARCATION, MULTIPAXSYS]).chain(OTHERS) {
            let run = baseline(system, progress)?;
            let meter = &run.meter;
            let refused: u64 = meter.refused.values().sum();
            sheet.row([
                system.name(),
                one(meter.throughput()),
                percent(meter.success()),
                refused.to_string(),
                meter.given_up.to_string(),
                redistributions(&run).to_string(),
                format!("{:.1}×", ratio(meter.throughput(), multipaxsys)),
            ]);
            if !OTHERS.contains(&system) {
                chart.line(system.name(), in_minutes(meter.moving_average()));
            }
            if matches!(system, System::Samya(_)) {
                let name = format!("{}, {}", system.name(), limit.name);
                let over = |what: &str| format!("{name} over {what}");
                outcome.findings.push(Finding::at_least(over("MultiPaxSys"), "16-18×", ratio(meter.throughput(), multipaxsys), 18.0, "×"));
                outcome.findings.push(Finding::at_least(over("Demarcation"), "1.3×", ratio(meter.throughput(), demarcation), 1.3, "×"));
            }
            if system == System::NoConstraint {
                let most = |what: &str| format!("the most that any system can have over {what}, {}", limit.name);
                let over = |baseline| format!("{:.2}×", ratio(meter.throughput(), baseline));
                outcome.findings.push(Finding::plain(most("MultiPaxSys"), "", over(multipaxsys)));
                outcome.findings.push(Finding::plain(most("Demarcation"), "", over(demarcation)));
            }
        }
        outcome.sheets.push(sheet);
        outcome.charts.push(chart);
    }
    outcome.note(lab.demand_note());
    Ok(outcome)
}
