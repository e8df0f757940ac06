//! Figure 7: TPC-C's New-Order and Order-Status over clients, under contention.

use super::super::lab::Lab;
use super::super::parameters::{CLIENTS, COMPARED_AT, WAREHOUSES};
use super::super::setup::System;
use super::super::workload::Workload;
use super::common::{CATENAE, Claim, compare, over_clients};
use crate::experiment::{Failure, Finding, Outcome, Progress};

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let clients = lab.some(&CLIENTS);
    let (new_order, order_status) = (Workload::NewOrder(WAREHOUSES), Workload::OrderStatus(WAREHOUSES));
    let runs = over_clients(lab, new_order, &clients, &mut outcome, progress)?;
    let claim = Claim { throughput: ("over 2×", 2.0), latency: ("half", 0.5) };
    compare(&runs, new_order, COMPARED_AT, &claim, &mut outcome);
    for &count in &clients {
        let aborts = |system| runs[&(system, count)].meter.abort_share() * 100.0;
        let what = |system: System| format!("aborts of {}, New-Order, {count} clients/server", system.name());
        outcome.findings.push(Finding::at_most(what(CATENAE), "very low", aborts(CATENAE), 1.0, " %"));
        outcome.findings.push(Finding::at_least(what(System::Optimistic), "significant", aborts(System::Optimistic), 20.0, " %"));
        outcome.findings.push(Finding::plain(what(System::Locking), "grows", format!("{:.1} %", aborts(System::Locking))));
    }
    let runs = over_clients(lab, order_status, &clients, &mut outcome, progress)?;
    let claim = Claim { throughput: ("over 2×", 2.0), latency: ("-70 %", 0.3) };
    compare(&runs, order_status, COMPARED_AT, &claim, &mut outcome);
    Ok(outcome)
}
