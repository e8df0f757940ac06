//! What a client's next transaction does: a few operations on few keys, so that conflicts are the rule.

use rhumb_commit::transaction::CommitOptions;
use rhumb_core::{Key, KeyRange, Rng, Span};

/// Lists, to which transactions append.
const LISTS: u64 = 4;
/// Registers, which transactions write, delete and scan.
const REGISTERS: u64 = 8;
/// In a bulky run one transaction of so many is large: it has many keys, or a large row.
const BULKY_ONE_OF: u64 = 24;
/// Registers of which such a transaction reads and writes a part, mostly a small one.
const BULK_KEYS: u64 = 5_000;
/// Rows that are large now and then.
const LARGE_ROWS: u64 = 2;
/// Bytes that such a row has at the most, mostly far fewer: about as much as a transaction may write.
const LARGE_BYTES_MAX: u64 = 11 << 20;
/// Keys that the final reader reads at once.
const READ_MAX: usize = 1_000;
/// One seed of so many is bulky: such a run takes long.
const BULKY_SEED_OF: u64 = 16;
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
    /// Read many rows at once.
    ReadMany(Vec<Key>),
    /// Write a row of about so many bytes without reading it.
    WriteLarge(Key, usize),
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
    is_bulky: bool,
}

impl Workload {
    pub(crate) fn new(rng: Rng, reads: Reads) -> Workload {
        Workload { rng, reads, is_bulky: false }
    }

    /// The same with transactions that are large now and then.
    pub(crate) fn with_bulk(self, is_bulky: bool) -> Workload {
        Workload { is_bulky, ..self }
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
        if self.is_bulky && self.rng.below(BULKY_ONE_OF) == 0 {
            return self.bulk(read_only);
        }
        (0..self.rng.between(1, 4)).map(|_| self.step(read_only)).collect()
    }

    /// A large transaction.
    fn bulk(&mut self, read_only: bool) -> Vec<Step> {
        if self.rng.chance(0.3) {
            let row = large(self.rng.below(LARGE_ROWS));
            let halvings = self.rng.below(8);
            let bytes = self.rng.below(LARGE_BYTES_MAX >> halvings) as usize;
            return vec![if read_only { Step::Read(row) } else { Step::WriteLarge(row, bytes) }];
        }
        let halvings = self.rng.below(6);
        let count = self.rng.between(1, BULK_KEYS >> halvings);
        let first = self.rng.below(BULK_KEYS - count + 1);
        let keys: Vec<Key> = (first..first + count).map(bulk).collect();
        let reads = (read_only || self.rng.chance(0.5)).then(|| Step::ReadMany(keys.clone()));
        let writes = if read_only { Vec::new() } else { keys };
        reads.into_iter().chain(writes.into_iter().map(Step::Write)).collect()
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

/// True if transactions are large now and then in the run of `seed`.
pub(crate) fn is_bulky(seed: u64) -> bool {
    seed % BULKY_SEED_OF == BULKY_SEED_OF - 1
}

/// Reads of every key that the workload uses.
pub(crate) fn read_all(is_bulky: bool) -> Vec<Step> {
    let keys = (0..LISTS).map(list).chain((0..REGISTERS).map(register));
    let mut steps: Vec<Step> = keys.map(Step::Read).collect();
    if is_bulky {
        steps.extend((0..LARGE_ROWS).map(large).map(Step::Read));
        let all: Vec<Key> = (0..BULK_KEYS).map(bulk).collect();
        steps.extend(all.chunks(READ_MAX).map(|keys| Step::ReadMany(keys.to_vec())));
    }
    steps
}

fn bulk(n: u64) -> Key {
    Key::from(format!("b{n:04}").as_str())
}

fn large(n: u64) -> Key {
    Key::from(format!("w{n}").as_str())
}

fn list(n: u64) -> Key {
    Key::from(format!("l{n}").as_str())
}

fn register(n: u64) -> Key {
    Key::from(format!("r{n}").as_str())
}
