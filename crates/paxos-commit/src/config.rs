//! The spans and bounds of the protocol. None of them matters for safety.

use rhumb_core::Span;

/// How conflicts are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Concurrency {
    /// Two-phase locking with wound-wait.
    Locking,
    /// Validation at the commit, without waiting.
    Optimistic,
}

impl Concurrency {
    /// How often a transaction is tried before its client is told that others were in the way. Catenae's authors let their
    /// optimistic baseline retry once; a transaction that locks is only tried again if it was wounded while it prepared.
    pub fn attempts_max(self) -> u64 {
        match self {
            Concurrency::Locking => 8,
            Concurrency::Optimistic => 2,
        }
    }
}

/// Settings of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How conflicts are kept apart.
    pub concurrency: Concurrency,
    /// A transaction that has not been executed at a majority for so long is given up: the lock timeout.
    pub patience: Span,
    /// Whoever does not answer for so long is asked again.
    pub resend: Span,
    /// A client is told after so long that the outcome of its transaction is unknown.
    pub deadline: Span,
    /// A region that has voted yes and has heard no outcome for so long asks the others for their votes.
    pub doubt: Span,
}

impl Config {
    /// The defaults with this concurrency control.
    pub fn new(concurrency: Concurrency) -> Config {
        Config {
            concurrency,
            patience: Span::from_secs(2),
            resend: Span::from_secs(1),
            deadline: Span::from_secs(6),
            doubt: Span::from_millis(1_500),
        }
    }
}

/// How often a site looks what is late.
pub const TICK: Span = Span::from_millis(100);
/// Transactions that one coordinator has under way.
pub const RUNNING_MAX: usize = 16_384;
/// Rows of one range, deletions counted, that a transaction may read.
pub const RANGE_ROWS_MAX: usize = 4_096;
/// Identifiers are issued up to so far beyond what is known to be on disk.
pub const CLOCK_LEAD: Span = Span::from_secs(10);
/// Records loaded at once in recovery.
pub const RECOVERY_PAGE: usize = 4_096;
