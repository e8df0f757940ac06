//! One transaction by itself: what it wrote, and what it read that others wrote.
//!
//! Reads of a transaction's own writes are checked here against those writes and then dropped; a list read after own appends
//! counts as a read of what stood before them. What is left are *external* reads, the stuff of dependencies.

use super::keys::{KeyNo, Keys, Model};
use super::violation::{Anomaly, Violation};
use crate::history::{Cell, Found, Op, Txn};
use rhumb_core::{Key, KeyRange, Timestamp};
use std::collections::BTreeMap;

/// What a transaction left behind at a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// Elements appended, in order.
    Appended(Vec<u64>),
    /// A register's new value, `None` if deleted, and the values it wrote before that.
    Put { last: Option<u64>, overwritten: Vec<u64> },
}

/// What a transaction found at a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen<'a> {
    /// A list; empty if there was no row.
    List(&'a [u64]),
    /// A register's value.
    Value(u64),
    /// No such register.
    Nothing,
}

impl Seen<'_> {
    /// A read that found this at `key`, as operations print.
    pub fn at(self, key: &Key) -> String {
        match self {
            Seen::List(elements) => format!("{key}={}", Cell::List(elements.to_vec())),
            Seen::Value(value) => format!("{key}={value}"),
            Seen::Nothing => format!("{key}=nil"),
        }
    }
}

/// An external read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read<'a> {
    pub key: KeyNo,
    pub seen: Seen<'a>,
    /// The version that the database says this is.
    pub version: Option<Timestamp>,
    /// True if a scan of a range around the key did not return it.
    pub absent: bool,
}

impl Write {
    fn element(&mut self, element: u64) {
        match self {
            Write::Appended(elements) => elements.push(element),
            Write::Put { .. } => unreachable!("a key has one model"),
        }
    }

    fn put(&mut self, value: Option<u64>) {
        match self {
            Write::Put { last, overwritten } => overwritten.extend(std::mem::replace(last, value)),
            Write::Appended(_) => unreachable!("a key has one model"),
        }
    }

    /// True if it ends in a deletion.
    pub fn is_deletion(&self) -> bool {
        matches!(self, Write::Put { last: None, .. })
    }

    /// Every value and element written, also those that no other transaction should ever see.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        let (many, last) = match self {
            Write::Appended(elements) => (elements, None),
            Write::Put { last, overwritten } => (overwritten, *last),
        };
        many.iter().copied().chain(last)
    }

    /// The value or element that stands last.
    pub fn last(&self) -> Option<u64> {
        match self {
            Write::Appended(elements) => elements.last().copied(),
            Write::Put { last, .. } => *last,
        }
    }
}

/// What `txn` wrote, by key.
pub(super) fn writes(txn: &Txn, keys: &Keys<'_>) -> BTreeMap<KeyNo, Write> {
    let mut writes = BTreeMap::new();
    txn.ops.iter().for_each(|op| record_write(op, keys, &mut writes));
    writes
}

fn record_write(op: &Op, keys: &Keys<'_>, writes: &mut BTreeMap<KeyNo, Write>) {
    let put = |value| Write::Put { last: value, overwritten: Vec::new() };
    match op {
        Op::Append { key, element } => {
            let write = writes.entry(keys.number(key)).or_insert_with(|| Write::Appended(Vec::new()));
            write.element(*element);
        }
        Op::Write { key, value } => {
            writes.entry(keys.number(key)).and_modify(|write| write.put(Some(*value))).or_insert_with(|| put(Some(*value)));
        }
        Op::Delete { key } => {
            writes.entry(keys.number(key)).and_modify(|write| write.put(None)).or_insert_with(|| put(None));
        }
        Op::Read { .. } | Op::Scan { .. } => {}
    }
}

/// What `txn` read that others wrote, each once, in order.
pub(super) fn external_reads<'a>(txn: &'a Txn, keys: &Keys<'a>) -> Result<Vec<Read<'a>>, Violation> {
    let mut reader = Reader { txn, keys, own: BTreeMap::new(), reads: Vec::new(), known: BTreeMap::new() };
    for op in &txn.ops {
        match op {
            Op::Read { key, cell, version } => reader.found(keys.number(key), cell.as_ref(), *version, false)?,
            Op::Scan { range, rows } => reader.scanned(range, rows)?,
            write => record_write(write, keys, &mut reader.own),
        }
    }
    Ok(reader.reads)
}

struct Reader<'a, 'k> {
    txn: &'a Txn,
    keys: &'k Keys<'a>,
    /// Written so far.
    own: BTreeMap<KeyNo, Write>,
    reads: Vec<Read<'a>>,
    /// Where in `reads` a key was read.
    known: BTreeMap<KeyNo, usize>,
}

impl<'a> Reader<'a, '_> {
    fn scanned(&mut self, range: &KeyRange, rows: &'a [Found]) -> Result<(), Violation> {
        let ascending = rows.windows(2).all(|pair| pair[0].key < pair[1].key);
        if !ascending || !rows.iter().all(|row| range.contains(&row.key)) {
            return Err(self.violation(Anomaly::BadScan, format!("{} scanned {range} and got rows out of order or range", self.txn.no)));
        }
        let mut rows = rows.iter().peekable();
        for key in self.keys.within(range) {
            match rows.next_if(|row| row.key == *self.keys.key(key)) {
                Some(row) => self.found(key, Some(&row.cell), row.version, false)?,
                None => self.found(key, None, None, true)?,
            }
        }
        Ok(())
    }

    fn found(&mut self, key: KeyNo, cell: Option<&'a Cell>, version: Option<Timestamp>, absent: bool) -> Result<(), Violation> {
        let seen = match cell {
            Some(Cell::List(elements)) => Seen::List(elements),
            Some(Cell::Register(value)) => Seen::Value(*value),
            None if self.keys.model(key) == Model::List => Seen::List(&[]),
            None => Seen::Nothing,
        };
        let before = match (seen, self.own.get(&key)) {
            (seen, None) => Some(seen),
            (Seen::List(elements), Some(Write::Appended(own))) => match elements.strip_suffix(own.as_slice()) {
                Some(before) => Some(Seen::List(before)),
                None => return Err(self.contradiction(key, seen, absent, "its own appends")),
            },
            (Seen::Value(value), Some(write)) if write.last() == Some(value) => None,
            (Seen::Nothing, Some(write)) if write.is_deletion() => None,
            _ => return Err(self.contradiction(key, seen, absent, "its own write")),
        };
        before.map_or(Ok(()), |seen| self.external(Read { key, seen, version, absent }))
    }

    fn external(&mut self, read: Read<'a>) -> Result<(), Violation> {
        let Some(&earlier) = self.known.get(&read.key) else {
            self.known.insert(read.key, self.reads.len());
            self.reads.push(read);
            return Ok(());
        };
        if self.reads[earlier].seen != read.seen {
            let absent = self.reads[earlier].absent || read.absent;
            return Err(self.contradiction(read.key, read.seen, absent, "what it read there before"));
        }
        self.reads[earlier].absent |= read.absent;
        self.reads[earlier].version = self.reads[earlier].version.or(read.version);
        Ok(())
    }

    fn contradiction(&self, key: KeyNo, seen: Seen<'_>, absent: bool, what: &str) -> Violation {
        let anomaly = if absent { Anomaly::Phantom } else { Anomaly::InternalRead };
        self.violation(anomaly, format!("{} read {}, against {what}", self.txn.no, seen.at(self.keys.key(key))))
    }

    fn violation(&self, anomaly: Anomaly, story: String) -> Violation {
        Violation::new(anomaly, story, [self.txn])
    }
}
