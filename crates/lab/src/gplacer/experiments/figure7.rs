//! Figure 7: the mean latency of all commits, by the number of clients.

use super::super::form::{Form, Reading};
use super::super::lab::Lab;
use super::super::meter::Counts;
use super::super::parameters::CLIENTS_BEFORE_THROTTLING;
use super::super::placed;
use super::super::run::Run;
use super::common::{by_clients, lower};
use crate::experiment::{Failure, Finding, Outcome, Progress, Sheet, one};

/// By how many per cent handoff is to lower it, at least.
const LOWER_MIN: f64 = 10.0;

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let (sheet, chart) = by_clients(lab, progress, "Mean commit latency", "ms", |run| run.meter.commit_ms())?;
    let mut outcome = Outcome { sheets: vec![sheet], charts: vec![chart], ..Outcome::default() };
    let columns = ["", "paper", "by round trips alone", "measured", "measured, each region once"];
    let mut lowered = Sheet::new("By how much handoff lowers it (%)", &columns);
    for [without, with] in Form::PAIRS {
        let what = format!("{} below {}", with.name(), without.name());
        let without_run = lab.run(&lab.setup(without, CLIENTS_BEFORE_THROTTLING), progress)?;
        let with_run = lab.run(&lab.setup(with, CLIENTS_BEFORE_THROTTLING), progress)?;
        let once = |run: &Run| run.meter.regions.iter().map(Counts::commit_ms).sum::<f64>();
        let measured = lower(without_run.meter.commit_ms(), with_run.meter.commit_ms());
        let cells = [lower(planned(without), planned(with)), measured, lower(once(&without_run), once(&with_run))];
        lowered.row([what.clone(), "10-15".to_owned()].into_iter().chain(cells.map(one)));
        outcome.findings.push(Finding::at_least(format!("commit latency: {what}"), "10-15 %", measured, LOWER_MIN, " %"));
    }
    outcome.sheets.push(lowered);
    outcome.note(
        "The mean is over all commits: California and Oregon, which commit fast and hence often, outweigh the regions that hand over. \
         Reads that end sooner raise it in the paper by contention for its servers' processors, which ours do not have.",
    );
    Ok(outcome)
}

/// The mean latency of all commits by round trips alone: a client that waits for nothing else begins the next transaction
/// when the last is done.
fn planned(form: Form) -> f64 {
    let transactions = placed::expected(form).clients;
    let commits = placed::expected(Form { reading: Reading::Passive, ..form }).clients;
    let pairs = || transactions.iter().zip(&commits).map(|(transaction, commit)| (transaction.latency_ns as f64, commit.latency_ns as f64));
    pairs().map(|(transaction, commit)| commit / transaction).sum::<f64>() / pairs().map(|(transaction, _)| 1.0 / transaction).sum::<f64>()
}
