//! How a benchmark tells whoever watches how far it is. The library draws nothing.

/// What the watcher is told, and how it asks to stop.
pub trait Progress: Send + Sync {
    /// A new stage begins, with `total` units of work in it.
    fn stage(&self, name: &str, total: u64, unit: Unit);
    /// `done` units of the stage are done.
    fn position(&self, done: u64);
    /// How the run goes; about four times a second.
    fn pulse(&self, pulse: &Pulse);
    /// True once the run should end early and report what it has.
    fn stop_requested(&self) -> bool {
        false
    }
}

/// What the work of a stage is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Rows loaded.
    Rows,
    /// Milliseconds passed.
    Milliseconds,
    /// Transactions begun.
    Transactions,
    /// Consistency conditions evaluated.
    Conditions,
}

/// The state of a run at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pulse {
    /// Transactions committed since the measured window began.
    pub committed: u64,
    /// Committed transactions per second since the measured window began.
    pub per_second: f64,
    /// Median latency of the transactions, in milliseconds.
    pub p50_ms: f64,
    /// Attempts that were aborted.
    pub aborted: u64,
    /// Transactions whose outcome is unknown.
    pub unknown: u64,
}

/// A watcher that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn stage(&self, _: &str, _: u64, _: Unit) {}
    fn position(&self, _: u64) {}
    fn pulse(&self, _: &Pulse) {}
}
