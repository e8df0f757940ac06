//! Many seeds of a scenario, each judged by every checker.

use rhumb_sim::{Report, Scenario, all_cores, run_seeds};
use std::collections::BTreeMap;
use std::ops::Range;

/// Runs `seeds`, of which none may show an anomaly. What is `rare` in practice must have happened in one of them, or the faults are too tame.
pub fn run(scenario: &impl Scenario, seeds: Range<u64>, rare: &[&str]) -> Vec<Report> {
    let reports = run_seeds(scenario, seeds, all_cores(), |_| {});
    let failed: Vec<String> = reports.iter().filter(|report| report.violation.is_some()).map(ToString::to_string).collect();
    assert!(failed.is_empty(), "{} seeds failed, among them:\n{}", failed.len(), failed[..failed.len().min(3)].join("\n\n"));
    let mut probes: BTreeMap<&str, u64> = BTreeMap::new();
    for (probe, count) in reports.iter().flat_map(|report| &report.probes) {
        *probes.entry(probe).or_default() += count;
    }
    println!("{probes:#?}");
    let missed: Vec<&&str> = rare.iter().filter(|event| probes.get(**event).is_none_or(|count| *count == 0)).collect();
    assert!(missed.is_empty(), "{missed:?} never happened");
    reports
}
