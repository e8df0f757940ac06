//! Figure 12: what redistribution costs against no limit at all, and what it wins against none.

use super::super::lab::Lab;
use super::super::parameters::POINTS_OF_AN_HOUR;
use super::super::pool;
use super::super::setup::{Setup, System};
use super::common::{all_samya, in_minutes};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, percent, ratio};

/// How much of the throughput without constraint redistribution may cost.
const COST_MAX: f64 = 0.035;
/// How much more than without redistribution there is to be.
const GAIN_MIN: f64 = 1.14;

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for limit in lab.limits() {
        let mut sheet = Sheet::new(format!("Throughput, {}", limit.name), &["system", "tps", "of offered", "refused", "given up"]);
        let mut chart = Chart::new(format!("Throughput, {}", limit.name), "minutes", "transactions per second");
        let mut rates = Vec::new();
        for system in [System::NoConstraint, System::NoRedistribution].into_iter().chain(all_samya()) {
            let mut setup = lab.setup(system, POINTS_OF_AN_HOUR);
            setup.limit = limit.tokens;
            let run = lab.run(&setup, progress)?;
            let meter = &run.meter;
            let refused: u64 = meter.refused.values().sum();
            sheet.row([system.name(), one(meter.throughput()), percent(meter.success()), refused.to_string(), meter.given_up.to_string()]);
            chart.line(system.name(), in_minutes(meter.moving_average()));
            rates.push((system, meter.throughput()));
        }
        let (free, fixed) = (rates[0].1, rates[1].1);
        for (system, rate) in &rates[2..] {
            let name = format!("{}, {}", system.name(), limit.name);
            let cost = (1.0 - ratio(*rate, free)) * 100.0;
            outcome.findings.push(Finding::at_most(format!("{name} below no constraint"), "3.5-4 %", cost, COST_MAX * 100.0, " %"));
            outcome.findings.push(Finding::at_least(format!("{name} over no redistribution"), "1.14×", ratio(*rate, fixed), GAIN_MIN, "×"));
        }
        let most = format!("the most that redistribution can win, {}", limit.name);
        outcome.findings.push(Finding::plain(most, "", format!("{:.2}×", ratio(free, fixed))));
        let pooled = pool::throughput(&Setup { limit: limit.tokens, ..lab.setup(System::NoConstraint, POINTS_OF_AN_HOUR) });
        let what = format!("one pool without distance over no redistribution, {}", limit.name);
        outcome.findings.push(Finding::plain(what, "", format!("{:.3}×", ratio(pooled, fixed))));
        outcome.sheets.push(sheet);
        outcome.charts.push(chart);
    }
    outcome.note(lab.demand_note());
    Ok(outcome)
}
