//! Every experiment on a much shorter stretch: it runs to its end, says something, and says the same again.

use super::super::lab::Lab;
use super::super::parameters::REGIONS;
use super::super::setup::{Setup, System, Trouble};
use super::super::system;
use super::EXPERIMENTS;
use super::common::{DEMARCATION, MULTIPAXSYS, all_samya};
use crate::experiment::{Experiment, Options, Silent};
use rhumb_bench::workloads::quota::trace::Demand;
use rhumb_core::Rng;

/// Runs of two points of the trace.
const QUICK: Options = Options { seed: 1, shorter: 360 };

#[test]
fn every_experiment_runs_and_is_decided_by_its_seed() {
    let run_all = || {
        let mut lab = Lab::new(QUICK, None);
        let shown = |experiment: &Experiment<Lab>, lab: &mut Lab| {
            let outcome = (experiment.run)(lab, &mut Silent).expect(experiment.name);
            assert!(outcome.sheets.iter().all(|sheet| !sheet.rows.is_empty()), "{}", experiment.name);
            assert!(
                outcome.sheets.iter().all(|sheet| sheet.rows.iter().all(|row| row.len() == sheet.columns.len())),
                "{}",
                experiment.name
            );
            assert!(outcome.charts.iter().all(|chart| chart.series.iter().all(|series| !series.points.is_empty())), "{}", experiment.name);
            outcome.to_string()
        };
        // Forecasts are trained on the whole series, and tested where they are.
        let short = EXPERIMENTS.iter().filter(|it| it.name != "samya-table4");
        short.map(|experiment| shown(experiment, &mut lab)).collect::<Vec<String>>()
    };
    assert_eq!(run_all(), run_all());
}

#[test]
fn without_constraint_all_that_is_offered_is_committed() {
    let setup = Setup { points: 24, ..Setup::new(System::NoConstraint, 1) };
    let run = system::run(&setup, None, &mut Silent).expect("it runs");
    let asked = |region| Demand::new(region, setup.points, setup.interval, Rng::seeded(0)).count() as u64;
    assert_eq!(run.meter.offered + run.meter.void, (0..REGIONS.len()).map(asked).sum::<u64>());
    assert_eq!(run.meter.committed(), run.meter.offered);
}

#[test]
fn under_a_limit_far_too_low_every_system_keeps_it_and_ends() {
    for system in all_samya().into_iter().chain([DEMARCATION, MULTIPAXSYS, System::NoRedistribution]) {
        for trouble in [Trouble::None, Trouble::Crashes, Trouble::Partition] {
            // A lost message may block Demarcation: it asks for a reliable network.
            if trouble != Trouble::None && system == DEMARCATION {
                continue;
            }
            let setup = Setup { points: 6, limit: 40, trouble, connections: 3, read_percent: 10, ..Setup::new(system, 2) };
            let run = system::run(&setup, None, &mut Silent).unwrap_or_else(|error| panic!("{} {trouble:?}: {error}", system.name()));
            assert!(run.meter.acquired - run.meter.released.min(run.meter.acquired) <= 40, "{} {trouble:?}", system.name());
            assert_eq!(run.meter.unanswered, 0, "{} {trouble:?}", system.name());
            assert!(run.meter.acquired > 0, "{} {trouble:?}", system.name());
        }
    }
}
