//! What several experiments share: the table and the charts of systems over clients.

use super::super::lab::Lab;
use super::super::meter::Meter;
use super::super::parameters::REGIONS;
use super::super::run::Run;
use super::super::setup::{System, When};
use super::super::workload::Workload;
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, percent, ratio};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Catenae as in the paper: what is held against the paper's figures.
pub(super) const CATENAE: System = System::Catenae(When::Region);

/// Runs by system and clients per server.
pub(super) type Runs = BTreeMap<(System, u64), Rc<Run>>;

/// What a table says of a run: transactions a second; the mean, the median and the 99th percentile in ms; the share that was aborted; failures.
pub(super) fn cells(meter: &Meter) -> [String; 6] {
    [
        one(meter.throughput()),
        one(meter.mean_ms()),
        one(meter.percentile_ms(0.5)),
        one(meter.percentile_ms(0.99)),
        percent(meter.abort_share()),
        (meter.failed + meter.rejected).to_string(),
    ]
}

/// All systems under `workload` at all these numbers of clients: a table, and charts of throughput, latency and aborts.
pub(super) fn over_clients(
    lab: &mut Lab,
    workload: Workload,
    clients: &[u64],
    outcome: &mut Outcome,
    progress: &mut dyn Progress,
) -> Result<Runs, Failure> {
    let mut runs = Runs::new();
    let columns = ["system", "clients/server", "tps", "mean ms", "p50 ms", "p99 ms", "aborted", "failed"];
    let mut sheet = Sheet::new(workload.name(), &columns);
    for system in System::ALL {
        for &count in clients {
            let run = lab.run(&lab.closed(system, workload, count), progress)?;
            let [tps, mean, p50, p99, aborted, failed] = cells(&run.meter);
            sheet.row([system.name().to_owned(), count.to_string(), tps, mean, p50, p99, aborted, failed]);
            runs.insert((system, count), run);
        }
    }
    outcome.sheets.push(sheet);
    let mut chart = |title: &str, unit: &str, value: fn(&Run) -> f64| {
        let mut chart = Chart::new(format!("{title}: {}", workload.name()), "clients per server", unit);
        for system in System::ALL {
            let point = |count: &u64| (*count as f64, value(&runs[&(system, *count)]));
            chart.line(system.name(), clients.iter().map(point).collect());
        }
        outcome.charts.push(chart);
    };
    chart("Throughput", "transactions per second", |run| run.meter.throughput());
    chart("Latency", "mean, ms", |run| run.meter.mean_ms());
    chart("Aborts", "per cent", |run| run.meter.abort_share() * 100.0);
    Ok(runs)
}

/// How speculation went in a run, in shares of its transactions.
pub(super) struct Speculated {
    /// Conflicted with another of their epoch.
    pub(super) conflicting: f64,
    /// Of these, those whose place was chosen.
    pub(super) of_conflicting: f64,
    /// Were speculated on right, or did not conflict.
    pub(super) of_all: f64,
}

/// Counts how speculation went. Each of the regions has counted every transaction.
pub(super) fn speculated(run: &Run) -> Speculated {
    let [failed, chosen] = ["catenae.failed_speculation", "catenae.chosen"].map(|probe| run.probe(probe) as f64 / REGIONS.len() as f64);
    let all = (run.meter.committed() + run.meter.aborted + run.meter.failed + run.meter.unanswered) as f64;
    Speculated {
        conflicting: ratio(chosen + failed, all),
        of_conflicting: ratio(chosen, chosen + failed),
        of_all: 1.0 - ratio(failed, all),
    }
}

/// What Catenae is held to against each baseline.
pub(super) struct Claim {
    pub(super) throughput: (&'static str, f64),
    /// The paper's words, and the share of the baseline's latency that it may take at most.
    pub(super) latency: (&'static str, f64),
}

/// Holds both forms of Catenae against both baselines at `clients` per server.
pub(super) fn compare(runs: &Runs, workload: Workload, clients: u64, claim: &Claim, outcome: &mut Outcome) {
    for catenae in [System::Catenae(When::Region), System::Catenae(When::Majority)] {
        for baseline in [System::Locking, System::Optimistic] {
            let (ours, theirs) = (&runs[&(catenae, clients)].meter, &runs[&(baseline, clients)].meter);
            let what =
                |what: &str| format!("{what}, {} over {}, {}, {clients} clients/server", catenae.name(), baseline.name(), workload.name());
            let throughput = ratio(ours.throughput(), theirs.throughput());
            outcome.findings.push(Finding::at_least(what("throughput"), claim.throughput.0, throughput, claim.throughput.1, "×"));
            let latency = ratio(ours.mean_ms(), theirs.mean_ms());
            outcome.findings.push(Finding::at_most(what("mean latency"), claim.latency.0, latency, claim.latency.1, "×"));
        }
    }
}
