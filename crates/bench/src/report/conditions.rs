//! Under what conditions a run was measured.

use std::fmt;

use serde::Serialize;

use crate::driver::DriverOptions;

/// The load of a run, and how long it was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Conditions {
    /// How load was offered.
    pub load: String,
    /// The seed that the run's randomness came from.
    pub seed: u64,
    /// Seconds before the measured window.
    pub warmup_s: f64,
    /// Seconds of the measured window.
    pub measured_s: f64,
}

impl Conditions {
    /// Those of a run with `options`, whose load is described as `load`.
    pub(crate) fn new(load: String, options: &DriverOptions, measured_s: f64) -> Conditions {
        Conditions { load, seed: options.seed, warmup_s: options.warmup.as_secs_f64(), measured_s }
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conditions { load, seed, warmup_s, measured_s } = self;
        write!(f, "{load} · {measured_s:.1} s measured after {warmup_s:.1} s · seed {seed}")
    }
}
