//! What sites say to one another. Clients speak as they do to every protocol
//! ([`Request`](crate::replicated_commit::Request), [`Answer`](crate::replicated_commit::Answer)).

use rhumb_core::{Key, KeyRange, Row, Timestamp, TxnId, Value};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Query {
    /// Rows by key.
    Keys(Vec<Key>),
    /// Up to `limit` rows of a range, in key order or its reverse.
    Range {
        /// Which keys.
        range: KeyRange,
        /// At most so many.
        limit: u32,
        /// From the end downwards.
        reverse: bool,
    },
}

/// A message that promises nothing.
///
/// A *session* names the time in which a transaction holds its locks at a replica without a gap: a replica that lost them, by a wound
/// or a crash, begins another one, and the transaction cannot prepare there with the name of the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // the variants are documented; their fields are named after the types above
pub enum Note {
    /// The sender is up.
    Ping,
    /// Gateway to its read quorum: lock this shared, and tell what it holds.
    Read { txn: TxnId, number: u32, query: Query },
    /// Replica: locked. The newest versions here, deletions included; `more` if a limit cut them off.
    Rows { txn: TxnId, number: u32, session: Timestamp, rows: Vec<Row>, more: bool },
    /// Gateway to all that it read from, without having written: are the locks still held?
    Confirm { txn: TxnId, session: Timestamp },
    /// Replica: they were, and are released.
    Confirmed { txn: TxnId },
    /// Gateway, first round: lock what is written here, and prepare. `session` if it has read there.
    Prepare { txn: TxnId, session: Option<Timestamp>, writes: Vec<(Key, Option<Value>)> },
    /// Replica: the transaction holds nothing here, or no more, and cannot prepare. `session` if it had one.
    Refused { txn: TxnId, session: Option<Timestamp> },
    /// Gateway: the transaction did not commit, and will not.
    Abort { txn: TxnId },
    /// Replica that is prepared to the gateway: what came of it?
    Inquire { txn: TxnId },
}

/// A message that promises something durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Promise {
    /// Replica, to the first round: locks and writes are on disk. `clock` is above all that was committed here in conflict.
    Prepared { txn: TxnId, clock: Timestamp },
    /// Gateway, second round: all are prepared, and the decision is on disk.
    Commit { txn: TxnId, at: Timestamp },
    /// Replica, to the second round: the commit is on disk.
    Committed { txn: TxnId },
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Query::Keys(keys) => {
                for (place, key) in keys.iter().enumerate() {
                    write!(f, "{}{key}", if place > 0 { "," } else { "" })?;
                }
                Ok(())
            }
            Query::Range { range, limit, reverse } => write!(f, "{range}{}{limit}", if *reverse { "⇣" } else { "⇡" }),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Ping => write!(f, "ping"),
            Note::Read { txn, number, query } => write!(f, "read {txn} {number} {query}"),
            Note::Rows { txn, number, rows, .. } => write!(f, "rows {txn} {number}: {}", rows.len()),
            Note::Confirm { txn, .. } => write!(f, "confirm {txn}"),
            Note::Confirmed { txn } => write!(f, "confirmed {txn}"),
            Note::Prepare { txn, writes, .. } => write!(f, "prepare {txn}: {} writes", writes.len()),
            Note::Refused { txn, .. } => write!(f, "refused {txn}"),
            Note::Abort { txn } => write!(f, "abort {txn}"),
            Note::Inquire { txn } => write!(f, "inquire {txn}"),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Prepared { txn, clock } => write!(f, "prepared {txn} above {clock}"),
            Promise::Commit { txn, at } => write!(f, "commit {txn} at {at}"),
            Promise::Committed { txn } => write!(f, "committed {txn}"),
        }
    }
}
