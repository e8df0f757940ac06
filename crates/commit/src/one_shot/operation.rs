//! One-shot transactions: a list of operations whose keys are known before anything is read.
//!
//! No operation depends on what another one returned, so the order in which a list visits different keys means nothing. Hence a
//! list must not come back to a key that it has left: its chain would be cyclic (Catenae, section VI.B). Operations on one
//! key stand together and take effect in their order. A transaction in which any operation fails changes nothing.

use super::footprint::Footprint;
use crate::error::TxnError;
use rhumb_core::fields::Change;
use rhumb_core::record::encoded_bytes;
use rhumb_core::{Key, KeyRange, Timestamp, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use thiserror::Error;

/// Operations in one transaction, at the most.
pub const OPERATIONS_MAX: usize = 4_096;
/// Bytes of the operations of one transaction in their encoding, at the most. What is in them may be far less: a field that is set to
/// NULL holds nothing and takes four bytes to say.
pub const TXN_BYTES_MAX: usize = 4 << 20;
/// Rows that one scan may return.
pub const SCAN_ROWS_MAX: u32 = 1_000;
/// Rows that the ranges which a transaction expects to be unchanged may hold, all together.
pub const UNCHANGED_ROWS_MAX: u64 = 10_000;

/// What a row must be for a transaction to go on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Expected {
    /// This version: the row has not been written since it was read. Zero: there is no such row. Whether it was never written or
    /// deleted makes no difference, as deletions are forgotten sooner in one region than in another.
    Version(Timestamp),
    /// This value; `None`: there is no such row.
    Value(Option<Value>),
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs)] // the variants are documented; their fields are what they are called
pub enum Operation {
    /// Returns the row.
    Read { key: Key },
    /// Returns the first `limit` rows of the range, in the order of keys.
    Scan { range: KeyRange, limit: u32 },
    /// Sets the row.
    Write { key: Key, value: Value },
    /// Adds to the row, a decimal number; a row that is not there counts as zero. Fails if it is none, or beyond 64 bits.
    Add { key: Key, amount: i64 },
    /// Fails unless the row is as expected.
    Compare { key: Key, expected: Expected },
    /// Fails unless the range holds just so many rows, none of a version after `since`. Whoever read those rows at that snapshot
    /// would read the same now: a row that came or changed has a newer version, and one that went is missing.
    Unchanged { range: KeyRange, rows: u32, since: Timestamp },
    /// Sets the row, and fails if it is there already.
    Insert { key: Key, value: Value },
    /// Removes the row; no harm if it is not there.
    Delete { key: Key },
    /// Changes fields of the row, a value [made of fields](rhumb_core::fields); no harm if it is not there. Fails if a sum leaves its bounds.
    Amend { key: Key, changes: Vec<Change> },
}

/// A transaction: its operations, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Transaction {
    /// What it does.
    pub operations: Vec<Operation>,
}

/// Why a list of operations is no transaction.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Invalid {
    /// There is nothing to do.
    #[error("a transaction needs at least one operation")]
    Empty,
    /// Too many operations.
    #[error("a transaction has at most {OPERATIONS_MAX} operations; this one has {0}")]
    TooMany(usize),
    /// Too many bytes.
    #[error("a transaction has at most {TXN_BYTES_MAX} bytes, encoded; this one has {0}")]
    TooLarge(usize),
    /// A scan that may return too many rows, or none.
    #[error("operation {place}: a scan returns 1 to {SCAN_ROWS_MAX} rows, not {limit}")]
    ScanLimit {
        /// Which operation, from 1.
        place: usize,
        /// What it asked for.
        limit: u32,
    },
    /// Ranges with too many rows.
    #[error("the ranges that a transaction depends on hold at most {UNCHANGED_ROWS_MAX} rows; those of this one hold {0}")]
    TooManyRead(u64),
    /// It comes back to a key.
    #[error("operation {place} comes back to key {key} after others: operations on one key must stand together")]
    Cyclic {
        /// Which operation, from 1.
        place: usize,
        /// Which key.
        key: Key,
    },
}

impl From<Invalid> for TxnError {
    fn from(invalid: Invalid) -> TxnError {
        match invalid {
            Invalid::Empty | Invalid::Cyclic { .. } => TxnError::Invalid(invalid.to_string().into()),
            Invalid::TooMany(_) | Invalid::TooLarge(_) | Invalid::ScanLimit { .. } | Invalid::TooManyRead(_) => {
                TxnError::TooLarge(invalid.to_string().into())
            }
        }
    }
}

impl Operation {
    /// The key that it reads or writes; none if it reads a range.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Operation::Scan { .. } | Operation::Unchanged { .. } => None,
            Operation::Read { key }
            | Operation::Write { key, .. }
            | Operation::Add { key, .. }
            | Operation::Compare { key, .. }
            | Operation::Insert { key, .. }
            | Operation::Delete { key }
            | Operation::Amend { key, .. } => Some(key),
        }
    }

    /// The range that it reads, and how many of its rows at the most.
    pub fn range(&self) -> Option<(&KeyRange, u32)> {
        match self {
            Operation::Scan { range, limit } => Some((range, *limit)),
            // One more would be one too many.
            Operation::Unchanged { range, rows, .. } => Some((range, rows.saturating_add(1))),
            _ => None,
        }
    }

    /// True if the values of the rows matter to it; otherwise whether they are there, and their versions.
    pub fn reads_values(&self) -> bool {
        match self {
            Operation::Read { .. } | Operation::Scan { .. } | Operation::Add { .. } | Operation::Amend { .. } => true,
            Operation::Compare { expected, .. } => matches!(expected, Expected::Value(_)),
            Operation::Unchanged { .. } | Operation::Write { .. } | Operation::Delete { .. } | Operation::Insert { .. } => false,
        }
    }

    /// True if it may change the row.
    pub fn writes(&self) -> bool {
        self.range().is_none() && !matches!(self, Operation::Read { .. } | Operation::Compare { .. })
    }

    /// Bytes of its encoding.
    pub fn bytes(&self) -> usize {
        encoded_bytes(self)
    }
}

impl Transaction {
    /// The transaction of these operations.
    pub fn new(operations: Vec<Operation>) -> Transaction {
        Transaction { operations }
    }

    /// Holds it to the bounds.
    ///
    /// # Errors
    /// The first bound that it exceeds, and where.
    pub fn validate(&self) -> Result<(), Invalid> {
        let count = self.operations.len();
        if count == 0 {
            return Err(Invalid::Empty);
        }
        if count > OPERATIONS_MAX {
            return Err(Invalid::TooMany(count));
        }
        let bytes = self.bytes();
        if bytes > TXN_BYTES_MAX {
            return Err(Invalid::TooLarge(bytes));
        }
        let read = self.operations.iter().map(|operation| match operation {
            Operation::Unchanged { rows, .. } => u64::from(*rows),
            _ => 0,
        });
        let read: u64 = read.sum();
        if read > UNCHANGED_ROWS_MAX {
            return Err(Invalid::TooManyRead(read));
        }
        let mut left: BTreeSet<&Key> = BTreeSet::new();
        let mut at: Option<&Key> = None;
        for (place, operation) in (1..).zip(&self.operations) {
            match operation {
                Operation::Scan { limit, .. } if !(1..=SCAN_ROWS_MAX).contains(limit) => {
                    return Err(Invalid::ScanLimit { place, limit: *limit });
                }
                _ => {}
            }
            if operation.key() != at {
                left.extend(at);
                at = operation.key();
                if let Some(key) = at.filter(|key| left.contains(key)) {
                    return Err(Invalid::Cyclic { place, key: key.clone() });
                }
            }
        }
        Ok(())
    }

    /// Bytes of its operations in their encoding.
    pub fn bytes(&self) -> usize {
        self.operations.iter().map(Operation::bytes).sum()
    }

    /// What it reads and writes.
    pub fn footprint(&self) -> Footprint {
        let mut footprint = Footprint::default();
        for operation in &self.operations {
            footprint.ranges.extend(operation.range().map(|(range, _)| range.clone()));
            if let Some(key) = operation.key() {
                let writes = footprint.keys.entry(key.clone()).or_insert(false);
                *writes |= operation.writes();
            }
        }
        footprint
    }
}

impl From<Operation> for Transaction {
    fn from(operation: Operation) -> Transaction {
        Transaction::new(vec![operation])
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Read { key } => write!(f, "r{key}"),
            Operation::Scan { range, limit } => write!(f, "scan{range}≤{limit}"),
            Operation::Write { key, .. } => write!(f, "w{key}"),
            Operation::Add { key, amount } => write!(f, "{key}{amount:+}"),
            Operation::Compare { key, .. } => write!(f, "{key}?"),
            Operation::Unchanged { range, rows, since } => write!(f, "{range}={rows}@{since}"),
            Operation::Insert { key, .. } => write!(f, "i{key}"),
            Operation::Delete { key } => write!(f, "d{key}"),
            Operation::Amend { key, .. } => write!(f, "a{key}"),
        }
    }
}

impl fmt::Display for Transaction {
    /// `[ra wb c+1]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.operations.iter().map(ToString::to_string).collect();
        write!(f, "[{}]", words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str) -> Operation {
        Operation::Read { key: key.into() }
    }

    fn write(key: &str) -> Operation {
        Operation::Write { key: key.into(), value: "v".into() }
    }

    #[test]
    fn bounds_are_held_and_named() {
        let check = |operations: Vec<Operation>| Transaction::new(operations).validate().map_err(|invalid| invalid.to_string());
        assert_eq!(check(vec![read("a"), write("a"), write("b")]), Ok(()));
        assert_eq!(check(vec![]), Err("a transaction needs at least one operation".into()));
        assert_eq!(check(vec![read("a"); 4_097]), Err("a transaction has at most 4096 operations; this one has 4097".into()));
        let large = Operation::Write { key: "k".into(), value: Value::new(vec![0; 4 << 20]) };
        assert_eq!(check(vec![large]), Err("a transaction has at most 4194304 bytes, encoded; this one has 4194311".into()));
        let scan = Operation::Scan { range: KeyRange::prefix(b"k"), limit: 0 };
        assert_eq!(check(vec![read("a"), scan]), Err("operation 2: a scan returns 1 to 1000 rows, not 0".into()));
        let unchanged = |rows| Operation::Unchanged { range: KeyRange::prefix(b"k"), rows, since: Timestamp::ZERO };
        assert_eq!(check(vec![unchanged(9_000), unchanged(1_000)]), Ok(()));
        let many = "the ranges that a transaction depends on hold at most 10000 rows; those of this one hold 10001";
        assert_eq!(check(vec![unchanged(9_000), unchanged(1_001)]), Err(many.into()));
    }

    #[test]
    fn a_cyclic_chain_is_refused() {
        let cyclic = Transaction::new(vec![read("a"), write("b"), write("a")]);
        assert_eq!(cyclic.validate(), Err(Invalid::Cyclic { place: 3, key: "a".into() }));
        let scan = Operation::Scan { range: KeyRange::prefix(b"k"), limit: 5 };
        assert_eq!(Transaction::new(vec![read("a"), scan, write("a")]).validate(), Err(Invalid::Cyclic { place: 3, key: "a".into() }));
    }

    #[test]
    fn a_key_that_is_read_and_written_counts_as_written() {
        let footprint = Transaction::new(vec![read("a"), write("a"), read("b")]).footprint();
        assert_eq!(footprint.keys, [("a".into(), true), ("b".into(), false)].into());
    }

    #[test]
    fn a_range_that_is_expected_to_be_unchanged_is_read() {
        let unchanged = Operation::Unchanged { range: KeyRange::prefix(b"k"), rows: 3, since: Timestamp::ZERO };
        assert_eq!((unchanged.writes(), unchanged.range().map(|(_, rows)| rows)), (false, Some(4)));
        let footprint = Transaction::new(vec![unchanged]).footprint();
        assert!(footprint.conflicts(&Transaction::new(vec![write("k7")]).footprint()));
        assert!(!footprint.conflicts(&Transaction::new(vec![read("k7"), write("l")]).footprint()));
    }
}
