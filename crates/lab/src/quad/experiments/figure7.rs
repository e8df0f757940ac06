//! Figure 7: response time by the number of cores, where two of eight sites are strong.

use super::super::cluster::Cluster;
use super::super::lab::Lab;
use super::super::parameters::{MIXES, SHARES_TWO_STRONG};
use super::super::run::Setup;
use super::super::system::System;
use super::common::mix;
use super::figure4::yes;
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, ratio};
use rhumb_quad::quorums::Policy;

/// Numbers of cores.
const CORES: [usize; 4] = [2, 4, 6, 8];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let cluster = Cluster::datacenter(&SHARES_TWO_STRONG);
    let (mixes, cores) = (lab.some(&MIXES), lab.some(&CORES));
    let columns: Vec<String> = std::iter::once("κ".to_owned()).chain(mixes.iter().map(|read_percent| mix(*read_percent))).collect();
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut sheet = Sheet::new("QuAD, 8 sites of which two are strong: mean response time of a sizeup run, ms", &names);
    let mut series: Vec<Vec<(f64, f64)>> = vec![Vec::new(); mixes.len()];
    for count in cores {
        let mut cells = vec![count.to_string()];
        for (points, &read_percent) in series.iter_mut().zip(&mixes) {
            let setup = lab.sizeup(System::new(Policy::Quad, count), &cluster, read_percent);
            let setup = Setup { title: format!("κ = {count}, {read_percent} % reads"), ..setup };
            let mean = lab.run(&setup, progress)?.mean_ms();
            points.push((count as f64, mean));
            cells.push(one(mean));
        }
        sheet.row(cells);
    }
    let mut chart = Chart::new("QuAD, 8 sites of which two are strong", "κ, the number of cores", "mean response time, ms");
    for (points, &read_percent) in series.into_iter().zip(&mixes) {
        let rises = points.windows(2).all(|pair| pair[1].1 > pair[0].1);
        let factor = ratio(points[points.len() - 1].1, points[0].1);
        let what = format!("response time, {}, with the most cores over the fewest", mix(read_percent));
        outcome.findings.push(Finding::at_least(what, "above", factor, 1.0, "×"));
        let what = format!("… rises with every step, {}", mix(read_percent));
        outcome.findings.push(Finding { met: Some(rises), ..Finding::plain(what, "yes", yes(rises)) });
        chart.line(mix(read_percent), points);
    }
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
    Ok(outcome)
}
