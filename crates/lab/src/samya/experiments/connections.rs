//! What hangs on the number of requests that a client has outstanding, which the paper does not say.

use super::super::baselines::multipaxsys::Settings;
use super::super::lab::Lab;
use super::super::parameters::POINTS_OF_HALF_AN_HOUR;
use super::super::setup::{LeaderRegion, System};
use super::common::{DEMARCATION, MULTIPAXSYS, all_samya};
use crate::experiment::{Failure, Outcome, Progress, Sheet, one, percent};

const CONNECTIONS: [usize; 5] = [1, 2, 4, 8, 16];

/// A database that batches, as the paper's does not: many transactions on the hot record share a replication round.
const BATCHED: System = System::MultiPaxSys(Settings { depth: 4, batch: 64 }, LeaderRegion::UsCentral);

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for limit in lab.limits() {
        let columns = ["system", "outstanding", "tps", "of offered", "mean ms", "p90 ms", "p95 ms", "p99 ms"];
        let mut sheet = Sheet::new(format!("Requests outstanding per client, {}", limit.name), &columns);
        for system in all_samya().into_iter().chain([DEMARCATION, MULTIPAXSYS, BATCHED]) {
            for connections in CONNECTIONS {
                let mut setup = lab.setup(system, POINTS_OF_HALF_AN_HOUR);
                (setup.limit, setup.connections) = (limit.tokens, connections);
                let run = lab.run(&setup, progress)?;
                let meter = &run.meter;
                let percentiles = [0.90, 0.95, 0.99].map(|quantile| one(meter.percentile_ms(quantile)));
                let figures = [one(meter.throughput()), percent(meter.success()), one(meter.mean_ms())];
                sheet.row([system.name(), connections.to_string()].into_iter().chain(figures).chain(percentiles));
            }
        }
        outcome.sheets.push(sheet);
    }
    outcome.note("The paper's MultiPaxSys has its 90th, 95th and 99th percentile at 126.8, 172.7 and 276.3 ms.");
    Ok(outcome)
}
