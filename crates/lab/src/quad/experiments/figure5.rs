//! Figure 5: what an update over a majority quorum costs when one of its sites is farther away, or has more to do.
//!
//! One worker at the first of four sites; its write quorum is always the first three, its read quorum the first two, of which the
//! second changes.

use super::super::cluster::Cluster;
use super::super::lab::Lab;
use super::super::run::Setup;
use super::figure4::{PARTS, parts};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one};
use rhumb_core::{SiteId, Span};
use rhumb_quad::quorums::Quorums;
use std::collections::BTreeMap;

/// By so much the site is farther away, or later with an answer, milliseconds.
const ADDED_MS: [u64; 5] = [0, 10, 20, 40, 80];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let added = lab.some(&ADDED_MS);
    let none = [1.0, 0.0, 0.0, 0.0];
    let far = |millis| Cluster::delayed(&[0, millis, 0, 0].map(Span::from_millis), &none);
    // A request keeps a site busy for a millisecond, so each client that always has one waiting delays what comes by one.
    let busy = |millis| vec![0, millis, 0, 0];
    series("RTT of one site", "added round trip, ms", &added, &|millis| (far(millis), Vec::new()), lab, &mut outcome, progress)?;
    series("load of one site", "added latency, ms", &added, &|millis| (far(0), busy(millis)), lab, &mut outcome, progress)?;
    Ok(outcome)
}

/// A table, a chart and findings for one property of the site.
fn series(
    what: &str,
    x_label: &str,
    added: &[u64],
    world: &dyn Fn(u64) -> (Cluster, Vec<u64>),
    lab: &Lab,
    outcome: &mut Outcome,
    progress: &mut dyn Progress,
) -> Result<(), Failure> {
    let mut sheet =
        Sheet::new(format!("MQ, updates alone, by the {what}: parts of a transaction, ms"), &[&[x_label][..], &PARTS, &["all"]].concat());
    let mut points: [Vec<(f64, f64)>; 3] = Default::default();
    for &millis in added {
        let (cluster, background) = world(millis);
        let title = format!("{what}, {millis} ms more");
        let setup = Setup { background, ..lab.speedup(title, &cluster, quorum(), 0, 1) };
        let counts = lab.run(&setup, progress)?.meter.all();
        let parts = parts(&counts);
        for (points, part) in points.iter_mut().zip(parts) {
            points.push((millis as f64, part));
        }
        sheet.row(std::iter::once(millis.to_string()).chain(parts.map(one)).chain([one(counts.mean_ms())]));
    }
    let (first, last) = (0, added.len() - 1);
    let slope = |part: usize| (points[part][last].1 - points[part][first].1) / (points[part][last].0 - points[part][first].0);
    outcome.findings.push(Finding::at_least(format!("ms of 2PC per ms of the {what}"), "grows", slope(2), 1.5, ""));
    outcome.findings.push(Finding::plain(format!("ms of 2PL per ms of the {what}"), "", format!("{:.2}", slope(1))));
    let mut chart = Chart::new(format!("MQ, updates alone, by the {what}"), x_label, "ms of a transaction");
    for (name, points) in PARTS.iter().zip(points) {
        chart.line(*name, points);
    }
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
    Ok(())
}

/// A majority of four sites that never changes: the first three for writes, the first two for reads.
fn quorum() -> Quorums {
    let three = [0, 1, 2].map(|region| SiteId::new(region, 0)).to_vec();
    let preference = (0..4).map(|region| (SiteId::new(region, 0), three.clone())).collect::<BTreeMap<_, _>>();
    Quorums::Cores { cores: three, preference }
}
