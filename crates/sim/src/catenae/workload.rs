//! What a client asks next: one-shot transactions and reads on few keys, so that conflicts within an epoch are the rule.

use super::fielded;
use rhumb_commit::one_shot::Freshness;
use rhumb_core::{Key, KeyRange, Rng, Span};

/// Lists, to which transactions append what they read before.
const LISTS: u64 = 2;
/// Registers, which transactions read, write, delete, insert and scan.
const REGISTERS: u64 = 8;
/// Counters, to which transactions add one.
const COUNTERS: u64 = 2;
/// The longest wait between two transactions.
const THINK_MAX: Span = Span::from_millis(120);

/// What to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// A transaction of these steps.
    Run(Vec<Step>),
    /// Read a list in this region, then append to it unless it has changed.
    Append(Key),
    /// As a session of SQL does: read some registers in this region, then a range at the same snapshot, then write these unless
    /// any of it has changed.
    Interact(Vec<Key>, (KeyRange, u32), Vec<Key>),
    /// Add one to a counter.
    Count(Key),
    /// Set these registers of a row made of fields, and add one to its counter; beyond what that may hold, if the last is true.
    Amend(Key, Vec<u32>, bool),
    /// Read some rows and some registers by range.
    Read(Vec<Key>, Vec<(KeyRange, u32)>, How),
}

/// How new a read is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// As the protocol has it.
    Fresh(Freshness),
    /// After this client's last commit.
    Session,
}

/// A step of a transaction. No two of a transaction are about the same register; scans come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Scan(KeyRange, u32),
    Read(Key),
    Write(Key),
    ReadWrite(Key),
    Insert(Key),
    Delete(Key),
}

/// Draws what to ask.
#[derive(Debug)]
pub(crate) struct Workload {
    rng: Rng,
    /// Rows are large now and then.
    is_bulky: bool,
}

/// In a bulky run one transaction of so many is large,
const BULKY_ONE_OF: u64 = 24;
/// and has up to so many bytes, a few times what an entry holds with those of the other clients.
const BULK_MAX: u64 = 3 << 20;

impl Workload {
    pub(crate) fn new(rng: Rng) -> Workload {
        Workload { rng, is_bulky: false }
    }

    /// The same with rows that are large now and then.
    pub(crate) fn with_bulk(self, is_bulky: bool) -> Workload {
        Workload { is_bulky, ..self }
    }

    /// How many bytes the next transaction is to have beyond what it needs; mostly none.
    pub(crate) fn bulk(&mut self) -> usize {
        let is_large = self.is_bulky && self.rng.below(BULKY_ONE_OF) == 0;
        if is_large { self.rng.below(BULK_MAX) as usize } else { 0 }
    }

    pub(crate) fn think(&mut self) -> Span {
        Span::from_micros(self.rng.below(THINK_MAX.as_micros()))
    }

    pub(crate) fn plan(&mut self) -> Plan {
        match self.rng.below(20) {
            0..10 => Plan::Run(self.steps()),
            10..12 => self.amend(),
            12 => Plan::Append(key('l', self.rng.below(LISTS))),
            13 => self.interact(),
            14 => Plan::Count(key('n', self.rng.below(COUNTERS))),
            15..18 => self.read(How::Fresh(Freshness::Strict)),
            18 => self.read(How::Fresh(Freshness::Settled)),
            _ => self.read(How::Session),
        }
    }

    fn steps(&mut self) -> Vec<Step> {
        let mut registers: Vec<u64> = (0..REGISTERS).collect();
        self.rng.shuffle(&mut registers);
        let mut steps = Vec::new();
        if self.rng.chance(0.15) {
            let (range, limit) = self.range();
            steps.push(Step::Scan(range, limit));
        }
        let count = self.rng.between(1, 4) as usize;
        for register in registers.into_iter().take(count) {
            let key = key('r', register);
            steps.push(match self.rng.below(12) {
                0..3 => Step::Read(key),
                3..7 => Step::Write(key),
                7..10 => Step::ReadWrite(key),
                10 => Step::Insert(key),
                _ => Step::Delete(key),
            });
        }
        steps
    }

    fn interact(&mut self) -> Plan {
        let mut some = |chance| (0..REGISTERS).filter(|_| self.rng.chance(chance)).map(|n| key('r', n)).collect::<Vec<_>>();
        let (reads, mut writes) = (some(0.2), some(0.15));
        if writes.is_empty() {
            writes.push(key('r', self.rng.below(REGISTERS)));
        }
        let mut reads = reads;
        if self.rng.chance(0.4) {
            let amended = fielded::row(self.rng.below(fielded::ROWS));
            reads.push(amended.clone());
            writes.push(amended);
        }
        Plan::Interact(reads, self.range(), writes)
    }

    fn amend(&mut self) -> Plan {
        let key = fielded::row(self.rng.below(fielded::ROWS));
        let registers = fielded::REGISTERS.into_iter().filter(|_| self.rng.chance(0.5)).collect();
        Plan::Amend(key, registers, self.rng.chance(0.15))
    }

    fn read(&mut self, how: How) -> Plan {
        let keys = all_keys().into_iter().chain(fielded::all_rows()).filter(|_| self.rng.chance(0.3)).collect();
        let ranges = if self.rng.chance(0.4) { vec![self.range()] } else { vec![] };
        Plan::Read(keys, ranges, how)
    }

    fn range(&mut self) -> (KeyRange, u32) {
        let (a, b) = (self.rng.below(REGISTERS + 1), self.rng.below(REGISTERS + 1));
        let limit = if self.rng.chance(0.3) { self.rng.between(1, 3) as u32 } else { 100 };
        (KeyRange::new(key('r', a.min(b)), key('r', a.max(b) + 1)), limit)
    }
}

/// Every list and register.
pub(crate) fn all_keys() -> Vec<Key> {
    (0..LISTS).map(|n| key('l', n)).chain((0..REGISTERS).map(|n| key('r', n))).collect()
}

/// Every counter.
pub(crate) fn all_counters() -> Vec<Key> {
    (0..COUNTERS).map(|n| key('n', n)).collect()
}

fn key(kind: char, number: u64) -> Key {
    Key::from(format!("{kind}{number}").as_str())
}
