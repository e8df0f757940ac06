//! Paxos Commit over both concurrency controls, under faults: many seeds, all checkers.

use crate::support::seeds::run;
use rhumb_paxos_commit::Concurrency;
use rhumb_sim::paxos_commit::PaxosCommit;
use rhumb_sim::{Report, Scenario};

/// For each of the two.
const SEEDS: u64 = 150;

fn of(concurrency: Concurrency) -> PaxosCommit {
    PaxosCommit { concurrency: Some(concurrency), ..PaxosCommit::default() }
}

fn hold(concurrency: Concurrency, rare: &[&str]) {
    let reports = run(&of(concurrency), 0..SEEDS, &[rare, &["disk.sync_failed", "folder.refused", "site.lost"]].concat());
    let sum = |count: fn(&Report) -> u64| reports.iter().map(count).sum::<u64>();
    println!("{} committed, {} aborted, {} unknown", sum(|it| it.committed), sum(|it| it.aborted), sum(|it| it.unknown));
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
    for report in run(&PaxosCommit::default().with_calm(true), 0..10, &[]) {
        assert_eq!(report.unknown, 0, "{report}");
    }
}

#[test]
fn a_seed_always_gives_the_same_run() {
    let scenario = PaxosCommit::default();
    assert_eq!(scenario.run(3, true), scenario.run(3, true));
}
