//! A database that cannot be wrong unless told to, to make histories with: one transaction after the other, in one thread.
//!
//! Transaction `n` takes effect at `10 n` milliseconds, its timestamp; its client began it some time before and learns of it some
//! time after. Some abort, some have unknown outcomes (and take effect or not, perhaps after the client gave up), some read
//! the past. The last one reads all.

use super::{begin, range, stamp, time};
use crate::history::{Cell, History, Mode, Op, Txn, TxnNo};
use rhumb_core::{Key, Rng, Row, Timestamp};
use std::collections::BTreeMap;

/// The longest wait before and after a transaction takes effect, in milliseconds.
const WAIT_MAX: u64 = 80;
const STEP: u64 = 10;

/// What kind of history to make.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub txns: u64,
    pub ops_max: u64,
    /// Lists, and as many registers.
    pub keys: u64,
    /// Keys per scan.
    pub scanned: u64,
    /// True if reads tell the versions they found.
    pub versions: bool,
    /// By how many milliseconds read-write transactions read the past and never notice: not clean unless zero.
    pub lag: u64,
}

/// A clean history and its final read.
pub struct Run {
    pub history: History,
    pub last: TxnNo,
}

type Versions = BTreeMap<Key, Vec<(Timestamp, Option<Cell>)>>;
type Writes = BTreeMap<Key, Option<Cell>>;

/// What a transaction sees: the versions of a time, and its own writes.
#[derive(Clone, Copy)]
struct View<'a> {
    as_of: Timestamp,
    own: &'a Writes,
}

/// Neighbouring lists or registers.
#[derive(Clone, Copy)]
struct Keys<'a> {
    model: &'a str,
    from: u64,
    count: u64,
}

struct Model {
    shape: Shape,
    rng: Rng,
    versions: Versions,
    next_value: u64,
}

/// Makes the history of `seed`.
pub fn run(seed: u64, shape: Shape) -> Run {
    let mut model = Model { shape, rng: Rng::seeded(seed), versions: Versions::new(), next_value: 0 };
    let mut history = History::new();
    for n in 0..shape.txns {
        history.add(model.transaction(n));
    }
    let effect = WAIT_MAX + (shape.txns + 1) * STEP + WAIT_MAX + 1;
    let mut last = begin(shape.txns as u32, effect).mode(Mode::ReadOnly);
    let view = View { as_of: stamp(effect), own: &Writes::new() };
    for of in ["l", "r"] {
        last = model.scan(last, Keys { model: of, from: 0, count: shape.keys }, view);
    }
    let last = history.add(last.committed(time(effect), stamp(effect)));
    Run { history, last }
}

impl Model {
    fn transaction(&mut self, n: u64) -> Txn {
        let effect = WAIT_MAX + (n + 1) * STEP;
        let invoked = effect - self.rng.below(WAIT_MAX);
        let ended = effect + 1 + self.rng.below(WAIT_MAX);
        let mut txn = begin(n as u32, invoked);
        let mut own = Writes::new();
        let kind = self.rng.below(10);
        txn.mode = match kind {
            0 => Mode::ReadOnly,
            1 => Mode::Stale(stamp(self.rng.below(effect))),
            _ => Mode::ReadWrite,
        };
        let at = if let Mode::Stale(at) = txn.mode { at } else { stamp(effect) };
        let as_of = if txn.mode == Mode::ReadWrite { stamp(effect - self.shape.lag) } else { at };
        for _ in 0..self.rng.between(1, self.shape.ops_max) {
            txn = self.operation(txn, as_of, &mut own);
        }
        let takes_effect = match kind {
            2 => false,
            3 => self.rng.chance(0.5),
            _ => true,
        };
        if takes_effect {
            own.into_iter().for_each(|(key, cell)| self.versions.entry(key).or_default().push((at, cell)));
        }
        match kind {
            2 => txn.aborted(time(ended)),
            3 => {
                // Whatever it read it read before its client gave up.
                let read = txn.ops.iter().any(|op| matches!(op, Op::Read { .. } | Op::Scan { .. }));
                let earliest = if read { effect } else { invoked };
                txn.unknown(time(self.rng.between(earliest, ended)))
            }
            _ => txn.committed(time(ended), at),
        }
    }

    fn operation(&mut self, txn: Txn, as_of: Timestamp, own: &mut Writes) -> Txn {
        let model = if self.rng.chance(0.5) { "l" } else { "r" };
        let number = self.rng.below(self.shape.keys);
        let key = name(model, number);
        self.next_value += 1;
        let value = self.next_value;
        let view = View { as_of, own };
        let choice = if txn.mode == Mode::ReadWrite { self.rng.below(10) } else { self.rng.below(5) };
        match (choice, model) {
            (0, _) => self.scan(txn, Keys { model, from: number, count: self.shape.scanned }, view),
            (1..=4, _) => txn.op(self.stripped(Op::read(&self.row(&key, view)).expect("a cell"))),
            (_, "l") => {
                let mut elements = match self.row(&key, view).value.map(|value| Cell::decode(&key, &value)) {
                    Some(Ok(Cell::List(elements))) => elements,
                    _ => Vec::new(),
                };
                elements.push(value);
                own.insert(key.clone(), Some(Cell::List(elements)));
                txn.append(key, value)
            }
            (5 | 6, _) => {
                own.insert(key.clone(), None);
                txn.delete(key)
            }
            _ => {
                own.insert(key.clone(), Some(Cell::Register(value)));
                txn.write(key, value)
            }
        }
    }

    fn scan(&self, txn: Txn, Keys { model, from, count }: Keys<'_>, view: View<'_>) -> Txn {
        let (start, end) = (name(model, from).to_string(), name(model, from + count).to_string());
        let rows: Vec<Row> = (from..from + count).map(|number| self.row(&name(model, number), view)).collect();
        txn.op(self.stripped(Op::scan(range(&start, &end), &rows).expect("cells")))
    }

    fn row(&self, key: &Key, View { as_of, own }: View<'_>) -> Row {
        let versions = self.versions.get(key).map_or(&[][..], Vec::as_slice);
        let newest = versions[..versions.partition_point(|&(at, _)| at <= as_of)].last();
        let (version, cell) = match own.get(key) {
            Some(cell) => (Timestamp::MAX, cell.clone()),
            None => newest.cloned().unwrap_or_default(),
        };
        Row { key: key.clone(), version, value: cell.map(|cell| cell.encode()) }
    }

    fn stripped(&self, mut op: Op) -> Op {
        match &mut op {
            _ if self.shape.versions => {}
            Op::Read { version, .. } => *version = None,
            Op::Scan { rows, .. } => rows.iter_mut().for_each(|row| row.version = None),
            _ => {}
        }
        op
    }
}

fn name(model: &str, number: u64) -> Key {
    Key::from(format!("{model}{number:06}").as_str())
}
