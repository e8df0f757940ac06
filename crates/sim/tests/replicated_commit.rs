//! Replicated Commit under faults: a fixed set of seeds, each judged by every checker.

use rhumb_sim::replicated_commit::{Replicas, ReplicatedCommit};
use rhumb_sim::{Report, all_cores, run_seeds, trace_seed};
use std::collections::BTreeMap;

/// Seeds that `make test` runs; `rhumb sim replicated-commit --seeds 1000` runs more.
const SEEDS: u64 = 200;

/// Branches that are rare in practice and must have run here, or the faults are too tame.
const RARE: [&str; 15] = [
    "catch_up.applied",
    "commit.applied_again",
    "commit.asked_forgotten",
    "commit.attempt_again",
    "commit.cohort_asks",
    "commit.in_doubt_asks",
    "commit.learnt_from_log",
    "commit.unknown",
    "commit.vote_firm",
    "commit.vote_no_unknown_transaction",
    "commit.vote_no_timed_out",
    "commit.vote_no_withdrawn",
    "commit.worked_out",
    "read.snapshot_second_round",
    "read.waits_for_prepared",
];

/// How a region comes to be lost, and what fails besides.
const STRUCK: [&str; 7] =
    ["disk.sync_failed", "folder.empty", "folder.empty_store", "folder.older", "folder.older_store", "folder.refused", "site.lost"];

fn failures(reports: &[Report]) -> String {
    reports.iter().filter(|report| report.violation.is_some()).take(3).map(|report| format!("{report}\n")).collect()
}

/// The same where not every region is active.
const RARE_PLACED: [&str; 9] = [
    "catch_up.applied",
    "catch_up.copied",
    "catch_up.copy_ignored",
    "commit.asked_forgotten",
    "commit.handed_over",
    "commit.handoff_over",
    "commit.handoff_taken",
    "commit.handoff_unknown",
    "commit.worked_out",
];

#[test]
fn no_seed_shows_an_anomaly_under_faults() {
    check(&ReplicatedCommit::default(), &[&RARE[..], &STRUCK].concat());
}

#[test]
fn no_seed_shows_an_anomaly_where_not_every_region_is_active() {
    check(&ReplicatedCommit::default().with_replicas(Replicas::Placed), &[&RARE_PLACED[..], &["site.lost"]].concat());
}

/// The same while replicas move.
const RARE_MOVING: [&str; 6] = [
    "commit.vote_no_stale_configuration",
    "commit.vote_no_copy_incomplete",
    "placement.joined",
    "placement.settled",
    "placement.waits_until_settled",
    "read.denied_no_copy",
];

#[test]
fn no_seed_shows_an_anomaly_while_replicas_move() {
    check(&ReplicatedCommit::default().with_replicas(Replicas::Moving), &[&RARE_MOVING[..], &["site.lost"]].concat());
}

fn check(scenario: &ReplicatedCommit, rare: &[&str]) {
    let reports = run_seeds(scenario, 0..SEEDS, all_cores(), |_| {});
    assert!(reports.iter().all(|report| report.violation.is_none()), "{}", failures(&reports));
    let mut probes: BTreeMap<&str, u64> = BTreeMap::new();
    for (probe, count) in reports.iter().flat_map(|report| &report.probes) {
        *probes.entry(probe).or_default() += count;
    }
    for rare in rare {
        assert!(probes.get(*rare).is_some_and(|count| *count > 0), "no run came to {rare}: {probes:#?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = || trace_seed(&ReplicatedCommit::default(), 7);
    assert_eq!(run(), run());
}

#[test]
fn nearly_all_transactions_commit_when_nothing_goes_wrong() {
    let report = trace_seed(&ReplicatedCommit::default().with_calm(true), 1);
    assert_eq!(report.violation, None, "{report}");
    assert_eq!(report.unknown, 0);
    assert!(report.committed > report.aborted, "{report}");
}
