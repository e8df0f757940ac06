//! Figure 8: throughput in operations per second, by the number of clients.

use super::super::form::Form;
use super::super::lab::Lab;
use super::super::parameters::{CLIENTS_BEFORE_THROTTLING, REGIONS};
use super::super::run::Run;
use super::common::by_clients;
use crate::experiment::{Failure, Finding, Outcome, Progress, ratio};

const IRELAND: usize = 3;
const SAO_PAULO: usize = 4;
const UNIT: &str = "operations per second";

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let (sheet, chart) = by_clients(lab, progress, "Throughput", UNIT, Run::all_operations_per_second)?;
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
    for region in [IRELAND, SAO_PAULO] {
        let title = format!("Throughput in {}", REGIONS[region]);
        let (sheet, chart) = by_clients(lab, progress, &title, UNIT, |run| run.operations_per_second(region))?;
        outcome.sheets.push(sheet);
        outcome.charts.push(chart);
    }
    let mut over = |what: &str, form: Form, paper: &str, least, figure: &dyn Fn(&Run) -> f64| -> Result<(), Failure> {
        let mut of = |form| {
            let setup = lab.setup(form, CLIENTS_BEFORE_THROTTLING);
            lab.run(&setup, progress).map(|run| figure(&run))
        };
        let value = ratio(of(form)?, of(Form::MAJ0)?);
        let what = format!("throughput {what}: {} over Maj0", form.name());
        outcome.findings.push(Finding::at_least(what, paper, value, least, "×"));
        Ok(())
    };
    over("of all regions", Form::MAJ1, "2×", 2.0, &Run::all_operations_per_second)?;
    over("of all regions", Form::MAJ2, "2×", 2.0, &Run::all_operations_per_second)?;
    over("of all regions", Form::MAJ2H, "2×", 2.0, &Run::all_operations_per_second)?;
    over("in Ireland", Form::MAJ2H, "2×", 2.0, &|run| run.operations_per_second(IRELAND))?;
    over("in São Paulo", Form::MAJ2H, "2.7×", 2.7, &|run| run.operations_per_second(SAO_PAULO))?;
    outcome.note(
        "Absolute figures differ from the paper's by more the more clients there are: from a hundred on its servers are busy, and \
         ours, whose steps take 10 µs, are not.",
    );
    Ok(outcome)
}
