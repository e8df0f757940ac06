//! Samya under faults: a fixed set of seeds, each judged by every checker.

use crate::support::seeds::run;
use rhumb_sim::samya::Samya;
use rhumb_sim::{Report, trace_seed};

/// Seeds that `make test` runs; `rhumb sim samya --seeds 1000` runs more.
const SEEDS: u64 = 300;
/// Seeds without faults.
const CALM_SEEDS: u64 = 40;

/// Branches that are rare in practice and must have run here, or the faults are too tame.
const RARE: [&str; 16] = [
    "quota.answered_again",
    "quota.count.done",
    "quota.count.unanswered",
    "quota.count.void",
    "quota.lost.counted",
    "quota.lost.retired",
    "quota.redistribution.applied",
    "quota.redistribution.dead",
    "quota.redistribution.debt",
    "quota.redistribution.proactive",
    "quota.redistribution.reactive",
    "quota.redistribution.without",
    "quota.refused.exceeded",
    "quota.refused.not_held",
    "quota.refused.unreachable",
    "quota.waited",
];

#[test]
fn no_seed_shows_a_token_too_many_or_too_few_under_faults() {
    run(&Samya::default(), 0..SEEDS, &RARE);
}

#[test]
fn without_faults_most_operations_find_their_tokens() {
    let reports = run(&Samya::default().with_calm(true), 0..CALM_SEEDS, &[]);
    let sum = |count: fn(&Report) -> u64| reports.iter().map(count).sum::<u64>();
    assert_eq!(sum(|report| report.unknown), 0, "no site dies");
    let (done, refused) = (sum(|report| report.committed), sum(|report| report.aborted));
    assert!(done > 2 * refused, "{done} operations done, {refused} refused");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = || trace_seed(&Samya::default(), 5);
    assert_eq!(run(), run());
}
