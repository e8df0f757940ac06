//! Figure 1: how often speculation succeeds, over the rate and the skew.
//!
//! The paper counts a transaction as a success if all three regions ran it after the same others. Here it is one if its place was
//! chosen by a majority's equal fingerprints, or if it conflicts with no other of its epoch; all others *failed*, and run by identifier.

use super::super::lab::Lab;
use super::super::parameters::RATES;
use super::super::run::Run;
use super::super::setup::{Setup, System, When};
use super::super::workload::{Skew, Workload};
use super::common::{Speculated, speculated};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, percent};
use rhumb_core::Span;

const SKEWS: [Skew; 3] = [Skew::Uniform, Skew::Zipf(1), Skew::Zipf(2)];
/// The skew of the second table.
const JITTERED: Skew = Skew::Zipf(1);
/// How unevenly the chain servers of a region work, for the second table; zero: visits are made in the order in which they were sent, as
/// in a Rhumb site, and as in the first table.
const JITTERS_US: [u64; 4] = [0, 10, 100, 1_000];

fn cells(run: &Run) -> [String; 7] {
    let Speculated { conflicting, of_conflicting, of_all } = speculated(run);
    [
        percent(conflicting),
        percent(of_conflicting),
        percent(of_all),
        one(run.meter.percentile_ms(0.5)),
        one(run.meter.percentile_ms(0.99)),
        (run.meter.aborted + run.meter.rejected).to_string(),
        (run.meter.failed + run.meter.unanswered).to_string(),
    ]
}

const MEASURED: [&str; 7] = ["conflicting", "chosen of these", "success", "p50 ms", "p99 ms", "aborted", "failed"];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let rates = lab.some(&RATES);
    let mut sheet = Sheet::new("Speculation, by rate and skew", &[&["skew", "a second"][..], &MEASURED].concat());
    let mut chart = Chart::new("Success of speculation", "transactions per second", "per cent of the transactions");
    for skew in SKEWS {
        let (mut points, mut lowest, mut lost) = (Vec::new(), 1.0f64, 0);
        for &rate in &rates {
            let run = lab.run(&setup(lab, skew, rate), progress)?;
            let of_all = speculated(&run).of_all;
            points.push((rate as f64, of_all * 100.0));
            lowest = lowest.min(of_all);
            lost += run.meter.aborted + run.meter.rejected + run.meter.failed + run.meter.unanswered;
            sheet.row([vec![skew.name(), rate.to_string()], cells(&run).to_vec()].concat());
        }
        chart.line(skew.name(), points);
        let what = format!("success, {}, lowest over all rates", skew.name());
        outcome.findings.push(match skew {
            Skew::Uniform => Finding::at_least(what, "above 80 %", lowest * 100.0, 80.0, " %"),
            Skew::Zipf(1) => Finding::at_least(what, "above 60 %", lowest * 100.0, 60.0, " %"),
            Skew::Zipf(_) => Finding::plain(what, "fails", percent(lowest)),
        });
        outcome.findings.push(Finding::at_most(format!("not committed, {}", skew.name()), "", lost as f64, 0.0, ""));
    }
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);

    let highest = *rates.last().expect("there are rates");
    let mut sheet = Sheet::new(
        format!("Speculation at {highest} a second, {}, by how much longer a hop between chain servers may take", JITTERED.name()),
        &[&["up to µs"][..], &MEASURED].concat(),
    );
    for micros in JITTERS_US {
        let setup = Setup { jitter: Span::from_micros(micros), ..setup(lab, JITTERED, highest) };
        let run = lab.run(&setup, progress)?;
        sheet.row([vec![micros.to_string()], cells(&run).to_vec()].concat());
    }
    outcome.sheets.push(sheet);
    Ok(outcome)
}

fn setup(lab: &Lab, skew: Skew, rate: u64) -> Setup {
    lab.open(System::Catenae(When::Region), Workload::Speculation(skew), rate)
}
