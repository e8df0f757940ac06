//! Figure 12: what commits take under three ways of placing the leaders of partitions, as more transactions span partitions.
//! The paper names neither its ten datacenters nor who accesses what, so many draws are gone through.

use super::super::lab::Lab;
use super::super::placed::{self, commits};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, percent};
use rhumb_core::{Rng, wan};
use rhumb_plan::{Heuristic, LeaderProblem, Matrix, Partition, Protocol, TwoPhase, exhaustive, leader_plans};

/// Where datacenters are drawn from.
const PROFILE: &str = "aws_32";
const DATACENTERS: usize = 10;
const FAULTS: usize = 2;
const CLIENTS_MAX: u64 = 10;
/// Of a hundred accesses to a region's own partition, so many come from there, and the others from everywhere alike.
const OWN_PERCENT: [u64; 2] = [90, 100];
/// Draws.
const DRAWS: usize = 100;
/// Shares of transactions that span partitions, in thousandths: the highest, and the step up to it.
const MILLI_MAX: u32 = 500;
const MILLI_STEP: u32 = 5;
/// A table shows one share in so many.
const SHOWN_ONE_IN: usize = 10;

/// Means by share, in milliseconds, in the order of the heuristics.
type Curves = [Vec<f64>; 3];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let columns =
        ["accesses from home", "draws of that order", "9 % in the paper: lowest", "median", "highest", "25 %: lowest", "median", "highest"];
    let title = "Spanning transactions (%) from which on the nearest replica, then one place is best";
    let mut sheet = Sheet::new(title, &columns);
    for own_percent in OWN_PERCENT {
        progress.begin(&format!("draws of datacenters, {own_percent} % from home"));
        let mut rng = Rng::seeded(lab.seed());
        let mut crossings: Vec<[u32; 2]> = Vec::new();
        let mut longest: Option<(u32, Curves)> = None;
        for draw in 0..DRAWS {
            let curves = curves(own_percent, &mut rng);
            if let Some([from, to]) = in_order(&curves) {
                crossings.push([from, to]);
                if longest.as_ref().is_none_or(|(length, _)| to - from > *length) {
                    longest = Some((to - from, curves));
                }
            }
            progress.passed(draw as u64 + 1, DRAWS as u64);
        }
        if let Some((_, curves)) = longest {
            show(own_percent, &curves, &mut outcome);
        }
        let spread = |which: usize| {
            let mut at: Vec<u32> = crossings.iter().map(|crossing| crossing[which]).collect();
            at.sort_unstable();
            let cell = |milli: Option<&u32>| milli.map_or(String::new(), |milli| format!("{:.1}", f64::from(*milli) / 10.0));
            [cell(at.first()), cell(at.get(at.len() / 2)), cell(at.last())]
        };
        let share = percent(crossings.len() as f64 / DRAWS as f64);
        sheet.row([format!("{own_percent} %"), share].into_iter().chain(spread(0)).chain(spread(1)));
        let medians = [spread(0)[1].clone(), spread(1)[1].clone()].join(" % and ");
        let what = format!("where the three are best one after another, at (median, {own_percent} % from home)");
        outcome.findings.push(Finding::plain(what, "9 % and 25 %, one case", format!("{medians} %")));
    }
    outcome.sheets.insert(0, sheet);
    outcome.note(
        "Each of ten regions of a public cloud has one to ten clients and a partition of its own. The order: each leader where its \
         partition is accessed most, each at the nearest replica, all in one place. Planned, not run: the engine has no leaders.",
    );
    Ok(outcome)
}

/// The curves of one draw as a table and a chart.
fn show(own_percent: u64, curves: &Curves, outcome: &mut Outcome) {
    let title = format!("Commit latency by how leaders are placed, {own_percent} % from home");
    let mut chart = Chart::new(&title, "transactions that span partitions (%)", "mean commit latency (ms)").with_log_y();
    let names = ["all in one place", "where accessed", "nearest replica"];
    let columns = ["% spanning", names[0], names[1], names[2]];
    let mut sheet = Sheet::new(format!("{title}, the draw in which the nearest replica is best the longest (ms)"), &columns);
    let percent_at = |step: usize| f64::from(step as u32 * MILLI_STEP) / 10.0;
    for step in (0..curves[0].len()).step_by(SHOWN_ONE_IN) {
        let cells = curves.iter().map(|curve| format!("{:.1}", curve[step]));
        sheet.row(std::iter::once(format!("{:.0}", percent_at(step))).chain(cells));
    }
    for (name, curve) in names.into_iter().zip(curves) {
        chart.line(name, curve.iter().enumerate().map(|(step, ms)| (percent_at(step), *ms)).collect());
    }
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
}

/// The three means for one draw of datacenters and clients, at every step of the share.
fn curves(own_percent: u64, rng: &mut Rng) -> Curves {
    let all = wan::profile(PROFILE).expect("it ships").matrix();
    let mut names: Vec<&str> = all.names().iter().map(String::as_str).collect();
    rng.shuffle(&mut names);
    let rtt = all.restrict(&names[..DATACENTERS]).expect("they are its own");
    let clients: Vec<(usize, u64)> = (0..DATACENTERS).map(|region| (region, rng.between(1, CLIENTS_MAX))).collect();
    let replicas = exhaustive(&placed::problem(&rtt, commits(Protocol::TwoRounds, true), FAULTS, &clients)).replicas;
    let others = DATACENTERS as u64 - 1;
    let accesses = |&(own, clients): &(usize, u64)| {
        let from = |region| (region, clients * if region == own { own_percent * others } else { 100 - own_percent });
        Partition { accesses: (0..DATACENTERS).map(from).collect() }
    };
    let partitions: Vec<Partition> = clients.iter().map(accesses).collect();
    let matrix = Matrix::try_from(&rtt).expect("ten regions");
    let mut curves: Curves = Default::default();
    for multi_partition_milli in (0..=MILLI_MAX).step_by(MILLI_STEP as usize) {
        let problem = LeaderProblem {
            matrix: &matrix,
            replicas: &replicas,
            partitions: &partitions,
            multi_partition_milli,
            two_phase: TwoPhase::OwnLeader,
        };
        for (curve, plan) in curves.iter_mut().zip(leader_plans(&problem)) {
            curve.push(plan.mean_ns as f64 / 1e6);
        }
    }
    curves
}

/// The thousandths from which the third heuristic is better than the second, and the first better than the third, if the
/// second, the third and the first are the best one after another.
fn in_order(curves: &Curves) -> Option<[u32; 2]> {
    const ORDER: [Heuristic; 3] = [Heuristic::WhereAccessed, Heuristic::NearestReplica, Heuristic::OnePlace];
    const HEURISTICS: [Heuristic; 3] = [Heuristic::OnePlace, Heuristic::WhereAccessed, Heuristic::NearestReplica];
    let best_at = |step: usize| {
        let best = (0..3).min_by(|&a, &b| curves[a][step].total_cmp(&curves[b][step])).expect("three of them");
        HEURISTICS[best]
    };
    let mut best = vec![(0, best_at(0))];
    for step in 1..curves[0].len() {
        if best.last().is_some_and(|(_, last)| *last != best_at(step)) {
            best.push((step as u32 * MILLI_STEP, best_at(step)));
        }
    }
    match best.as_slice() {
        [(_, first), (second_at, second), (third_at, third)] if [*first, *second, *third] == ORDER => Some([*second_at, *third_at]),
        _ => None,
    }
}
