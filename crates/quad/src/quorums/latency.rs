//! The latency to expect of a site under an expected load, by linear regression (section III-B): what a score is based on where
//! machines are unequal, since the same share of its capacity slows a weak machine down more.

use super::estimate::{Errors, Estimate};
use std::collections::VecDeque;

/// Periods that the regression looks back; older ones are forgotten.
pub const LATENCY_WINDOW: usize = 64;

/// The load and the latency of one site in its last periods.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyModel {
    /// Load, milliseconds.
    periods: VecDeque<(f64, f64)>,
    /// Of what the line said of each period before it was part of it.
    errors: Errors,
}

/// Latency by load.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    load: f64,
    latency: f64,
    slope: f64,
}

impl Line {
    fn at(self, load: f64) -> f64 {
        (self.latency + self.slope * (load - self.load)).max(0.0)
    }
}

impl LatencyModel {
    /// A period has ended with this load and this mean latency, finite numbers. If two in a row are far off the line, the machine is not
    /// what it was: all before them is forgotten.
    pub fn observe(&mut self, load: f64, latency_ms: f64) {
        match self.line() {
            None => self.errors = Errors::of_first(latency_ms),
            Some(line) => {
                if self.errors.observe(latency_ms - line.at(load)) {
                    self.periods.drain(..self.periods.len() - 1);
                }
            }
        }
        if self.periods.len() == LATENCY_WINDOW {
            self.periods.pop_front();
        }
        self.periods.push_back((load, latency_ms));
    }

    /// The latency to expect under `load`, milliseconds; `None` before the first period has ended.
    pub fn expect_ms(&self, load: Estimate) -> Option<Estimate> {
        let line = self.line()?;
        Some(Estimate { value: line.at(load.value), error: self.errors.mean() + line.slope * load.error })
    }

    /// The line through all periods. Where loads did not differ, or more load came with less latency, which is noise, it is the mean.
    fn line(&self) -> Option<Line> {
        let n = self.periods.len() as f64;
        if self.periods.is_empty() {
            return None;
        }
        let mean = |of: fn(&(f64, f64)) -> f64| self.periods.iter().map(of).sum::<f64>() / n;
        let (mean_load, mean_latency) = (mean(|period| period.0), mean(|period| period.1));
        let spread: f64 = self.periods.iter().map(|(load, _)| (load - mean_load) * (load - mean_load)).sum();
        let together: f64 = self.periods.iter().map(|(load, latency)| (load - mean_load) * (latency - mean_latency)).sum();
        let slope = if spread > 0.0 { (together / spread).max(0.0) } else { 0.0 };
        Some(Line { load: mean_load, latency: mean_latency, slope })
    }
}
