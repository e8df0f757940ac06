//! What several experiments share: systems over all mixes of reads and updates, and where their time goes.

use super::super::cluster::Cluster;
use super::super::lab::Lab;
use super::super::run::{Run, Setup};
use super::super::system::System;
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, percent, ratio};
use rhumb_quad::quorums::Policy;
use std::collections::BTreeMap;

/// What a mix of transactions is called in tables.
pub(super) const MIX: &str = "reads/updates";

/// A mix in tables.
pub(super) fn mix(read_percent: u64) -> String {
    format!("{read_percent}/{}", 100 - read_percent)
}

/// The mix on the axis of charts, which goes from reads to updates as the paper's does.
pub(super) fn updates(read_percent: u64) -> f64 {
    (100 - read_percent) as f64
}

/// Runs by system and by how many of a hundred transactions only read.
pub(super) type Runs = BTreeMap<(System, u64), Run>;

/// Sizeup runs of all `systems` with all `mixes`: a table of mean response times, another of where they come from, and a chart.
pub(super) fn by_mix(
    lab: &Lab,
    title: &str,
    cluster: &Cluster,
    systems: &[System],
    mixes: &[u64],
    outcome: &mut Outcome,
    progress: &mut dyn Progress,
) -> Result<Runs, Failure> {
    let mixes = lab.some(mixes);
    let mut runs = Runs::new();
    for &system in systems {
        for &read_percent in &mixes {
            let setup = lab.sizeup(system, cluster, read_percent);
            let titled = format!("{} ({} of {})", setup.title, runs.len() + 1, systems.len() * mixes.len());
            let run = lab.run(&Setup { title: titled, ..setup }, progress)?;
            runs.insert((system, read_percent), run);
        }
    }
    let columns: Vec<&str> = std::iter::once(MIX).chain(systems.iter().map(|system| system.name())).collect();
    let mut sheet = Sheet::new(format!("{title}: mean response time of a sizeup run, ms"), &columns);
    for &read_percent in &mixes {
        let means = systems.iter().map(|system| one(runs[&(*system, read_percent)].mean_ms()));
        sheet.row(std::iter::once(mix(read_percent)).chain(means));
    }
    outcome.sheets.push(sheet);
    let last = *mixes.last().expect("there are mixes");
    outcome.sheets.push(parts(format!("{title}: where the time of {} goes", mix(last)), systems, &runs, last));
    let mut chart = Chart::new(title, "updates, per cent of the transactions", "mean response time, ms");
    for system in systems {
        let point = |read_percent: &u64| (updates(*read_percent), runs[&(*system, *read_percent)].mean_ms());
        chart.line(system.name(), mixes.iter().map(point).collect());
    }
    outcome.charts.push(chart);
    Ok(runs)
}

/// Where the time of each system goes at one mix.
fn parts(title: String, systems: &[System], runs: &Runs, read_percent: u64) -> Sheet {
    let columns =
        ["system", "tps", "mean ms", "begin ms", "read ms", "commit ms", "retries", "failed", "fastest site ms", "slowest site ms"];
    let mut sheet = Sheet::new(title, &columns);
    for system in systems {
        let run = &runs[&(*system, read_percent)];
        let all = run.meter.all();
        let sites = run.meter.stages[0].len();
        let by_site = (0..sites).map(|site| run.meter.site(site).mean_ms());
        sheet.row([
            system.name().to_owned(),
            one(run.throughput()),
            one(all.mean_ms()),
            one(all.part_ms(|times| times.begin)),
            one(all.part_ms(|times| times.read)),
            one(all.part_ms(|times| times.commit)),
            percent(all.retry_share()),
            all.failed.to_string(),
            one(by_site.clone().fold(f64::INFINITY, f64::min)),
            one(by_site.fold(0.0, f64::max)),
        ]);
    }
    sheet
}

/// By which factor the mean response time of one system is above that of another, for each mix of `runs`.
pub(super) fn factors(runs: &Runs, above: System, below: System) -> Vec<(u64, f64)> {
    let mixes = runs.keys().filter(|(system, _)| *system == below).map(|(_, read_percent)| *read_percent);
    mixes
        .map(|read_percent| (read_percent, ratio(runs[&(above, read_percent)].mean_ms(), runs[&(below, read_percent)].mean_ms())))
        .collect()
}

/// QuAD, both majorities and QuAD inversed, in the order of the paper's legend.
pub(super) fn four(cores: usize) -> [System; 4] {
    [Policy::Quad, Policy::MajorityRandom, Policy::MajorityRoundRobin, Policy::QuadInversed].map(|policy| System::new(policy, cores))
}

/// Finds whether the curves are in the paper's order: QuAD below both majorities, and below itself inversed, at every mix with updates.
pub(super) fn order(title: &str, runs: &Runs, cores: usize, outcome: &mut Outcome) {
    let [quad, others @ ..] = four(cores);
    for other in others {
        let factors = factors(runs, other, quad);
        let least = factors.iter().filter(|(read_percent, _)| *read_percent < 100).map(|(_, factor)| *factor).fold(f64::INFINITY, f64::min);
        let what = format!("{title}: {} over QuAD, least of all mixes with updates", other.name());
        outcome.findings.push(Finding::at_least(what, "above", least, 1.0, "×"));
        for (_, factor) in factors.iter().filter(|(read_percent, _)| *read_percent == 100) {
            outcome.findings.push(Finding::plain(format!("{title}: {} over QuAD, reads alone", other.name()), "", format!("{factor:.2}×")));
        }
    }
}
