//! What must come out, at a size that a test has time for. Figures at full size stand in `docs/lab.md`.

use super::super::cluster::Cluster;
use super::super::lab::Lab;
use super::super::parameters::SHARES_4;
use super::super::run::{Run, Setup};
use super::super::system::System;
use super::EXPERIMENTS;
use crate::experiment::{Options, Silent};
use rhumb_commit::quad::quorums::Policy;
use rhumb_core::Span;
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
