//! Paxos Commit over both concurrency controls, under faults: many seeds, all checkers.

use rhumb_paxos_commit::Concurrency;
use rhumb_sim::paxos_commit::PaxosCommit;
use rhumb_sim::{Report, Scenario, all_cores, run_seeds};

/// For each of the two.
const SEEDS: u64 = 150;

fn run(scenario: &impl Scenario, seeds: std::ops::Range<u64>) -> Vec<Report> {
    let reports = run_seeds(scenario, seeds, all_cores(), |_| {});
    let failed: Vec<String> = reports.iter().filter(|report| report.violation.is_some()).map(ToString::to_string).collect();
    assert!(failed.is_empty(), "{} seeds failed:\n{}", failed.len(), failed.join("\n\n"));
    reports
}

fn of(concurrency: Concurrency) -> PaxosCommit {
    PaxosCommit { concurrency: Some(concurrency), ..PaxosCommit::default() }
}

fn hold(concurrency: Concurrency, rare: &[&str]) {
    let reports = run(&of(concurrency), 0..SEEDS);
    let sum = |count: fn(&Report) -> u64| reports.iter().map(count).sum::<u64>();
    println!("{} committed, {} aborted, {} unknown", sum(|it| it.committed), sum(|it| it.aborted), sum(|it| it.unknown));
    for event in rare.iter().chain(&["disk.sync_failed", "folder.refused", "site.lost"]) {
        let count: u64 = reports.iter().filter_map(|report| report.probes.get(event)).sum();
        println!("{event}: {count}");
        assert!(count > 0, "{event} never happened");
    }
}

#[test]
fn locking_holds_under_all_faults() {
    let rare = ["paxos_commit.wounded", "paxos_commit.lock_lost", "paxos_commit.resolved_in_doubt", "paxos_commit.left_behind"];
    hold(Concurrency::Locking, &rare);
}

#[test]
fn validation_holds_under_all_faults() {
    let rare = ["paxos_commit.stale", "paxos_commit.locked", "paxos_commit.timestamp_too_low", "paxos_commit.resolved_in_doubt"];
    hold(Concurrency::Optimistic, &rare);
}

#[test]
fn without_faults_nothing_is_unknown() {
    for report in run(&PaxosCommit::default().with_calm(true), 0..10) {
        assert_eq!(report.unknown, 0, "{report}");
    }
}

#[test]
fn a_seed_always_gives_the_same_run() {
    let scenario = PaxosCommit::default();
    assert_eq!(scenario.run(3, true), scenario.run(3, true));
}
