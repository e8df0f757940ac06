//! How to drive a workload, whatever it is.

use std::time::Duration;

use super::pace::Pace;
use super::window::Until;
use crate::error::BenchError;

/// How much load is offered, how, and for how long.
#[derive(Clone, Debug)]
pub struct DriverOptions {
    /// Where all randomness comes from.
    pub seed: u64,
    /// Connections at work in every region.
    pub clients_per_region: usize,
    /// Closed or open loop.
    pub pace: Pace,
    /// How long to run before measuring.
    pub warmup: Duration,
    /// What ends the run.
    pub until: Until,
}

impl Default for DriverOptions {
    fn default() -> DriverOptions {
        DriverOptions {
            seed: 1,
            clients_per_region: 8,
            pace: Pace::Closed,
            warmup: Duration::from_secs(5),
            until: Until::Elapsed(Duration::from_secs(30)),
        }
    }
}

impl DriverOptions {
    /// Refuses options that no run can have.
    pub fn check(&self) -> Result<(), BenchError> {
        if self.clients_per_region == 0 {
            return Err(BenchError::Options("a run needs at least one client per region".to_owned()));
        }
        if matches!(self.pace, Pace::Open { rate_per_s } if !(rate_per_s.is_finite() && rate_per_s > 0.0)) {
            return Err(BenchError::Options("the rate of an open loop must be above zero".to_owned()));
        }
        Ok(())
    }
}
