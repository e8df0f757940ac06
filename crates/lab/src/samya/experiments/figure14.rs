//! Figure 14: throughput and latency as sites are added to the five regions, each with a client of its own.

use super::super::lab::{Lab, Limit};
use super::super::parameters::{LIMIT, POINTS_OF_TEN_MINUTES, REGIONS};
use super::common::all_samya;
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one, percent, ratio};

const SITES_PER_REGION: [u16; 4] = [1, 2, 3, 4];
/// Four times the sites have this much more throughput, at least, if growth is linear within a tenth.
const GROWTH_MIN: f64 = 3.6;
const LATENCY_MS_MAX: f64 = 2.0;

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let shared = lab.limits().map(|limit| (limit, false));
    let per_site = Limit { name: format!("M = {} per site", LIMIT / REGIONS.len() as u64), tokens: LIMIT };
    for (limit, grows) in shared.into_iter().chain([(per_site, true)]) {
        let mut sheet = Sheet::new(format!("More sites, {}", limit.name), &["system", "sites", "tps", "of offered", "mean ms"]);
        let mut chart = Chart::new(format!("Throughput by number of sites, {}", limit.name), "sites", "transactions per second");
        for system in all_samya() {
            let mut points = Vec::new();
            let mut latency: f64 = 0.0;
            for sites_per_region in SITES_PER_REGION {
                let mut setup = lab.setup(system, POINTS_OF_TEN_MINUTES);
                setup.sites_per_region = sites_per_region;
                setup.limit = if grows { limit.tokens * u64::from(sites_per_region) } else { limit.tokens };
                let run = lab.run(&setup, progress)?;
                let (meter, sites) = (&run.meter, usize::from(sites_per_region) * REGIONS.len());
                sheet.row([system.name(), sites.to_string(), one(meter.throughput()), percent(meter.success()), one(meter.mean_ms())]);
                points.push((sites as f64, meter.throughput()));
                latency = latency.max(meter.mean_ms());
            }
            let growth = ratio(points[points.len() - 1].1, points[0].1);
            let name = format!("{}, {}", system.name(), limit.name);
            outcome.findings.push(Finding::at_least(format!("{name}: 20 sites over 5"), "about 4×", growth, GROWTH_MIN, "×"));
            outcome.findings.push(Finding::at_most(format!("{name}: mean latency"), "below 2 ms", latency, LATENCY_MS_MAX, " ms"));
            chart.line(system.name(), points);
        }
        outcome.sheets.push(sheet);
        outcome.charts.push(chart);
    }
    Ok(outcome)
}
