//! QuAD under faults, a few seeds of it. `make soak` runs a thousand.

use rhumb_sim::quad::{CoresLost, Quad};
use rhumb_sim::{all_cores, run_seed, run_seeds};

/// Fixed, as in every test.
const SEEDS: u64 = 30;

#[test]
fn histories_are_strictly_serializable_and_nothing_acknowledged_is_lost() {
    let reports = run_seeds(&Quad::default(), 0..SEEDS, all_cores(), |_| {});
    for report in &reports {
        assert!(report.violation.is_none(), "{report}");
    }
    let struck = ["disk.sync_failed", "folder.refused", "site.lost"];
    let rare = ["quad.wounded", "quad.refused", "quad.adopted", "quad.carried", "quad.reconciled", "quad.taken_over"];
    for probe in rare.into_iter().chain(struck) {
        assert!(reports.iter().any(|report| report.probes.contains_key(probe)), "{probe} never happened");
    }
    assert!(reports.iter().map(|report| report.committed).sum::<u64>() > SEEDS * 50);
}

#[test]
fn without_faults_no_outcome_is_unknown() {
    let report = run_seed(&Quad::default().with_calm(true), 1);
    assert!(report.violation.is_none(), "{report}");
    assert_eq!(report.unknown, 0);
    assert!(report.committed > 100, "{report}");
}

#[test]
fn all_cores_but_one_may_be_lost() {
    let reports = run_seeds(&CoresLost::default(), 0..SEEDS, all_cores(), |_| {});
    for report in &reports {
        assert!(report.violation.is_none(), "{report}");
        assert!(report.probes.contains_key("quad.adopted"), "nothing was changed: {report}");
    }
}
