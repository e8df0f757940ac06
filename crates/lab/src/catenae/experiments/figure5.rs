//! Figure 5: the micro-benchmark over clients, read-only and read-write, uniform and by Zipf's law.

use super::super::lab::Lab;
use super::super::parameters::{CLIENTS, COMPARED_AT};
use super::super::setup::System;
use super::super::workload::{Skew, Workload};
use super::common::{CATENAE, Claim, compare, over_clients};
use crate::experiment::{Failure, Finding, Outcome, Progress, ratio};

const WORKLOADS: [(Workload, Claim); 4] = [
    (Workload::ReadWrite(Skew::Uniform), Claim { throughput: ("comparable, better", 1.0), latency: ("comparable, better", 1.0) }),
    (Workload::ReadWrite(Skew::Zipf(1)), Claim { throughput: ("2PL and OCC struggle", 2.0), latency: ("2PL and OCC struggle", 1.0) }),
    (Workload::ReadOnly(Skew::Uniform), Claim { throughput: ("over 3×", 3.0), latency: ("over 3×", 1.0 / 3.0) }),
    (Workload::ReadOnly(Skew::Zipf(1)), Claim { throughput: ("over 3×", 3.0), latency: ("over 3×", 1.0 / 3.0) }),
];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let clients = lab.some(&CLIENTS);
    let (first, last) = (clients[0], *clients.last().expect("there are some"));
    for (workload, claim) in WORKLOADS {
        let runs = over_clients(lab, workload, &clients, &mut outcome, progress)?;
        compare(&runs, workload, COMPARED_AT, &claim, &mut outcome);
        let aborts = |system| runs[&(system, last)].meter.abort_share() * 100.0;
        let what = |system: System| format!("aborts, {}, {}, {last} clients/server", system.name(), workload.name());
        outcome.findings.push(Finding::at_most(what(CATENAE), "almost none", aborts(CATENAE), 1.0, " %"));
        for baseline in [System::Locking, System::Optimistic] {
            outcome.findings.push(Finding::plain(what(baseline), "", format!("{:.1} %", aborts(baseline))));
        }
        if workload == Workload::ReadWrite(Skew::Zipf(1)) {
            let grows = ratio(runs[&(CATENAE, last)].meter.throughput(), runs[&(CATENAE, first)].meter.throughput());
            let what = format!("throughput of {} at {last} clients/server over {first}, {}", CATENAE.name(), workload.name());
            outcome.findings.push(Finding::plain(what, "nearly linear", format!("{grows:.2}×")));
        }
    }
    outcome.note("A read of Catenae shows what is settled in the region; those of 2PL and OCC take both rounds, and are strict.");
    Ok(outcome)
}
