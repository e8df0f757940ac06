//! Figure 13: Samya with and without prediction.

use super::super::lab::Lab;
use super::super::parameters::POINTS_OF_HALF_AN_HOUR;
use super::super::setup::{Prediction, Samya, System};
use super::common::{in_minutes, redistributions};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, percent, ratio};
use rhumb_quota::spec::{OfferPolicy, ProtocolKind};

const GAIN_MIN: f64 = 1.4;
const COLUMNS: [&str; 8] = ["system", "prediction", "tps", "of offered", "mean ms", "p99 ms", "given up", "redistributions"];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for limit in lab.limits() {
        let mut sheet = Sheet::new(format!("Throughput by prediction, {}", limit.name), &COLUMNS);
        let mut chart = Chart::new(format!("Throughput by prediction, {}", limit.name), "minutes", "transactions per second");
        for (protocol, offer) in [ProtocolKind::Majority, ProtocolKind::Any]
            .into_iter()
            .flat_map(|protocol| [OfferPolicy::All, OfferPolicy::Spare].map(|offer| (protocol, offer)))
        {
            let mut without = 0.0;
            for prediction in [Prediction::None, Prediction::Model, Prediction::Perfect] {
                let system = System::Samya(Samya { protocol, offer, prediction });
                let mut setup = lab.setup(system, POINTS_OF_HALF_AN_HOUR);
                setup.limit = limit.tokens;
                let run = lab.run(&setup, progress)?;
                let meter = &run.meter;
                let (mean, p99) = (meter.mean_ms(), meter.percentile_ms(0.99));
                let name = format!("{protocol}, {offer}");
                let figures = [one(meter.throughput()), percent(meter.success()), one(mean), one(p99), meter.given_up.to_string()];
                let names = [name.clone(), prediction.to_string()];
                sheet.row(names.into_iter().chain(figures).chain([redistributions(&run).to_string()]));
                chart.line(format!("{name}, {prediction}"), in_minutes(meter.moving_average()));
                if prediction == Prediction::None {
                    without = meter.throughput();
                    continue;
                }
                let what = format!("{name}, {prediction} over none, {}", limit.name);
                outcome.findings.push(Finding::at_least(what, "1.4×", ratio(meter.throughput(), without), GAIN_MIN, "×"));
            }
        }
        outcome.sheets.push(sheet);
        outcome.charts.push(chart);
    }
    outcome.note("Perfect prediction knows the trace: no model can do better by more than chance.");
    Ok(outcome)
}
