//! QuAD under faults, a few seeds of it. `make soak` runs a thousand.

use crate::support::seeds::run;
use rhumb_sim::quad::{CoresLost, Quad};

/// Fixed, as in every test.
const SEEDS: u64 = 30;

#[test]
fn histories_are_strictly_serializable_and_nothing_acknowledged_is_lost() {
    let struck = ["disk.sync_failed", "folder.refused", "site.lost"];
    let rare = ["quad.wounded", "quad.refused", "quad.adopted", "quad.carried", "quad.reconciled", "quad.taken_over"];
    let reports = run(&Quad::default(), 0..SEEDS, &[&rare[..], &struck].concat());
    assert!(reports.iter().map(|report| report.committed).sum::<u64>() > SEEDS * 50);
}

#[test]
fn without_faults_no_outcome_is_unknown() {
    for report in run(&Quad::default().with_calm(true), 1..2, &[]) {
        assert_eq!(report.unknown, 0);
        assert!(report.committed > 100, "{report}");
    }
}

#[test]
fn all_cores_but_one_may_be_lost() {
    for report in run(&CoresLost::default(), 0..SEEDS, &[]) {
        assert!(report.probes.contains_key("quad.adopted"), "nothing was changed: {report}");
    }
}
