//! How the laboratory tells whoever watches how far it is. The library draws nothing.

/// What the watcher is told.
pub trait Progress {
    /// A run begins: what it measures.
    fn begin(&mut self, run: &str);
    /// So much of `total` is done, in whatever unit the run counts: virtual time, passes, instances.
    fn passed(&mut self, done: u64, total: u64);
}

/// A watcher that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _: &str) {}
    fn passed(&mut self, _: u64, _: u64) {}
}
