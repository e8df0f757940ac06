//! A replicated log per shard with two-phase commit, under faults: many seeds, all checkers.

use crate::support::seeds::run;
use rhumb_sim::Scenario;
use rhumb_sim::replicated_log::ReplicatedLog;

const SEEDS: u64 = 150;

#[test]
fn it_holds_under_all_faults() {
    let rare = [
        "log.wounded",
        "log.vetoed",
        "log.in_doubt",
        "log.prepare_timeout",
        "log.gateway_silent",
        "log.state_installed",
        "log.confirmed_by_round",
        "log.follower_read",
        "log.forgotten",
        "disk.sync_failed",
        "folder.refused",
        "site.lost",
    ];
    let reports = run(&ReplicatedLog::default(), 0..SEEDS, &rare);
    let sum = |count: fn(&rhumb_sim::Report) -> u64| reports.iter().map(count).sum::<u64>();
    println!("{} committed, {} aborted, {} unknown", sum(|it| it.committed), sum(|it| it.aborted), sum(|it| it.unknown));
}

#[test]
fn without_faults_nothing_is_unknown() {
    for report in run(&ReplicatedLog::default().with_calm(true), 0..10, &[]) {
        assert_eq!(report.unknown, 0, "{report}");
    }
}

#[test]
fn a_seed_always_gives_the_same_run() {
    let scenario = ReplicatedLog::default();
    assert_eq!(scenario.run(3, true), scenario.run(3, true));
}
