//! What must come out, at a size that a test has time for. Figures at full size stand in `docs/lab.md`.

use super::super::lab::Lab;
use super::super::run::Run;
use super::super::setup::{System, When};
use super::super::workload::{Skew, Workload};
use super::EXPERIMENTS;
use crate::experiment::{Options, Silent};
use std::rc::Rc;

/// Half a second is measured; 250 transactions make a point of Figure 1.
const QUICK: Options = Options { seed: 1, shorter: 12 };
const CLIENTS: u64 = 5;

fn all(workload: Workload) -> [Rc<Run>; 4] {
    let mut lab = Lab::new(QUICK);
    System::ALL.map(|system| {
        let setup = lab.closed(system, workload, CLIENTS);
        lab.run(&setup, &mut Silent).unwrap_or_else(|error| panic!("{}, {}: {error}", system.name(), workload.name()))
    })
}

/// Catenae in both forms has at least so many times the throughput of both baselines, and at most this share of their latency; without
/// aborts.
fn catenae_wins([region, majority, locking, optimistic]: &[Rc<Run>; 4], throughput: f64, latency: f64) {
    for ours in [region, majority].map(|run| &run.meter) {
        for theirs in [locking, optimistic].map(|run| &run.meter) {
            assert!(ours.throughput() >= throughput * theirs.throughput());
            assert!(ours.mean_ms() <= latency * theirs.mean_ms());
        }
        assert!(ours.abort_share() < 0.01 && ours.failed + ours.rejected == 0);
    }
}

#[test]
fn new_orders_under_contention_abort_nowhere_in_catenae() {
    let mut lab = Lab::new(QUICK);
    let setup = lab.closed(System::Catenae(When::Majority), Workload::NewOrder(4), CLIENTS);
    let run = lab.run(&setup, &mut Silent).expect("it runs");
    let meter = &run.meter;
    assert!(meter.committed() > 0);
    assert_eq!((meter.aborted, meter.failed, meter.rejected), (0, 0, 0));
}

#[test]
fn an_order_status_is_answered_at_home() {
    catenae_wins(&all(Workload::OrderStatus(40)), 2.0, 0.3);
}

#[test]
fn reads_commit_three_times_as_often() {
    catenae_wins(&all(Workload::ReadOnly(Skew::Uniform)), 3.0, 1.0 / 3.0);
}

#[test]
fn nothing_is_lost_or_aborted_however_often_speculation_fails() {
    let mut lab = Lab::new(QUICK);
    for skew in [Skew::Uniform, Skew::Zipf(1), Skew::Zipf(2)] {
        let setup = lab.open(System::Catenae(When::Region), Workload::Speculation(skew), 11_000);
        let run = lab.run(&setup, &mut Silent).expect("it runs");
        let meter = &run.meter;
        assert_eq!((meter.committed(), meter.aborted + meter.rejected + meter.failed + meter.unanswered), (250, 0), "{}", skew.name());
    }
}

#[test]
fn a_seed_always_gives_the_same_run() {
    let shown = || {
        let mut lab = Lab::new(QUICK);
        let setup = lab.open(System::Optimistic, Workload::Speculation(Skew::Zipf(1)), 11_000);
        let run = lab.run(&setup, &mut Silent).expect("it runs");
        format!("{:?}", run)
    };
    assert_eq!(shown(), shown());
}

#[test]
fn experiments_have_names_of_their_own() {
    let names: std::collections::BTreeSet<&str> = EXPERIMENTS.iter().map(|it| it.name).collect();
    assert_eq!(names.len(), EXPERIMENTS.len());
    assert!(names.iter().all(|name| name.starts_with("catenae-")));
}
