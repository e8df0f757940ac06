//! What a client's next transaction does: a few operations on few keys, so that conflicts are the rule.

use rhumb_commit::transaction::CommitOptions;
use rhumb_core::{Key, KeyRange, Rng, Span};

/// Lists, to which transactions append.
const LISTS: u64 = 4;
/// Registers, which transactions write, delete and scan.
const REGISTERS: u64 = 8;
/// The longest wait between two transactions.
const THINK_MAX: Span = Span::from_millis(300);

/// How the next transaction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Locking majority reads.
    Locking,
    /// Optimistic reads of the nearest replica.
    Optimistic,
    /// Optimistic reads of the nearest active replica.
    Active,
    /// Read-only at one timestamp.
    Snapshot,
    /// Read-only in the past.
    Stale,
}

/// Which ways to read and to commit are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// All that matter where every region holds a copy and votes.
    Everywhere,
    /// All that matter where not every region is active.
    Placed,
    /// Under locks alone.
    Locking,
}

/// One operation to do.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Read a row.
    Read(Key),
    /// Read a list and append to it.
    Append(Key),
    /// Write a register without reading it.
    Write(Key),
    /// Delete a register without reading it.
    Delete(Key),
    /// Scan registers.
    Scan { range: KeyRange, limit: u32, reverse: bool },
}

/// Draws transactions.
#[derive(Debug)]
pub(crate) struct Workload {
    rng: Rng,
    reads: Reads,
}

impl Workload {
    pub(crate) fn new(rng: Rng, reads: Reads) -> Workload {
        Workload { rng, reads }
    }

    /// How the next transaction commits.
    pub(crate) fn options(&mut self) -> CommitOptions {
        match self.reads {
            Reads::Placed => CommitOptions { two_rounds: self.rng.chance(0.3), handoff: self.rng.chance(0.7) },
            Reads::Everywhere | Reads::Locking => CommitOptions::default(),
        }
    }

    pub(crate) fn think(&mut self) -> Span {
        Span::from_micros(self.rng.below(THINK_MAX.as_micros()))
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    pub(crate) fn style(&mut self) -> Style {
        match self.rng.below(10) {
            _ if self.reads == Reads::Locking => Style::Locking,
            0..4 => Style::Locking,
            4..7 if self.reads == Reads::Placed && self.rng.chance(0.3) => Style::Active,
            4..7 => Style::Optimistic,
            7..9 => Style::Snapshot,
            _ => Style::Stale,
        }
    }

    /// The steps of a transaction of this style.
    pub(crate) fn steps(&mut self, style: Style) -> Vec<Step> {
        let read_only = matches!(style, Style::Snapshot | Style::Stale);
        (0..self.rng.between(1, 4)).map(|_| self.step(read_only)).collect()
    }

    fn step(&mut self, read_only: bool) -> Step {
        match self.rng.below(if read_only { 5 } else { 11 }) {
            0 => Step::Read(self.list()),
            1 | 2 => Step::Read(self.register()),
            3 | 4 => self.scan(),
            5..8 => Step::Append(self.list()),
            8 | 9 => Step::Write(self.register()),
            _ => Step::Delete(self.register()),
        }
    }

    fn scan(&mut self) -> Step {
        let (a, b) = (self.rng.below(REGISTERS + 1), self.rng.below(REGISTERS + 1));
        let range = KeyRange::new(register(a.min(b)), register(a.max(b) + 1));
        let limit = if self.rng.chance(0.3) { self.rng.between(1, 3) as u32 } else { 100 };
        Step::Scan { range, limit, reverse: self.rng.chance(0.3) }
    }

    fn list(&mut self) -> Key {
        list(self.rng.below(LISTS))
    }

    fn register(&mut self) -> Key {
        register(self.rng.below(REGISTERS))
    }
}

/// Every key that the workload uses.
pub(crate) fn all_keys() -> Vec<Key> {
    (0..LISTS).map(list).chain((0..REGISTERS).map(register)).collect()
}

fn list(n: u64) -> Key {
    Key::from(format!("l{n}").as_str())
}

fn register(n: u64) -> Key {
    Key::from(format!("r{n}").as_str())
}
