//! The latency to expect of a site under an expected load, by linear regression (section III-B): what a score is based on where
//! machines are unequal, since the same share of its capacity slows a weak machine down more.

use std::collections::VecDeque;

/// Periods that the regression looks back; older ones are forgotten.
pub const LATENCY_WINDOW: usize = 64;

/// The load and the latency of one site in its last periods.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyModel {
    /// Load, milliseconds.
    periods: VecDeque<(f64, f64)>,
}

impl LatencyModel {
    /// A period has ended with this load and this mean latency, finite numbers.
    pub fn observe(&mut self, load: f64, latency_ms: f64) {
        if self.periods.len() == LATENCY_WINDOW {
            self.periods.pop_front();
        }
        self.periods.push_back((load, latency_ms));
    }

    /// The latency to expect under `load`, milliseconds; `None` before the first period has ended. Where loads did not differ, or
    /// more load came with less latency, which is noise, it is the mean.
    pub fn expect_ms(&self, load: f64) -> Option<f64> {
        let n = self.periods.len() as f64;
        if self.periods.is_empty() {
            return None;
        }
        let mean = |of: fn(&(f64, f64)) -> f64| self.periods.iter().map(of).sum::<f64>() / n;
        let (mean_load, mean_latency) = (mean(|period| period.0), mean(|period| period.1));
        let spread: f64 = self.periods.iter().map(|(load, _)| (load - mean_load) * (load - mean_load)).sum();
        let together: f64 = self.periods.iter().map(|(load, latency)| (load - mean_load) * (latency - mean_latency)).sum();
        let slope = if spread > 0.0 { (together / spread).max(0.0) } else { 0.0 };
        Some((mean_latency + slope * (load - mean_load)).max(0.0))
    }
}
