//! New-Order by the number of warehouses, which the paper does not say: where contention decides, and where the machines do.
//!
//! Each order adds one to its district's counter. A baseline that locks lets one of them through in two round trips, Catenae as many as
//! share an epoch. So the fewer districts there are, the sooner locks hold the baselines up and not the machines.

use super::super::lab::Lab;
use super::super::parameters as p;
use super::super::setup::{Setup, System};
use super::super::workload::Workload;
use super::common::{CATENAE, cells};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, ratio};
use rhumb_core::Span;
use std::collections::BTreeMap;

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    by_warehouses(lab, p::LOCAL.row, &p::WAREHOUSES_OF_CONTENTION, &mut outcome, progress)?;
    by_warehouses(lab, p::FAST_ROW, &p::WAREHOUSES_OF_FAST_ROWS, &mut outcome, progress)?;
    Ok(outcome)
}

fn by_warehouses(lab: &mut Lab, row: Span, all: &[u64], outcome: &mut Outcome, progress: &mut dyn Progress) -> Result<(), Failure> {
    let warehouses = lab.some(all);
    let clients = p::COMPARED_AT;
    let title = format!("New-Order, {clients} clients/server, {} µs a row", row.as_micros());
    let mut sheet = Sheet::new(title.clone(), &["warehouses", "system", "tps", "mean ms", "p50 ms", "p99 ms", "aborted", "failed"]);
    let mut measured = BTreeMap::new();
    for &count in &warehouses {
        for system in System::ALL {
            let setup = Setup { row, ..lab.closed(system, Workload::NewOrder(count), clients) };
            let run = lab.run(&setup, progress)?;
            let meter = &run.meter;
            measured.insert((system, count), (meter.throughput(), meter.mean_ms()));
            let [tps, mean, p50, p99, aborted, failed] = cells(meter);
            sheet.row([count.to_string(), system.name().to_owned(), tps, mean, p50, p99, aborted, failed]);
        }
        for baseline in [System::Locking, System::Optimistic] {
            let ((tps, mean), (their_tps, their_mean)) = (measured[&(CATENAE, count)], measured[&(baseline, count)]);
            let what = |what: &str| format!("{what} over {}, {count} warehouses, {} µs a row", baseline.name(), row.as_micros());
            let (throughput, latency) = (ratio(tps, their_tps), ratio(mean, their_mean));
            outcome.findings.extend(if count == p::WAREHOUSES_OF_CLAIM {
                [
                    Finding::at_least(what("throughput"), "over 2×", throughput, 2.0, "×"),
                    Finding::at_most(what("mean latency"), "half", latency, 0.5, "×"),
                ]
            } else {
                [
                    Finding::plain(what("throughput"), "over 2×", format!("{throughput:.2}×")),
                    Finding::plain(what("mean latency"), "half", format!("{latency:.2}×")),
                ]
            });
        }
    }
    let mut chart = Chart::new(title, "warehouses", "transactions per second");
    for system in System::ALL {
        let points = warehouses.iter().rev().map(|count| (*count as f64, measured[&(system, *count)].0));
        chart.line(system.name(), points.collect());
    }
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
    Ok(())
}
