//! What must come out, at a size that a test has time for. Figures at full size stand in `docs/lab.md`.

use super::super::cluster::Cluster;
use super::super::course::{Course, Leg};
use super::super::lab::Lab;
use super::super::parameters::SHARES_4;
use super::super::run::{Run, Setup};
use super::super::system::System;
use super::{EXPERIMENTS, figure11, noise, unequal};
use crate::experiment::{Options, Silent};
use rhumb_core::Span;
use rhumb_quad::quorums::{Policy, Scoring};
use std::collections::BTreeSet;

/// A speedup run of updates alone.
fn updates(policy: Policy, cluster: &Cluster, workers: u64, measured: Span) -> Run {
    let lab = Lab::new(Options::default());
    let quorums = System::new(policy, 2).quorums(cluster);
    let setup = lab.speedup(String::new(), cluster, quorums, 0, workers);
    lab.run(&Setup { measured, ..setup }, &mut Silent).expect("nothing goes wrong")
}

/// The mean response times of QuAD and of the faster one of both majorities.
fn against_majorities(cluster: &Cluster, measured: Span) -> (f64, f64) {
    let mean = |policy| updates(policy, cluster, 40, measured).mean_ms();
    (mean(Policy::Quad), mean(Policy::MajorityRandom).min(mean(Policy::MajorityRoundRobin)))
}

#[test]
fn updates_take_less_time_where_the_loaded_sites_are_avoided() {
    let (quad, majority) = against_majorities(&Cluster::datacenter(&SHARES_4), Span::from_millis(500));
    assert!(quad < majority, "{quad} against {majority}");
}

#[test]
fn updates_take_half_the_time_where_far_sites_are_avoided() {
    let (quad, majority) = against_majorities(&Cluster::classes(4), Span::from_secs(4));
    assert!(2.0 * quad < majority, "{quad} against {majority}");
}

#[test]
fn every_system_commits_and_none_fails() {
    for policy in Policy::ALL {
        let all = updates(policy, &Cluster::datacenter(&SHARES_4), 8, Span::from_millis(200)).meter.all();
        assert!(all.committed > 0 && all.failed == 0, "{policy:?}: {all:?}");
    }
}

#[test]
fn after_a_swap_of_loads_response_times_are_back_within_two_periods_and_only_if_quorums_follow() {
    let lab = Lab::new(Options::default());
    let (before, swap) = (0..figure11::PERIODS.0 as usize, figure11::PERIODS.0 as usize);
    let passed =
        |is_adaptive| figure11::swap(&lab, "", Policy::Quad, is_adaptive, figure11::SWAPPED).run(&mut Silent).expect("nothing goes wrong");
    let adaptive = passed(true);
    assert_eq!(adaptive.changes(before), 0, "the first quorums are those of the first loads");
    let after = swap..adaptive.configurations.len();
    assert_eq!((adaptive.changes(swap..swap + figure11::WITHIN), adaptive.changes(after)), (1, 1), "one change, within three periods");
    let means = adaptive.means_ms();
    let level = figure11::before(&means) * figure11::BACK;
    assert!(means[swap + figure11::WITHIN..].iter().all(|mean| *mean <= level), "{means:?} against {level}");
    let stays = passed(false).means_ms();
    assert!(stays[swap..].iter().all(|mean| *mean > level), "{stays:?} against {level}");
}

#[test]
fn noise_changes_no_roles_and_what_lasts_changes_them_once() {
    let periods = 24;
    for case in noise::CASES {
        let passed = case.course(1, periods as u64).run(&mut Silent).expect("nothing goes wrong");
        let changes = [0, 1, 2].map(|leg| passed.changes(leg * periods..(leg + 1) * periods));
        assert!(changes.iter().all(|changes| *changes <= 1), "{}: {changes:?}", case.title);
    }
}

#[test]
fn where_machines_are_unequal_the_fast_ones_become_cores_by_latency_alone() {
    let cores = |scoring| {
        let course = unequal::course(1, String::new(), scoring, unequal::WORKERS[0].1);
        let legs = vec![Leg { periods: 16, ..course.legs[0].clone() }];
        let passed = Course { legs, ..course }.run(&mut Silent).expect("nothing goes wrong");
        let mut cores: Vec<u16> = passed.configurations.last().expect("there were periods").1.iter().map(|site| site.region.0).collect();
        cores.sort_unstable();
        cores
    };
    assert_eq!((cores(Scoring::Load), cores(Scoring::Latency)), (vec![0, 1], vec![2, 3]));
}

#[test]
fn a_seed_always_gives_the_same_run() {
    let run = || updates(Policy::MajorityRandom, &Cluster::datacenter(&SHARES_4), 8, Span::from_millis(200));
    assert_eq!(run(), run());
}

#[test]
fn experiments_have_names_of_their_own() {
    let names: BTreeSet<&str> = EXPERIMENTS.iter().map(|it| it.name).collect();
    assert_eq!(names.len(), EXPERIMENTS.len());
    assert!(names.iter().all(|name| name.starts_with("quad-")));
}
