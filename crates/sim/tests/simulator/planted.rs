//! The tests are tested: every bug planted in the protocol, or in the driver below it, must be caught within a stated
//! number of seeds. Most are by the first; the few that need a crash, a cut and a conflict to meet take hundreds.
//!
//! Some are left out, which take more than random schedules have. A site that has restarted refuses every timestamp at or below its bound on
//! disk, which hides that it forgot a refusal (`RefusalNotDurable`): scenarios of `rhumb-replicated-commit` catch that, and what else takes one
//! crash, withdrawal or operator's word at the very moment. Another one needs a session of QuAD that is lost without its gateway hearing of it, and a
//! write in between, which few seeds have (`SessionsIgnored`): `quad_moves/steps.rs` arranges just that. A copy of QuAD's is older than what
//! was listed only if its source had also told before the sync (`OldCopiesTaken`): `quad_moves/unsynced.rs` breaks both rules.

use rhumb_core::Rules;
use rhumb_replicated_commit::planted::Planted;
use rhumb_sim::catenae::Catenae;
use rhumb_sim::paxos_commit::PaxosCommit;
use rhumb_sim::quad::Quad;
use rhumb_sim::replicated_commit::{Replicas, ReplicatedCommit};
use rhumb_sim::replicated_log::ReplicatedLog;
use rhumb_sim::samya::Samya;
use rhumb_sim::{Scenario, all_cores, run_seeds};

/// Every planted bug is caught by one of so many seeds.
const SEEDS: u64 = 1_000;

/// Bugs that many seeds did not catch when they were tried last, in which scenario, and one that did: it is tried first.
const CAUGHT_LATE: [(&str, &str, u64); 17] = [
    ("catenae", "ClocksBelieved", 64),
    ("catenae", "SyncFailureIgnored", 15),
    ("moving-replicas", "StopsInDoubt", 11),
    ("quad", "AnswerBeforeSync", 62),
    ("quad", "ClocksBelieved", 16),
    ("quad", "LocksWalked", 15),
    ("quad", "OldFoldersAccepted", 137),
    ("quad", "ShownUnsettled", 13),
    ("quad", "SyncFailureIgnored", 24),
    ("replicated-commit", "AnswerBeforeSync", 12),
    ("replicated-commit", "LocksWalked", 15),
    ("replicated-log", "CeilingForgotten", 59),
    ("replicated-log", "DecisionDropped", 114),
    ("replicated-log", "ForgottenIsAborted", 114),
    ("replicated-log", "PromiseForgotten", 106),
    ("replicated-log", "ShortLogElected", 107),
    ("samya", "AbortAfterAccept", 24),
];

fn first_caught(scenario: &impl Scenario, bug: &str) -> Option<(u64, String)> {
    let late = CAUGHT_LATE.iter().find(|(name, late, _)| (*name, *late) == (scenario.name(), bug)).map(|(_, _, seed)| *seed / 10 * 10);
    // In slices, so that a bug caught early costs little.
    late.into_iter().chain((0..SEEDS).step_by(10)).find_map(|start| {
        let reports = run_seeds(scenario, start..start + 10, all_cores(), |_| {});
        reports.into_iter().find_map(|report| Some((report.seed, report.violation?)))
    })
}

/// Asserts that each of `bugs` is caught in its scenario.
fn assert_all_caught<B: Copy + std::fmt::Debug, S: Scenario>(bugs: impl IntoIterator<Item = B>, scenario: impl Fn(B) -> S) {
    let mut missed = Vec::new();
    for bug in bugs {
        match first_caught(&scenario(bug), &format!("{bug:?}")) {
            Some((seed, violation)) => println!("{bug:?}: seed {seed}: {}", violation.lines().next().unwrap_or_default()),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not caught within {SEEDS} seeds: {missed:?}");
}

#[test]
fn every_bug_planted_in_the_protocol_is_caught() {
    // These are caught by scenarios or the models of `rhumb-replicated-commit`.
    let elsewhere = [
        Planted::RefusalNotDurable,
        Planted::PreparedTakenOver,
        Planted::ProvisionalCounts,
        Planted::FirmWithdrawn,
        Planted::GatewayCountsOn,
        Planted::EarlierHandoffTaken,
        Planted::EarlierCopyTaken,
        Planted::DoubtsNotDurable,
        Planted::LostRefuses,
        Planted::MajorityOfSurvivors,
        Planted::LateWordCounts,
        Planted::BoundBelieves,
        Planted::PromiseNotDurable,
        Planted::AcceptedIgnored,
        Planted::RivalsBothCommit,
        Planted::StaleUnseen,
        Planted::DoubtsCollected,
        Planted::CoveredIsAbsent,
        Planted::TakenOverIsAbsent,
        Planted::FloorsIgnored,
        Planted::DeletionsForgotten,
        Planted::CollectedUnseen,
        Planted::CommittingShown,
        Planted::CommittingTakenBack,
    ];
    let bugs = Planted::ALL.into_iter().filter(|bug| !elsewhere.contains(bug));
    assert_all_caught(bugs, |bug| {
        let replicas = match bug {
            Planted::HandoffTakenAgain => Replicas::Placed,
            Planted::StopsInDoubt | Planted::VotesUnsettled => Replicas::Moving,
            _ => Replicas::Everywhere,
        };
        ReplicatedCommit { rules: Rules::breaking(bug), replicas, ..ReplicatedCommit::default() }
    });
}

#[test]
fn a_scenario_with_a_bug_replays_like_any_other() {
    let scenario = ReplicatedCommit { rules: Rules::breaking(Planted::SharedLockSkipped), ..ReplicatedCommit::default() };
    assert_eq!(scenario.run(3, true), scenario.run(3, true));
}

#[test]
fn every_bug_planted_in_the_quotas_is_caught() {
    use rhumb_quota::planted::Planted;
    // These are caught by scenarios of `rhumb-quota`: it takes one message late, or a site lost, at the very moment; or an operator.
    let elsewhere = [Planted::CountUnconfirmed, Planted::CountMixed, Planted::CountInFlight, Planted::LostListDead, Planted::FreedAgain];
    let bugs = Planted::ALL.into_iter().filter(|bug| !elsewhere.contains(bug));
    assert_all_caught(bugs, |bug| Samya { rules: Rules::breaking(bug), ..Samya::default() });
}

#[test]
fn every_bug_planted_in_catenae_is_caught() {
    assert_all_caught(rhumb_catenae::planted::Planted::ALL, |bug| Catenae { rules: Rules::breaking(bug), ..Catenae::default() });
}

#[test]
fn every_bug_planted_in_the_forwarding_of_catenae_is_caught() {
    let scenario = Catenae::default().with_namespaces();
    assert_all_caught(rhumb_catenae::planted::Planted::FORWARDING, |bug| Catenae { rules: Rules::breaking(bug), ..scenario.clone() });
}

#[test]
fn every_bug_planted_in_paxos_commit_is_caught() {
    assert_all_caught(rhumb_paxos_commit::planted::Planted::ALL, |bug| PaxosCommit {
        rules: Rules::breaking(bug),
        ..PaxosCommit::default()
    });
}

#[test]
fn every_bug_planted_in_the_replicated_log_is_caught() {
    use rhumb_replicated_log::planted::Planted;
    // These are caught by unit tests and scenarios of `rhumb-replicated-log`: it takes a leader that changes twice, a restart at the very moment, or a
    // leader that is deposed and asked for a snapshot at a timestamp up to which it need not agree with anybody.
    let elsewhere = [Planted::OldBallotCounted, Planted::LeaseNotWaitedOut, Planted::LeaseEndless];
    let bugs = Planted::ALL.into_iter().filter(|bug| !elsewhere.contains(bug));
    assert_all_caught(bugs, |bug| ReplicatedLog { rules: Rules::breaking(bug), ..ReplicatedLog::default() });
}

#[test]
fn every_bug_planted_in_quad_is_caught() {
    use rhumb_quad::planted::Planted;
    // These are caught by scenarios or the models of `rhumb-quad`: it takes two movers or a crash at the very moment, or an operator who is wrong.
    let elsewhere = [
        Planted::SessionsIgnored,
        Planted::OldCopiesTaken,
        Planted::PromiseForgotten,
        Planted::AcceptedIgnored,
        Planted::MinorityDecides,
        Planted::LossUnbounded,
        Planted::QuestionsNamedAnew,
        Planted::PullsKeptOverEpochs,
    ];
    let bugs = Planted::ALL.into_iter().filter(|bug| !elsewhere.contains(bug));
    assert_all_caught(bugs, |bug| Quad { rules: Rules::breaking(bug), ..Quad::default() });
}

#[test]
fn a_clock_that_is_believed_whatever_it_shows_is_caught() {
    let believed = [rhumb_sim::Planted::ClocksBelieved];
    assert_all_caught(believed, |bug| ReplicatedCommit { driver: Rules::breaking(bug), ..ReplicatedCommit::default() });
    assert_all_caught(believed, |bug| Catenae { driver: Rules::breaking(bug), ..Catenae::default() });
    assert_all_caught(believed, |bug| Quad { driver: Rules::breaking(bug), ..Quad::default() });
}

#[test]
fn a_row_held_in_memory_that_misses_a_write_is_caught() {
    let stale = [rhumb_sim::Planted::NewestNotNoted];
    assert_all_caught(stale, |bug| ReplicatedCommit { driver: Rules::breaking(bug), ..ReplicatedCommit::default() });
    assert_all_caught(stale, |bug| Catenae { driver: Rules::breaking(bug), ..Catenae::default() });
    assert_all_caught(stale, |bug| PaxosCommit { driver: Rules::breaking(bug), ..PaxosCommit::default() });
    assert_all_caught(stale, |bug| Quad { driver: Rules::breaking(bug), ..Quad::default() });
}

#[test]
fn a_folder_that_is_not_what_its_site_left_is_caught_where_it_is_accepted() {
    let accepted = [rhumb_sim::Planted::OldFoldersAccepted];
    assert_all_caught(accepted, |bug| ReplicatedCommit { driver: Rules::breaking(bug), ..ReplicatedCommit::default() });
    assert_all_caught(accepted, |bug| Catenae { driver: Rules::breaking(bug), ..Catenae::default() });
    assert_all_caught(accepted, |bug| PaxosCommit { driver: Rules::breaking(bug), ..PaxosCommit::default() });
    assert_all_caught(accepted, |bug| Quad { driver: Rules::breaking(bug), ..Quad::default() });
}

#[test]
fn what_is_told_before_the_sync_or_after_one_that_failed_is_caught_in_every_protocol() {
    let early = [rhumb_sim::Planted::AnswerBeforeSync, rhumb_sim::Planted::SyncFailureIgnored];
    // What a failed sync has taken from one disk, Replicated Commit and Paxos Commit have on two others: it shows only where these lose it as
    // well, in none of the thousand seeds.
    assert_all_caught([rhumb_sim::Planted::AnswerBeforeSync], |bug| ReplicatedCommit {
        driver: Rules::breaking(bug),
        ..ReplicatedCommit::default()
    });
    assert_all_caught([rhumb_sim::Planted::AnswerBeforeSync], |bug| PaxosCommit { driver: Rules::breaking(bug), ..PaxosCommit::default() });
    assert_all_caught(early, |bug| Samya { driver: Rules::breaking(bug), ..Samya::default() });
    assert_all_caught(early, |bug| Catenae { driver: Rules::breaking(bug), ..Catenae::default() });
    assert_all_caught(early, |bug| Quad { driver: Rules::breaking(bug), ..Quad::default() });
}
