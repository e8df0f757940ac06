//! One site's queue to its disk: what was written, what a sync covers, and what waits for it.
//!
//! ```text
//!   write  → visible at once               begin → a sync of all that is written by now, if something waits and none is under way
//!   finish → what it covered is durable    release → what waited for that leaves, in the order written
//!   fall_due → what nothing waits for is synced as well
//! ```
//!
//! One sync at a time. A sync promises only what was written before it began; a write made while it runs may reach the
//! disk with it, but nothing that depends on that write leaves before the next sync has ended. An empty batch costs no
//! sync of its own: it leaves with the write before it, or at once if that is durable.

use rhumb_core::actor::{Actor, Gated, Token};
use rhumb_core::{Span, Time};
use std::collections::VecDeque;

/// One site's queue to its disk, over one incarnation.
pub(crate) struct Disk<A: Actor> {
    waiting: VecDeque<(u64, Waiting<A>)>,
    /// Writes are numbered from 1 on; these are the last one written, needed to be durable, covered by the sync under way, and durable.
    written: u64,
    needed: u64,
    covered: Option<u64>,
    durable: u64,
}

/// What waits for a write to be durable.
pub(crate) struct Waiting<A: Actor> {
    pub(crate) token: Option<Token>,
    pub(crate) then: Vec<Gated<A>>,
}

impl<A: Actor> Disk<A> {
    pub(crate) fn new() -> Disk<A> {
        Disk { waiting: VecDeque::new(), written: 0, needed: 0, covered: None, durable: 0 }
    }

    /// Takes note of a write, or of an empty batch, and of what waits for it.
    pub(crate) fn write(&mut self, is_empty: bool, waiting: Waiting<A>) {
        self.written += u64::from(!is_empty);
        if waiting.token.is_some() || !waiting.then.is_empty() {
            self.needed = self.written;
            self.waiting.push_back((self.written, waiting));
        }
    }

    /// True if something is written that no sync covers, and none is needed for yet.
    pub(crate) fn has_unneeded(&self) -> bool {
        self.written > self.needed.max(self.covered.unwrap_or(self.durable))
    }

    /// All that is written by now needs a sync.
    pub(crate) fn fall_due(&mut self) {
        self.needed = self.written;
    }

    /// Begins a sync if there is need of one and none is under way; true if it did.
    pub(crate) fn begin(&mut self) -> bool {
        let begins = self.covered.is_none() && self.needed > self.durable;
        if begins {
            self.covered = Some(self.written);
        }
        begins
    }

    /// The sync under way has ended.
    pub(crate) fn finish(&mut self) {
        self.durable = self.covered.take().expect("a sync ends only after it began");
    }

    /// Takes the first of what waits no longer.
    pub(crate) fn release(&mut self) -> Option<Waiting<A>> {
        let (needs, _) = self.waiting.front()?;
        if *needs > self.durable { None } else { self.waiting.pop_front().map(|(_, waiting)| waiting) }
    }
}

/// The longest that a slow disk takes for a sync.
const SLOWEST: Span = Span::from_secs(1);

/// How long a sync takes, and for how long it takes longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncSpan {
    usual: Span,
    slow: Option<(u64, Time)>,
}

impl SyncSpan {
    pub(crate) fn new(usual: Span) -> SyncSpan {
        SyncSpan { usual, slow: None }
    }

    /// Makes syncs that begin before `until` take `factor` times as long.
    pub(crate) fn slow_down(&mut self, factor: u64, until: Time) {
        self.slow = Some((factor, until));
    }

    /// Ends the slowness.
    pub(crate) fn heal(&mut self) {
        self.slow = None;
    }

    /// How long a sync takes that begins at `now`.
    pub(crate) fn at(&self, now: Time) -> Span {
        match self.slow {
            Some((factor, until)) if now < until => (self.usual * factor).min(SLOWEST).max(self.usual),
            _ => self.usual,
        }
    }
}
