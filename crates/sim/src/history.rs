//! What the clients of a run did and saw: the only evidence the checkers accept.
//!
//! A [`History`] lists transactions as their clients saw them: when each was invoked and when it ended by the *true* clock of
//! the simulator, what it read and wrote, and how it ended, which may be *unknown*. Every key holds a [`Cell`] of one of two
//! models, chosen because a read tells much about the order of the writes before it:
//!
//! * a **list**, to which transactions append elements: a read returns all appends so far, in their order;
//! * a **register**, which transactions overwrite or delete: a read returns the last value.
//!
//! Invariants the clients keep: no element is appended to, and no value written to, the same key twice in a run (also not by a
//! retry, which is a transaction of its own); a key keeps its model; a client runs one transaction at a time.

use rhumb_core::{Key, KeyRange, RegionId, Row, Time, Timestamp, Value};
use std::fmt;
use thiserror::Error;

/// Names a transaction within its history: its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnNo(pub u32);

/// Names a client within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// The elements appended so far, oldest first.
    List(Vec<u64>),
    /// The value last written.
    Register(u64),
}

/// A stored value that is no [`Cell`]: the database made it up or damaged it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("key {key} holds {value:?}, which no client wrote")]
pub struct Garbled {
    /// Where it was found.
    pub key: Key,
    /// What was found.
    pub value: Value,
}

/// A row as a scan returned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its key.
    pub key: Key,
    /// What it holds.
    pub cell: Cell,
    /// The commit timestamp of its version, if the database told.
    pub version: Option<Timestamp>,
}

/// One operation of a transaction, with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Appended `element` to the list `key`.
    Append {
        /// Which list.
        key: Key,
        /// What; appended to this key only once in the history.
        element: u64,
    },
    /// Set the register `key`.
    Write {
        /// Which register.
        key: Key,
        /// To what; written to this key only once in the history.
        value: u64,
    },
    /// Deleted the register `key`.
    Delete {
        /// Which register.
        key: Key,
    },
    /// Read one key.
    Read {
        /// Which.
        key: Key,
        /// What it held; `None` if there was no such row.
        cell: Option<Cell>,
        /// The commit timestamp of the version read, if the database told: of a deletion when `cell` is `None`, or zero.
        version: Option<Timestamp>,
    },
    /// Read all rows of a range.
    Scan {
        /// The keys that the answer speaks for. If a limit cut the answer off, the range ends right after its last row.
        range: KeyRange,
        /// All rows found there, in key order.
        rows: Vec<Found>,
    },
}

/// How a transaction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads and writes, validated at commit.
    ReadWrite,
    /// Reads only, at one timestamp, strictly serializable.
    ReadOnly,
    /// Reads only, as of this timestamp.
    Stale(Timestamp),
}

/// What a client was told about its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It happened.
    Committed {
        /// The timestamp of its versions; of a read-only transaction the one it read at.
        at: Timestamp,
    },
    /// It did not happen and never will.
    Aborted,
    /// It may have happened, or may happen yet.
    Unknown,
}

/// A transaction as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txn {
    /// Its name in the history; [`History::add`] gives it.
    pub no: TxnNo,
    /// Who ran it.
    pub client: ClientId,
    /// The region that the client is connected to.
    pub region: RegionId,
    /// How it reads.
    pub mode: Mode,
    /// What it did, in order.
    pub ops: Vec<Op>,
    /// When the client began it, by the true clock.
    pub invoked: Time,
    /// When the client was told the outcome, by the true clock, and which; `None` while it still waits.
    pub ended: Option<(Time, Outcome)>,
}

/// All transactions of a run, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    txns: Vec<Txn>,
}

impl History {
    /// A history without transactions.
    pub fn new() -> History {
        History::default()
    }

    /// Adds `txn` and names it.
    pub fn add(&mut self, mut txn: Txn) -> TxnNo {
        txn.no = TxnNo(u32::try_from(self.txns.len()).expect("a history has fewer than 2^32 transactions"));
        self.txns.push(txn);
        self.txns[self.txns.len() - 1].no
    }

    /// All transactions; the index of each is its number.
    pub fn txns(&self) -> &[Txn] {
        &self.txns
    }

    /// The transaction `no`.
    ///
    /// # Panics
    /// If this history gave out no such number.
    pub fn txn(&self, no: TxnNo) -> &Txn {
        &self.txns[no.0 as usize]
    }

    /// The transaction `no`, to record more of it.
    ///
    /// # Panics
    /// If this history gave out no such number.
    pub fn txn_mut(&mut self, no: TxnNo) -> &mut Txn {
        &mut self.txns[no.0 as usize]
    }
}

impl Txn {
    /// A read-write transaction that `client`, connected to `region`, began at `invoked`.
    pub fn new(client: u32, region: RegionId, invoked: Time) -> Txn {
        Txn { no: TxnNo(0), client: ClientId(client), region, mode: Mode::ReadWrite, ops: Vec::new(), invoked, ended: None }
    }

    /// The same, reading in `mode`.
    pub fn mode(mut self, mode: Mode) -> Txn {
        self.mode = mode;
        self
    }

    /// Records an operation.
    pub fn push(&mut self, op: Op) {
        self.ops.push(op);
    }

    /// Records what the client was told, and when.
    pub fn end(&mut self, time: Time, outcome: Outcome) {
        assert!(self.ended.is_none() && time >= self.invoked, "a transaction ends once, after it began");
        self.ended = Some((time, outcome));
    }

    /// The same with `op` recorded.
    pub fn op(mut self, op: Op) -> Txn {
        self.push(op);
        self
    }

    /// Appends `element` to the list `key`.
    pub fn append(self, key: impl Into<Key>, element: u64) -> Txn {
        self.op(Op::Append { key: key.into(), element })
    }

    /// Sets the register `key` to `value`.
    pub fn write(self, key: impl Into<Key>, value: u64) -> Txn {
        self.op(Op::Write { key: key.into(), value })
    }

    /// Deletes the register `key`.
    pub fn delete(self, key: impl Into<Key>) -> Txn {
        self.op(Op::Delete { key: key.into() })
    }

    /// Reads `key`, version not told.
    pub fn read(self, key: impl Into<Key>, cell: Option<Cell>) -> Txn {
        self.op(Op::Read { key: key.into(), cell, version: None })
    }

    /// Scans `range`, versions not told.
    pub fn scan<K: Into<Key>>(self, range: KeyRange, rows: impl IntoIterator<Item = (K, Cell)>) -> Txn {
        let rows = rows.into_iter().map(|(key, cell)| Found { key: key.into(), cell, version: None }).collect();
        self.op(Op::Scan { range, rows })
    }

    /// The same, told at `time` that it committed.
    pub fn committed(mut self, time: Time, at: Timestamp) -> Txn {
        self.end(time, Outcome::Committed { at });
        self
    }

    /// The same, told at `time` that it aborted.
    pub fn aborted(mut self, time: Time) -> Txn {
        self.end(time, Outcome::Aborted);
        self
    }

    /// The same, told at `time` that its outcome is unknown.
    pub fn unknown(mut self, time: Time) -> Txn {
        self.end(time, Outcome::Unknown);
        self
    }

    /// When it committed, by the database's clock, if it is known to have committed.
    pub fn committed_at(&self) -> Option<Timestamp> {
        match self.ended {
            Some((_, Outcome::Committed { at })) => Some(at),
            _ => None,
        }
    }

    /// When the client learnt that it committed, if it did.
    pub fn acknowledged(&self) -> Option<Time> {
        match self.ended {
            Some((time, Outcome::Committed { .. })) => Some(time),
            _ => None,
        }
    }

    /// True if it certainly did not happen.
    pub fn is_aborted(&self) -> bool {
        matches!(self.ended, Some((_, Outcome::Aborted)))
    }

    /// True if it may or may not have happened: the outcome is unknown, or the client still waits for it.
    pub fn is_undecided(&self) -> bool {
        matches!(self.ended, None | Some((_, Outcome::Unknown)))
    }
}

impl Op {
    /// A read that the database answered with `row`.
    ///
    /// # Errors
    /// If the row holds no [`Cell`].
    pub fn read(row: &Row) -> Result<Op, Garbled> {
        let cell = row.value.as_ref().map(|value| Cell::decode(&row.key, value)).transpose()?;
        Ok(Op::Read { key: row.key.clone(), cell, version: version_of(row) })
    }

    /// A scan of `range` that the database answered with `rows`.
    ///
    /// # Errors
    /// If a row holds no [`Cell`].
    pub fn scan(range: KeyRange, rows: &[Row]) -> Result<Op, Garbled> {
        let live = rows.iter().filter_map(|row| row.value.as_ref().map(|value| (row, value)));
        let found =
            live.map(|(row, value)| Ok(Found { key: row.key.clone(), cell: Cell::decode(&row.key, value)?, version: version_of(row) }));
        Ok(Op::Scan { range, rows: found.collect::<Result<_, _>>()? })
    }
}

/// The version of a row that a transaction read; a transaction's own write, read back, has none yet.
fn version_of(row: &Row) -> Option<Timestamp> {
    (row.version != Timestamp::MAX).then_some(row.version)
}

impl Cell {
    /// The bytes to store: the cell as it prints.
    pub fn encode(&self) -> Value {
        Value::new(self.to_string().into_bytes())
    }

    /// The same with so many bytes after it, which mean nothing.
    pub fn encode_padded(&self, bytes: usize) -> Value {
        let mut value = self.to_string().into_bytes();
        value.resize(value.len() + bytes, b' ');
        Value::new(value)
    }

    /// The cell that `value`, found under `key`, encodes.
    ///
    /// # Errors
    /// If it encodes none.
    pub fn decode(key: &Key, value: &Value) -> Result<Cell, Garbled> {
        std::str::from_utf8(&value.0).ok().and_then(Cell::parse).ok_or_else(|| Garbled { key: key.clone(), value: value.clone() })
    }

    fn parse(text: &str) -> Option<Cell> {
        let text = text.trim_end_matches(' ');
        match text.strip_prefix('[') {
            None => text.parse().ok().map(Cell::Register),
            Some(rest) => {
                let elements = rest.strip_suffix(']')?.split_ascii_whitespace();
                elements.map(|element| element.parse().ok()).collect::<Option<_>>().map(Cell::List)
            }
        }
    }
}

impl fmt::Display for TxnNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

impl fmt::Display for Cell {
    /// `[1 2 3]` a list, `7` a register.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Register(value) => write!(f, "{value}"),
            Cell::List(elements) => {
                let words: Vec<String> = elements.iter().map(u64::to_string).collect();
                write!(f, "[{}]", words.join(" "))
            }
        }
    }
}

impl fmt::Display for Op {
    /// `x+=4` `x:=4` `del(x)` `x=[1 2]` `x=nil` `[a,c)={a=1 b=[2]}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Append { key, element } => write!(f, "{key}+={element}"),
            Op::Write { key, value } => write!(f, "{key}:={value}"),
            Op::Delete { key } => write!(f, "del({key})"),
            Op::Read { key, cell: Some(cell), .. } => write!(f, "{key}={cell}"),
            Op::Read { key, cell: None, .. } => write!(f, "{key}=nil"),
            Op::Scan { range, rows } => {
                let words: Vec<String> = rows.iter().map(|row| format!("{}={}", row.key, row.cell)).collect();
                write!(f, "{range}={{{}}}", words.join(" "))
            }
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mode::ReadWrite => write!(f, "rw"),
            Mode::ReadOnly => write!(f, "ro"),
            Mode::Stale(at) => write!(f, "as of {at}"),
        }
    }
}

impl fmt::Display for Txn {
    /// `T3 c1@r0 rw 1.000000..1.086000 committed at 1.000000+1: x=[1 2] x+=3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}@{} {} {}..", self.no, self.client, self.region, self.mode, self.invoked)?;
        match self.ended {
            None => write!(f, " pending:")?,
            Some((time, Outcome::Committed { at })) => write!(f, "{time} committed at {at}:")?,
            Some((time, Outcome::Aborted)) => write!(f, "{time} aborted:")?,
            Some((time, Outcome::Unknown)) => write!(f, "{time} unknown:")?,
        }
        self.ops.iter().try_for_each(|op| write!(f, " {op}"))
    }
}

impl fmt::Display for History {
    /// One transaction per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.txns.iter().try_for_each(|txn| writeln!(f, "{txn}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_survive_their_encoding_and_garbage_is_refused() {
        let key = Key::from("k");
        for cell in [Cell::List(vec![]), Cell::List(vec![1, 20, 3]), Cell::Register(7)] {
            assert_eq!(Cell::decode(&key, &cell.encode()), Ok(cell.clone()));
            assert_eq!(Cell::decode(&key, &cell.encode_padded(9)), Ok(cell));
        }
        for garbage in ["", "[1", "[1 x]", "nil"] {
            let refused = Cell::decode(&key, &Value::from(garbage)).expect_err("garbage is no cell");
            assert_eq!(refused.to_string(), format!("key k holds {:?}, which no client wrote", Value::from(garbage)));
        }
    }

    #[test]
    fn a_transaction_prints_on_one_line() {
        let mut history = History::new();
        let range = KeyRange::new(Key::from("a"), Key::from("c"));
        let row = Row { key: Key::from("x"), version: Timestamp::from_bits(3), value: Some(Cell::List(vec![1, 2]).encode()) };
        let txn = Txn::new(1, RegionId(0), Time::from_micros(5)).op(Op::read(&row).expect("a cell")).append("x", 3).delete("y");
        history.add(txn.scan(range, [("a", Cell::Register(4))]).committed(Time::from_micros(9), Timestamp::from_bits(1)));
        assert_eq!(history.to_string(), "T0 c1@r0 rw 0.000005..0.000009 committed at 0.000000+1: x=[1 2] x+=3 del(y) [a,c)={a=4}\n");
    }
}
