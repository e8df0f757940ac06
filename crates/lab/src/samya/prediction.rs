//! Forecasts for the runs: the plainest model there is, and one that knows the trace.
//!
//! The demand of an epoch is the most that acquisitions are ahead of releases since it began, as
//! [`rhumb_quota::demand`] has it.

use super::setup::Setup;
use rhumb_bench::workloads::quota::trace::{Demand, Want};
use rhumb_core::Rng;
use rhumb_quota::demand::Predictor;
use std::sync::Arc;

/// Makes the model of the sites of a region, by its place in [`REGIONS`](super::parameters::REGIONS).
pub type Models = Arc<dyn Fn(usize) -> Box<dyn Predictor> + Send + Sync>;

/// The next epoch is like the last: a random walk.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastEpoch(Option<f64>);

impl Predictor for LastEpoch {
    fn observe(&mut self, demand: f64) {
        self.0 = Some(demand);
    }

    fn predict(&self) -> Option<f64> {
        self.0
    }
}

/// Knows what the trace is going to ask for.
#[derive(Clone, Debug)]
pub struct Foresight {
    /// The demand of each epoch.
    demands: Arc<[f64]>,
    /// Epochs that are over.
    over: usize,
}

impl Foresight {
    /// Knows the demand that the client of a site replays whose draws come from `rng`.
    pub fn new(setup: &Setup, region: usize, rng: Rng) -> Foresight {
        let mut demands = vec![0.0_f64; setup.points];
        let (mut epoch, mut net) = (0, 0.0);
        for (at, want) in Demand::new(region, setup.points, setup.interval, rng) {
            let now = (at.as_micros() / setup.interval.as_micros()) as usize;
            if now > epoch {
                (epoch, net) = (now, 0.0);
            }
            net += if want == Want::Acquire { 1.0 } else { -1.0 };
            demands[epoch] = demands[epoch].max(net);
        }
        Foresight { demands: demands.into(), over: 0 }
    }
}

impl Predictor for Foresight {
    fn observe(&mut self, _: f64) {
        self.over += 1;
    }

    fn predict(&self) -> Option<f64> {
        // The epoch under way is number `over`; asked is the one after it.
        self.demands.get(self.over + 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::setup::{Setup, System};
    use super::*;

    #[test]
    fn foresight_tells_the_demand_of_the_next_epoch() {
        let setup = Setup { points: 4, ..Setup::new(System::NoConstraint, 1) };
        let mut foresight = Foresight::new(&setup, 0, Rng::seeded(9));
        let mut counted = [(0.0, 0.0_f64); 4];
        for (at, want) in Demand::new(0, 4, setup.interval, Rng::seeded(9)) {
            let (net, peak) = &mut counted[(at.as_micros() / 5_000_000) as usize];
            *net += if want == Want::Acquire { 1.0 } else { -1.0 };
            *peak = peak.max(*net);
        }
        for (_, peak) in &counted[1..] {
            assert_eq!(foresight.predict(), Some(*peak));
            foresight.observe(0.0);
        }
        assert_eq!(foresight.predict(), None);
    }
}
