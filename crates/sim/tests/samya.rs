//! Samya under faults: a fixed set of seeds, each judged by every checker.

use rhumb_sim::samya::Samya;
use rhumb_sim::{Report, all_cores, run_seeds, trace_seed};
use std::collections::BTreeMap;

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

fn probes(reports: &[Report]) -> BTreeMap<&str, u64> {
    let mut probes: BTreeMap<&str, u64> = BTreeMap::new();
    for (probe, count) in reports.iter().flat_map(|report| &report.probes) {
        *probes.entry(probe).or_default() += count;
    }
    probes
}

fn failures(reports: &[Report]) -> String {
    reports.iter().filter(|report| report.violation.is_some()).take(3).map(|report| format!("{report}\n")).collect()
}

#[test]
fn no_seed_shows_a_token_too_many_or_too_few_under_faults() {
    let reports = run_seeds(&Samya::default(), 0..SEEDS, all_cores(), |_| {});
    assert!(reports.iter().all(|report| report.violation.is_none()), "{}", failures(&reports));
    let probes = probes(&reports);
    for rare in RARE {
        assert!(probes.get(rare).is_some_and(|count| *count > 0), "no run came to {rare}: {probes:#?}");
    }
}

#[test]
fn without_faults_most_operations_find_their_tokens() {
    let reports = run_seeds(&Samya::default().with_calm(true), 0..CALM_SEEDS, all_cores(), |_| {});
    assert!(reports.iter().all(|report| report.violation.is_none()), "{}", failures(&reports));
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
