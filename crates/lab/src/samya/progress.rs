//! How the laboratory tells whoever watches how far it is. The library draws nothing.

use rhumb_core::Span;

/// What the watcher is told.
pub trait Progress {
    /// A run begins: what it measures, and how long it is in virtual time.
    fn begin(&mut self, run: &str, length: Span);
    /// So much of it has passed; about once a second of virtual time.
    fn passed(&mut self, passed: Span);
}

/// A watcher that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _: &str, _: Span) {}
    fn passed(&mut self, _: Span) {}
}
