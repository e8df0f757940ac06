//! Replicated Commit under faults: a fixed set of seeds, each judged by every checker.

use crate::support::seeds::run;
use rhumb_sim::replicated_commit::{Replicas, ReplicatedCommit};
use rhumb_sim::trace_seed;

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
    run(&ReplicatedCommit::default(), 0..SEEDS, &[&RARE[..], &STRUCK].concat());
}

#[test]
fn no_seed_shows_an_anomaly_where_not_every_region_is_active() {
    run(&ReplicatedCommit::default().with_replicas(Replicas::Placed), 0..SEEDS, &[&RARE_PLACED[..], &["site.lost"]].concat());
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
    run(&ReplicatedCommit::default().with_replicas(Replicas::Moving), 0..SEEDS, &[&RARE_MOVING[..], &["site.lost"]].concat());
}

/// The same at a cluster of one site.
const RARE_ALONE: [&str; 5] =
    ["commit.accept_again", "commit.in_one_phase", "disk.sync_failed", "read.overtaken_by_commit", "read.waits_for_prepared"];

#[test]
fn no_seed_shows_an_anomaly_where_one_site_is_the_cluster() {
    run(&ReplicatedCommit::default().with_replicas(Replicas::Alone), 0..SEEDS, &RARE_ALONE);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = || trace_seed(&ReplicatedCommit::default(), 7);
    assert_eq!(run(), run());
}

#[test]
fn nearly_all_transactions_commit_when_nothing_goes_wrong() {
    for report in run(&ReplicatedCommit::default().with_calm(true), 1..2, &[]) {
        assert_eq!(report.unknown, 0);
        assert!(report.committed > report.aborted, "{report}");
    }
}
