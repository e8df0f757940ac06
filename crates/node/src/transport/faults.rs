//! Faults of a link that are switched on and off at run time: cut, one way or both, and slow.

use rhumb_core::Span;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Which way, seen from this site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// What this site sends.
    Out,
    /// What this site is sent.
    In,
    /// Both.
    Both,
}

/// What to do to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Drop every message.
    Cut(Direction),
    /// Delay every message that this site sends by so much more.
    Slow(Span),
    /// Undo all that.
    Heal,
}

/// The faults of one link.
#[derive(Default)]
pub struct Faults {
    cut_out: AtomicBool,
    cut_in: AtomicBool,
    slow_micros: AtomicU64,
}

impl Faults {
    /// Sets `fault`, on top of those there are.
    pub fn set(&self, fault: Fault) {
        match fault {
            Fault::Cut(direction) => {
                self.cut_out.fetch_or(direction != Direction::In, Ordering::Relaxed);
                self.cut_in.fetch_or(direction != Direction::Out, Ordering::Relaxed);
            }
            Fault::Slow(by) => self.slow_micros.store(by.as_micros(), Ordering::Relaxed),
            Fault::Heal => {
                self.cut_out.store(false, Ordering::Relaxed);
                self.cut_in.store(false, Ordering::Relaxed);
                self.slow_micros.store(0, Ordering::Relaxed);
            }
        }
    }

    /// True if what this site sends is to be dropped.
    pub fn cuts_out(&self) -> bool {
        self.cut_out.load(Ordering::Relaxed)
    }

    /// True if what this site is sent is to be dropped.
    pub fn cuts_in(&self) -> bool {
        self.cut_in.load(Ordering::Relaxed)
    }

    /// The extra delay of what this site sends.
    pub fn slow(&self) -> Duration {
        Duration::from_micros(self.slow_micros.load(Ordering::Relaxed))
    }
}
