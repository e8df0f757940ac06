//! Figures 6 and 8 by what the paper leaves open: how much of a round trip inside a datacenter is work of the processors, and how many workers
//! there are. Updates alone.
//!
//! An idle round trip takes as long in all of them ([`RTT_AT_HOME`]); what a message costs a processor is taken from the network.

use super::super::cluster::Cluster;
use super::super::lab::Lab;
use super::super::meter::Counts;
use super::super::parameters::{LOCAL, RTT_AT_HOME, SHARES_4, SHARES_8, shares_16};
use super::super::run::{Run, Setup};
use super::super::system::System;
use super::common::four;
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, percent, ratio};
use rhumb_core::Span;
use rhumb_sim::LocalDelays;

/// What a message from another site costs its processor, microseconds. All of an idle round trip is two of the last.
const COSTS: [u64; 5] = [0, 125, 250, 500, 1_000];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mut chart = Chart::new(
        "Updates alone in one datacenter: QuAD below MQ-RA",
        "µs of the processor for each message from another site",
        "response time below, per cent",
    );
    for (shares, cores) in [(SHARES_4.to_vec(), 2), (SHARES_8.to_vec(), 4), (shares_16(), 8)] {
        let title = format!("{} sites, κ = {cores}, updates alone", shares.len());
        let [quad, random, in_turn, _] = four(cores);
        let mut sheet = None;
        let mut points = Vec::new();
        for cost in lab.some(&COSTS) {
            let sizeup = |system: System| with_cost(lab.sizeup(system, &Cluster::datacenter(&shares), 0), cost);
            let workers = sizeup(quad).workers;
            let sheet = sheet.get_or_insert_with(|| {
                let of = |workers: &u64| [format!("QuAD, {workers} workers"), "MQ-RA below by".into(), "MQ-RR below by".into()];
                let columns: Vec<String> = std::iter::once("µs a message".to_owned())
                    .chain(workers.iter().flat_map(of))
                    .chain(["all".into(), "all".into()])
                    .collect();
                let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
                Sheet::new(format!("{title}: mean response time of QuAD, ms, and by how much it is below the majorities, %"), &columns)
            });
            let [quad, random, in_turn] = [quad, random, in_turn].map(|system| lab.run(&sizeup(system), progress));
            let (quad, random, in_turn) = (quad?, random?, in_turn?);
            let stage = |run: &Run, number: usize| run.meter.stage(number).mean_ms();
            let stages = (0..workers.len()).flat_map(|number| {
                let ours = stage(&quad, number);
                [ours, below(ours, stage(&random, number)), below(ours, stage(&in_turn, number))]
            });
            let all = [&random, &in_turn].map(|other| below(quad.mean_ms(), other.mean_ms()));
            sheet.row(std::iter::once(cost.to_string()).chain(stages.chain(all).map(one)));
            points.push((cost as f64, all[0]));
        }
        let most = points.iter().map(|(_, below)| *below).fold(f64::NEG_INFINITY, f64::max);
        outcome.findings.push(Finding::at_least(format!("{title}: QuAD below MQ-RA, most of all"), "over 50 %", most, 50.0, " %"));
        chart.line(format!("{} sites", shares.len()), points);
        outcome.sheets.extend(sheet);
    }
    outcome.charts.push(chart);
    distances(lab, &mut outcome, progress)?;
    Ok(outcome)
}

/// Figure 8 by workers: the more there are, the more conflicts.
fn distances(lab: &Lab, outcome: &mut Outcome, progress: &mut dyn Progress) -> Result<(), Failure> {
    let columns =
        ["sites", "workers", "QuAD ms", "QuAD retries", "MQ-RA ms", "MQ-RA retries", "MQ-RR ms", "MQ-RA over QuAD", "MQ-RR over QuAD"];
    let mut sheet = Sheet::new("Distances of 4 : 2 : 1, updates alone: mean response time by workers", &columns);
    for (sites, cores) in [(4, 2), (8, 4), (16, 8)] {
        let cluster = Cluster::classes(sites);
        let [quad, random, in_turn, _] = four(cores);
        let workers = lab.sizeup(quad, &cluster, 0).workers;
        let [quad, random, in_turn] = [quad, random, in_turn].map(|system| lab.run(&lab.sizeup(system, &cluster, 0), progress));
        let (quad, random, in_turn) = (quad?, random?, in_turn?);
        for (number, workers) in workers.iter().enumerate() {
            let [quad, random, in_turn] = [&quad, &random, &in_turn].map(|run| run.meter.stage(number));
            let over = |other: &Counts| format!("{:.2}", ratio(other.mean_ms(), quad.mean_ms()));
            sheet.row([
                sites.to_string(),
                workers.to_string(),
                one(quad.mean_ms()),
                percent(quad.retry_share()),
                one(random.mean_ms()),
                percent(random.retry_share()),
                one(in_turn.mean_ms()),
                over(&random),
                over(&in_turn),
            ]);
        }
    }
    outcome.sheets.push(sheet);
    Ok(())
}

/// `setup` where a message from another site costs so many microseconds of the processor, and the network as much less.
fn with_cost(setup: Setup, micros: u64) -> Setup {
    let remote = Span::from_micros(micros);
    let cluster = setup.cluster.with_home(RTT_AT_HOME - remote * 2);
    Setup { title: format!("{}, {micros} µs a message", setup.title), cluster, local: LocalDelays { remote, ..LOCAL }, ..setup }
}

/// By how much `ours` is below `theirs`, per cent.
fn below(ours: f64, theirs: f64) -> f64 {
    if theirs > 0.0 { (1.0 - ours / theirs) * 100.0 } else { 0.0 }
}
