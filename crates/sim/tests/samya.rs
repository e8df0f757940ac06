//! Samya under faults, by seed.

use rhumb_sim::samya::Samya;
use rhumb_sim::{all_cores, run_seed, run_seeds, trace_seed};
use std::collections::BTreeMap;

/// Fixed, so that a failure here is the same everywhere; `rhumb sim samya --seeds 1000` runs more.
const SEEDS: u64 = 200;

#[test]
fn no_seed_violates_anything_and_every_rare_branch_runs() {
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    let reports = run_seeds(&Samya::default(), 0..seeds, all_cores(), |_| {});
    for report in &reports {
        assert!(report.violation.is_none(), "{report}");
    }
    let mut probes: BTreeMap<&str, u64> = BTreeMap::new();
    for (probe, count) in reports.iter().flat_map(|report| &report.probes) {
        *probes.entry(probe).or_default() += count;
    }
    println!("{} done, {} refused", reports.iter().map(|r| r.committed).sum::<u64>(), reports.iter().map(|r| r.aborted).sum::<u64>());
    println!("{probes:#?}");
}

#[test]
fn a_run_without_faults_refuses_only_what_the_limit_refuses() {
    let report = run_seed(&Samya::default().with_calm(true), 1);
    assert!(report.violation.is_none(), "{report}");
    assert_eq!(report.unknown, 0);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    assert_eq!(trace_seed(&Samya::default(), 5), trace_seed(&Samya::default(), 5));
}
