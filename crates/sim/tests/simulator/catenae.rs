//! Catenae under faults: many seeds, all checkers.

use crate::support::seeds::run;
use rhumb_sim::Scenario;
use rhumb_sim::catenae::Catenae;

const SEEDS: u64 = 100;

#[test]
fn promises_hold_under_all_faults() {
    let struck = ["disk.sync_failed", "folder.refused", "site.lost"];
    let rare = ["catenae.failed_speculation", "catenae.took_over", "catenae.led_own", "catenae.lost_batch", "catenae.caught_up"];
    run(&Catenae::default(), 0..SEEDS, &[&rare[..], &struck].concat());
}

#[test]
fn promises_hold_where_chains_cross_the_sites_of_a_region() {
    let rare = ["catenae.crossing", "catenae.crossing_lost", "catenae.took_over", "catenae.failed_speculation"];
    run(&Catenae::default().with_crossing(), 0..SEEDS / 4, &rare);
}

#[test]
fn promises_hold_where_a_region_has_two_coordinators() {
    let rare = ["catenae.forwarded", "catenae.taken_back", "catenae.not_taken", "catenae.took_over", "catenae.failed_speculation"];
    run(&Catenae::default().with_namespaces(), 0..SEEDS / 4, &rare);
}

#[test]
fn chains_that_cross_sites_end_where_nothing_goes_wrong() {
    for report in run(&Catenae::default().with_crossing().with_calm(true), 0..6, &["catenae.crossing"]) {
        assert_eq!((report.probes.get("catenae.crossing_lost"), report.unknown), (None, 0), "{report}");
    }
}

#[test]
fn without_faults_nothing_is_unknown() {
    for scenario in [Catenae::default(), Catenae::default().with_namespaces()] {
        for report in run(&scenario.with_calm(true), 0..6, &[]) {
            assert_eq!(report.unknown, 0, "{report}");
        }
    }
}

#[test]
fn a_seed_always_gives_the_same_run() {
    let scenario = Catenae::default();
    assert_eq!(scenario.run(3, true), scenario.run(3, true));
}
