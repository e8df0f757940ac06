//! SQL over simulated sites: a few seeds of each protocol, and that a seed decides a run, byte by byte.

use rhumb_catenae as catenae;
use rhumb_quad as quad;
use rhumb_replicated_commit as replicated_commit;
use rhumb_sim::{Report, Scenario, all_cores, run_seeds, trace_seed};
use rhumb_sqlsim::Sql;

fn assert_all_well(scenario: &impl Scenario, seeds: std::ops::Range<u64>) -> Vec<Report> {
    let reports = run_seeds(scenario, seeds, all_cores(), |_| {});
    let failed: Vec<String> = reports.iter().filter(|report| report.violation.is_some()).map(Report::to_string).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    for report in &reports {
        println!("{report}");
    }
    reports
}

fn happened(reports: &[Report], what: &str) -> u64 {
    reports.iter().filter_map(|report| report.probes.get(what)).sum()
}

#[test]
fn replicated_commit() {
    let reports = assert_all_well(&Sql::<replicated_commit::Site>::default(), 0..2);
    assert!(happened(&reports, "audits") > 10, "audits must succeed to say anything");
}

#[test]
fn catenae() {
    let reports = assert_all_well(&Sql::<catenae::Site>::default(), 0..3);
    assert!(happened(&reports, "audits") > 10, "audits must succeed to say anything");
}

#[test]
fn quad() {
    let reports = assert_all_well(&Sql::<quad::Site>::default(), 0..2);
    assert!(happened(&reports, "audits") > 10, "audits must succeed to say anything");
}

#[test]
fn a_seed_decides_a_run_byte_by_byte() {
    let scenario = Sql::<catenae::Site>::default();
    let (first, second) = (trace_seed(&scenario, 3), trace_seed(&scenario, 3));
    assert!(first.trace.lines().count() > 10_000, "the trace shows messages and statements");
    assert_eq!(first, second);
}
