//! The paper's future work (section IX): machines of unequal speed, epoch messages that come late or never, beside the equal ones.
//!
//! Nothing of that may cost an abort or a wrong answer; the question is what it costs in speculation that fails, and in latency. One
//! thing is made worse at a time.

use super::super::lab::Lab;
use super::super::parameters as p;
use super::super::run::Run;
use super::super::setup::{Adversity, Setup, System, When};
use super::super::workload::{Skew, Workload};
use super::common::{CATENAE, speculated};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, percent};
use rhumb_core::Span;
use std::rc::Rc;

const BOTH: [System; 2] = [CATENAE, System::Catenae(When::Majority)];
const WORKLOAD: Workload = Workload::Speculation(Skew::Zipf(1));

/// Something that is made worse, step by step; the first step is nothing.
struct Worse {
    what: &'static str,
    x_label: &'static str,
    steps: [u64; 4],
    adversity: fn(u64) -> Adversity,
}

const WORSE: [Worse; 3] = [
    Worse {
        what: "machines of one region slower",
        x_label: "speed of the third region's machines, per cent",
        steps: p::SPEEDS_PERCENT,
        adversity: |percent| Adversity { speeds_percent: [100, 100, percent], ..Adversity::NONE },
    },
    Worse {
        what: "messages late",
        x_label: "messages between regions up to so much later, ms",
        steps: p::LATE_MS,
        adversity: |millis| Adversity { late: Span::from_millis(millis), ..Adversity::NONE },
    },
    Worse {
        what: "messages lost",
        x_label: "messages between regions lost, per cent",
        steps: p::LOSS_PERCENT,
        adversity: |percent| Adversity { loss_percent: percent, ..Adversity::NONE },
    },
];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for worse in &WORSE {
        speculate(lab, worse, &mut outcome, progress)?;
    }
    compare(lab, &mut outcome, progress)?;
    outcome.note("The paper has no figures for any of this. It says that unequal machines cost latency, and never correctness.");
    Ok(outcome)
}

/// Catenae in both forms at a given rate: what becomes of speculation and latency.
fn speculate(lab: &mut Lab, worse: &Worse, outcome: &mut Outcome, progress: &mut dyn Progress) -> Result<(), Failure> {
    let steps = lab.some(&worse.steps);
    let title = format!("{}, {} a second: {}", WORKLOAD.name(), p::RATE_OF_ASYMMETRY, worse.what);
    let columns =
        [worse.x_label, "system", "conflicting", "chosen of these", "success", "p50 ms", "p99 ms", "passed over", "aborted", "failed"];
    let mut sheet = Sheet::new(title, &columns);
    let mut success = Chart::new(format!("Success of speculation, {}", worse.what), worse.x_label, "per cent of the transactions");
    let mut latency = Chart::new(format!("Latency, {}", worse.what), worse.x_label, "median, ms");
    for system in BOTH {
        let (mut succeeded, mut medians, mut lost) = (Vec::new(), Vec::new(), 0);
        for &step in &steps {
            let setup = Setup { adversity: (worse.adversity)(step), ..lab.open(system, WORKLOAD, p::RATE_OF_ASYMMETRY) };
            let run = lab.run(&setup, progress)?;
            let (meter, speculated) = (&run.meter, speculated(&run));
            succeeded.push((step as f64, speculated.of_all * 100.0));
            medians.push((step as f64, meter.percentile_ms(0.5)));
            lost += meter.aborted + meter.rejected;
            sheet.row([
                step.to_string(),
                system.name().to_owned(),
                percent(speculated.conflicting),
                percent(speculated.of_conflicting),
                percent(speculated.of_all),
                one(meter.percentile_ms(0.5)),
                one(meter.percentile_ms(0.99)),
                run.probe("catenae.passed_over").to_string(),
                (meter.aborted + meter.rejected).to_string(),
                (meter.failed + meter.unanswered).to_string(),
            ]);
        }
        let what = |what: &str| format!("{what}, {}, {}", worse.what, system.name());
        let (first, last) = (0, steps.len() - 1);
        let change = |points: &[(f64, f64)], unit| format!("{} → {}{unit}", one(points[first].1), one(points[last].1));
        outcome.findings.push(Finding::plain(what("success"), "falls", change(&succeeded, " %")));
        outcome.findings.push(Finding::plain(what("median latency"), "rises", change(&medians, " ms")));
        outcome.findings.push(Finding::at_most(what("aborted"), "never", lost as f64, 0.0, ""));
        success.line(system.name(), succeeded);
        latency.line(system.name(), medians);
    }
    outcome.sheets.push(sheet);
    outcome.charts.extend([success, latency]);
    Ok(())
}

/// All systems in a closed loop, the third region's machines slower and slower.
fn compare(lab: &mut Lab, outcome: &mut Outcome, progress: &mut dyn Progress) -> Result<(), Failure> {
    let workload = Workload::ReadWrite(Skew::Zipf(1));
    let steps = lab.some(&p::SPEEDS_PERCENT);
    let title = format!("{}, {} clients/server: all systems, machines of one region slower", workload.name(), p::CLIENTS_OF_ASYMMETRY);
    let mut sheet = Sheet::new(title, &["system", "speed %", "tps", "mean ms", "p99 ms", "aborted", "failed"]);
    let mut chart = Chart::new(format!("Throughput: {}", workload.name()), WORSE[0].x_label, "transactions per second");
    for system in System::ALL {
        let mut points = Vec::new();
        for &percent_of_speed in &steps {
            let adversity = (WORSE[0].adversity)(percent_of_speed);
            let setup = Setup { adversity, ..lab.closed(system, workload, p::CLIENTS_OF_ASYMMETRY) };
            let run: Rc<Run> = lab.run(&setup, progress)?;
            let meter = &run.meter;
            points.push((percent_of_speed as f64, meter.throughput()));
            sheet.row([
                system.name().to_owned(),
                percent_of_speed.to_string(),
                one(meter.throughput()),
                one(meter.mean_ms()),
                one(meter.percentile_ms(0.99)),
                percent(meter.abort_share()),
                (meter.failed + meter.rejected).to_string(),
            ]);
        }
        chart.line(system.name(), points);
    }
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
    Ok(())
}
