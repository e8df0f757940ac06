//! Figure 6: transaction latency by the number of clients, normalized over regions and in three of them.

use super::super::form::Form;
use super::super::lab::Lab;
use super::super::parameters::{CLIENTS_BEFORE_THROTTLING, REGIONS};
use super::super::placed;
use super::super::run::Run;
use super::common::{by_clients, lower};
use crate::experiment::{Failure, Finding, Outcome, Progress, Sheet, one};
use std::rc::Rc;

const CALIFORNIA: usize = 0;
const IRELAND: usize = 3;
const SAO_PAULO: usize = 4;

/// Something that the paper says of latencies.
struct Claim {
    /// Of one region; else of all, normalized.
    region: Option<usize>,
    from: Form,
    to: Form,
    /// By how many per cent `to` is below `from`; none where the paper does not say.
    percent: Option<f64>,
}

const fn claim(region: Option<usize>, from: Form, to: Form, percent: Option<f64>) -> Claim {
    Claim { region, from, to, percent }
}

const CLAIMS: [Claim; 9] = [
    claim(None, Form::MAJ0, Form::MAJ2, Some(48.0)),
    claim(None, Form::MAJ2, Form::MAJ2H, Some(26.0)),
    claim(None, Form::MAJ0, Form::MAJ2H, Some(60.0)),
    claim(Some(IRELAND), Form::MAJ0, Form::MAJ2H, Some(62.0)),
    claim(Some(SAO_PAULO), Form::MAJ0, Form::MAJ2H, Some(68.0)),
    claim(Some(IRELAND), Form::MAJ2, Form::MAJ2H, Some(30.0)),
    claim(Some(SAO_PAULO), Form::MAJ2, Form::MAJ2H, Some(38.0)),
    claim(Some(CALIFORNIA), Form::MAJ0, Form::MAJ2, Some(49.0)),
    claim(None, Form::MAJ0, Form::MAJ2P, None),
];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for region in [None, Some(IRELAND), Some(SAO_PAULO), Some(CALIFORNIA)] {
        let title =
            region.map_or("Normalized transaction latency".to_owned(), |region| format!("Transaction latency in {}", REGIONS[region]));
        let (sheet, chart) = by_clients(lab, progress, &title, "ms", |run| latency_ms(run, region))?;
        outcome.sheets.push(sheet);
        outcome.charts.push(chart);
    }
    let mut runs = Vec::new();
    for form in Form::ALL {
        runs.push((form, lab.run(&lab.setup(form, CLIENTS_BEFORE_THROTTLING), progress)?));
    }
    outcome.sheets.push(expectation(&runs));
    outcome.sheets.push(hold(&CLAIMS, &runs, &mut outcome.findings));
    outcome.note(format!(
        "Claims are held against {CLIENTS_BEFORE_THROTTLING} clients. Normalized latency is the mean over the five regions of their mean \
         latencies, so that a region which commits more does not count for more. The planner hands Ireland's commits to Oregon, which \
         is nearer than California, and Virginia's to California."
    ));
    Ok(outcome)
}

/// A latency of `form`: of a region, or normalized.
fn measured_ms(form: Form, region: Option<usize>, runs: &[(Form, Rc<Run>)]) -> f64 {
    let (_, run) = runs.iter().find(|(known, _)| *known == form).expect("all forms ran");
    latency_ms(run, region)
}

fn latency_ms(run: &Run, region: Option<usize>) -> f64 {
    region.map_or_else(|| run.meter.normalized_ms(), |region| run.meter.regions[region].latency_ms())
}

/// The same by round trips alone.
fn planned_ms(form: Form, region: Option<usize>) -> f64 {
    let expected = placed::expected(form);
    region.map_or(expected.mean_ns, |region| expected.clients[region].latency_ns) as f64 / 1e6
}

/// Holds the paper's claims against what was measured, and shows what round trips alone come to.
fn hold(claims: &[Claim], runs: &[(Form, Rc<Run>)], findings: &mut Vec<Finding>) -> Sheet {
    let mut sheet = Sheet::new("By how much latency is lower (%)", &["", "paper", "by round trips alone", "measured"]);
    for claim in claims {
        let place = claim.region.map_or("normalized latency", |region| REGIONS[region]);
        let what = format!("{place}: {} below {}", claim.to.name(), claim.from.name());
        let planned = lower(planned_ms(claim.from, claim.region), planned_ms(claim.to, claim.region));
        let measured = lower(measured_ms(claim.from, claim.region, runs), measured_ms(claim.to, claim.region, runs));
        let paper = claim.percent.map_or(String::new(), |percent| format!("{percent:.0}"));
        sheet.row([what.clone(), paper, one(planned), one(measured)]);
        findings.extend(claim.percent.map(|percent| Finding::at_least(what, &format!("{percent:.0} %"), measured, percent, " %")));
    }
    sheet
}

/// Measured latencies beside what the planner expects of round trips alone.
fn expectation(runs: &[(Form, Rc<Run>)]) -> Sheet {
    let columns: Vec<String> = REGIONS.iter().flat_map(|name| [format!("{name} planned"), "measured".to_owned()]).collect();
    let columns: Vec<&str> = ["form", "normalized planned", "measured"].into_iter().chain(columns.iter().map(String::as_str)).collect();
    let mut sheet = Sheet::new(format!("What the planner expects, and {CLIENTS_BEFORE_THROTTLING} clients measure (ms)"), &columns);
    for (form, run) in runs {
        let expected = placed::expected(*form);
        let ms = |ns: u64| one(ns as f64 / 1e6);
        let regions = expected.clients.iter().zip(&run.meter.regions);
        let regions = regions.flat_map(|(plan, counts)| [ms(plan.latency_ns), one(counts.latency_ms())]);
        let all = [form.name(), ms(expected.mean_ns), one(run.meter.normalized_ms())];
        sheet.row(all.into_iter().chain(regions));
    }
    sheet
}
