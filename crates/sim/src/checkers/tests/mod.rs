//! The checkers against histories written by hand, one per anomaly, and against generated ones.
//!
//! Times and timestamps are in milliseconds. A history is built of lines such as `begin(1, 0).append("x", 1).ok(10, 5)`: client 1
//! begins at 0 and is told at 10 that it committed at timestamp 5.

mod anomalies;
mod deletions;
mod generated;
mod graphs;
mod invariants;
mod model;
mod phantoms;
mod timestamps;
mod unknown;

use super::violation::{Anomaly, Violation};
use super::{no_phantom, strict_serializability};
use crate::history::{Cell, History, Txn};
use rhumb_core::{Key, KeyRange, RegionId, Time, Timestamp};

fn time(millis: u64) -> Time {
    Time::from_micros(millis * 1_000)
}

fn stamp(millis: u64) -> Timestamp {
    Timestamp::from_time(time(millis))
}

fn begin(client: u32, at: u64) -> Txn {
    Txn::new(client, RegionId(0), time(at))
}

fn range(start: &str, end: &str) -> KeyRange {
    KeyRange::new(Key::from(start), Key::from(end))
}

/// Words for hand-written histories.
trait Words {
    fn list(self, key: &str, elements: &[u64]) -> Txn;
    fn value(self, key: &str, value: u64) -> Txn;
    fn nothing(self, key: &str) -> Txn;
    fn values(self, range: KeyRange, rows: &[(&str, u64)]) -> Txn;
    fn ok(self, end: u64, at: u64) -> Txn;
    fn failed(self, end: u64) -> Txn;
    fn perhaps(self, end: u64) -> Txn;
}

impl Words for Txn {
    fn list(self, key: &str, elements: &[u64]) -> Txn {
        self.read(key, (!elements.is_empty()).then(|| Cell::List(elements.to_vec())))
    }

    fn value(self, key: &str, value: u64) -> Txn {
        self.read(key, Some(Cell::Register(value)))
    }

    fn nothing(self, key: &str) -> Txn {
        self.read(key, None)
    }

    fn values(self, range: KeyRange, rows: &[(&str, u64)]) -> Txn {
        self.scan(range, rows.iter().map(|&(key, value)| (key, Cell::Register(value))))
    }

    fn ok(self, end: u64, at: u64) -> Txn {
        self.committed(time(end), stamp(at))
    }

    fn failed(self, end: u64) -> Txn {
        self.aborted(time(end))
    }

    fn perhaps(self, end: u64) -> Txn {
        self.unknown(time(end))
    }
}

fn history(txns: impl IntoIterator<Item = Txn>) -> History {
    let mut history = History::new();
    for txn in txns {
        history.add(txn);
    }
    history
}

/// What the checker of strict serializability says of these transactions.
fn judge(txns: impl IntoIterator<Item = Txn>) -> Result<(), Violation> {
    strict_serializability::check(&history(txns))
}

fn assert_clean(txns: impl IntoIterator<Item = Txn>) {
    let history = history(txns);
    for verdict in [strict_serializability::check(&history), no_phantom::check(&history)] {
        if let Err(violation) = verdict {
            panic!("a clean history was found guilty\n{violation}");
        }
    }
}

fn assert_caught(txns: impl IntoIterator<Item = Txn>, anomaly: Anomaly) -> Violation {
    let violation = judge(txns).expect_err("the anomaly is caught");
    assert_eq!(violation.anomaly, anomaly, "{violation}");
    violation
}
