//! Catenae under faults: many seeds, all checkers.

use rhumb_sim::catenae::Catenae;
use rhumb_sim::{Report, Scenario, all_cores, run_seeds};
use std::collections::BTreeMap;

const SEEDS: u64 = 100;

fn probes(reports: &[Report]) -> BTreeMap<&'static str, u64> {
    let mut sums = BTreeMap::new();
    for (name, count) in reports.iter().flat_map(|report| &report.probes) {
        *sums.entry(*name).or_default() += count;
    }
    sums
}

fn run(scenario: &impl Scenario, seeds: std::ops::Range<u64>) -> Vec<Report> {
    let reports = run_seeds(scenario, seeds, all_cores(), |_| {});
    let failed: Vec<String> = reports.iter().filter(|report| report.violation.is_some()).map(ToString::to_string).collect();
    assert!(failed.is_empty(), "{} seeds failed:\n{}", failed.len(), failed.join("\n\n"));
    reports
}

#[test]
fn promises_hold_under_all_faults() {
    let reports = run(&Catenae::default(), 0..SEEDS);
    let (committed, unknown) =
        reports.iter().fold((0, 0), |(committed, unknown), report| (committed + report.committed, unknown + report.unknown));
    println!("{committed} committed, {unknown} unknown");
    let probes = probes(&reports);
    println!("{probes:#?}");
    let struck = ["disk.sync_failed", "folder.refused", "site.lost"];
    let rare = ["catenae.failed_speculation", "catenae.took_over", "catenae.led_own", "catenae.lost_batch", "catenae.caught_up"];
    for rare in rare.into_iter().chain(struck) {
        assert!(probes.get(rare).is_some_and(|count| *count > 0), "{rare} never happened");
    }
}

#[test]
fn promises_hold_where_chains_cross_the_sites_of_a_region() {
    let probes = probes(&run(&Catenae::default().with_crossing(), 0..SEEDS / 4));
    println!("{probes:#?}");
    for rare in ["catenae.crossing", "catenae.crossing_lost", "catenae.took_over", "catenae.failed_speculation"] {
        assert!(probes.get(rare).is_some_and(|count| *count > 0), "{rare} never happened");
    }
}

#[test]
fn promises_hold_where_a_region_has_two_coordinators() {
    let probes = probes(&run(&Catenae::default().with_namespaces(), 0..SEEDS / 4));
    println!("{probes:#?}");
    let rare = ["catenae.forwarded", "catenae.taken_back", "catenae.not_taken", "catenae.took_over", "catenae.failed_speculation"];
    for rare in rare {
        assert!(probes.get(rare).is_some_and(|count| *count > 0), "{rare} never happened");
    }
}

#[test]
fn chains_that_cross_sites_end_where_nothing_goes_wrong() {
    let reports = run(&Catenae::default().with_crossing().with_calm(true), 0..6);
    let probes = probes(&reports);
    assert!(probes["catenae.crossing"] > 0);
    assert_eq!(probes.get("catenae.crossing_lost"), None);
    assert!(reports.iter().all(|report| report.unknown == 0));
}

#[test]
fn without_faults_nothing_is_unknown() {
    let two_coordinators = Catenae::default().with_namespaces().with_calm(true);
    for report in run(&Catenae::default().with_calm(true), 0..6).into_iter().chain(run(&two_coordinators, 0..6)) {
        assert_eq!(report.unknown, 0, "{report}");
    }
}

#[test]
fn a_seed_always_gives_the_same_run() {
    let scenario = Catenae::default();
    assert_eq!(scenario.run(3, true), scenario.run(3, true));
}
