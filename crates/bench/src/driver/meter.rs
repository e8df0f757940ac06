//! What the driver asks of a meter.

use std::time::Duration;

use crate::progress::Pulse;

/// Counts and latencies of operations of one kind, in one region.
pub trait Meter: Default + Send + 'static {
    /// Adds what `other` counted.
    fn add(&mut self, other: &Self);

    /// What the watcher is told after measuring for `elapsed`.
    fn pulse(&self, elapsed: Duration) -> Pulse;
}
