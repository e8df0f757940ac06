//! The tests are tested: every bug planted in the protocol, or in the driver below it, must be caught within a stated
//! number of seeds. Most are by the first; the few that need a crash, a cut and a conflict to meet take hundreds.
//!
//! One is left out: a site that has restarted refuses every timestamp at or below its ceiling, which hides from random
//! schedules that it forgot a refusal (`RefusalNotDurable`); the scenario `a_refusal_outlives_a_crash` and the model in
//! `crates/commit/tests` catch that.

#![cfg(feature = "planted")]

use rhumb_commit::replicated_commit::planted::Planted;
use rhumb_sim::catenae::Catenae;
use rhumb_sim::paxos_commit::PaxosCommit;
use rhumb_sim::replicated_commit::{Replicas, ReplicatedCommit};
use rhumb_sim::samya::Samya;
use rhumb_sim::{Scenario, all_cores, run_seeds};

/// Every planted bug is caught by one of so many seeds.
const SEEDS: u64 = 400;

fn first_caught(scenario: &impl Scenario) -> Option<(u64, String)> {
    // In slices, so that a bug caught early costs little.
    (0..SEEDS).step_by(10).find_map(|start| {
        let reports = run_seeds(scenario, start..start + 10, all_cores(), |_| {});
        reports.into_iter().find_map(|report| Some((report.seed, report.violation?)))
    })
}

#[test]
fn every_bug_planted_in_the_protocol_is_caught() {
    let mut missed = Vec::new();
    for bug in Planted::ALL.into_iter().filter(|bug| *bug != Planted::RefusalNotDurable) {
        let replicas = match bug {
            Planted::HandoffTakenAgain => Replicas::Placed,
            Planted::StopsInDoubt | Planted::VotesUnsettled => Replicas::Moving,
            _ => Replicas::Everywhere,
        };
        match first_caught(&ReplicatedCommit { planted: Some(bug), replicas, ..ReplicatedCommit::default() }) {
            Some((seed, violation)) => println!("{bug:?}: seed {seed}: {}", violation.lines().next().unwrap_or_default()),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not caught within {SEEDS} seeds: {missed:?}");
}

#[test]
fn an_answer_before_the_sync_is_caught() {
    let bug = rhumb_sim::Planted::AnswerBeforeSync;
    let caught = first_caught(&ReplicatedCommit { driver: Some(bug), ..ReplicatedCommit::default() });
    let (seed, violation) = caught.unwrap_or_else(|| panic!("{bug:?} is not caught within {SEEDS} seeds"));
    println!("{bug:?}: seed {seed}: {}", violation.lines().next().unwrap_or_default());
}

#[test]
fn a_scenario_with_a_bug_replays_like_any_other() {
    let scenario = ReplicatedCommit { planted: Some(Planted::SharedLockSkipped), ..ReplicatedCommit::default() };
    assert_eq!(scenario.run(3, true), scenario.run(3, true));
}

#[test]
fn every_bug_planted_in_the_quotas_is_caught() {
    let mut missed = Vec::new();
    for bug in rhumb_quota::planted::Planted::ALL {
        match first_caught(&Samya { planted: Some(bug), ..Samya::default() }) {
            Some((seed, violation)) => println!("{bug:?}: seed {seed}: {}", violation.lines().next().unwrap_or_default()),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not caught within {SEEDS} seeds: {missed:?}");
}

#[test]
fn a_token_told_of_before_the_sync_is_caught() {
    let bug = rhumb_sim::Planted::AnswerBeforeSync;
    let caught = first_caught(&Samya { driver: Some(bug), ..Samya::default() });
    let (seed, violation) = caught.unwrap_or_else(|| panic!("{bug:?} is not caught within {SEEDS} seeds"));
    println!("{bug:?}: seed {seed}: {}", violation.lines().next().unwrap_or_default());
}

#[test]
fn every_bug_planted_in_catenae_is_caught() {
    let mut missed = Vec::new();
    for bug in rhumb_commit::catenae::planted::Planted::ALL {
        match first_caught(&Catenae { planted: Some(bug), ..Catenae::default() }) {
            Some((seed, violation)) => println!("{bug:?}: seed {seed}: {}", violation.lines().next().unwrap_or_default()),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not caught within {SEEDS} seeds: {missed:?}");
}

#[test]
fn an_epoch_told_of_before_the_sync_is_caught() {
    let bug = rhumb_sim::Planted::AnswerBeforeSync;
    let caught = first_caught(&Catenae { driver: Some(bug), ..Catenae::default() });
    let (seed, violation) = caught.unwrap_or_else(|| panic!("{bug:?} is not caught within {SEEDS} seeds"));
    println!("{bug:?}: seed {seed}: {}", violation.lines().next().unwrap_or_default());
}

#[test]
fn every_bug_planted_in_paxos_commit_is_caught() {
    let mut missed = Vec::new();
    for bug in rhumb_commit::paxos_commit::planted::Planted::ALL {
        match first_caught(&PaxosCommit { planted: Some(bug), ..PaxosCommit::default() }) {
            Some((seed, violation)) => println!("{bug:?}: seed {seed}: {}", violation.lines().next().unwrap_or_default()),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not caught within {SEEDS} seeds: {missed:?}");
}

#[test]
fn a_vote_told_of_before_the_sync_is_caught() {
    let bug = rhumb_sim::Planted::AnswerBeforeSync;
    let caught = first_caught(&PaxosCommit { driver: Some(bug), ..PaxosCommit::default() });
    let (seed, violation) = caught.unwrap_or_else(|| panic!("{bug:?} is not caught within {SEEDS} seeds"));
    println!("{bug:?}: seed {seed}: {}", violation.lines().next().unwrap_or_default());
}
