//! What the log of a group holds.

use crate::group;
use rhumb_core::{Key, KeyRange, Timestamp, TxnId, Value};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a transaction writes in one group; none deletes.
pub type Writes = Vec<(Key, Option<Value>)>;

/// A transaction as one of its groups has prepared it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Prepared {
    /// It commits at this timestamp or above.
    pub at: Timestamp,
    /// The groups that take part; the first one decides.
    pub shards: Vec<u16>,
    /// What it has read in this group, and keeps locked.
    pub reads: Vec<KeyRange>,
    /// What it writes in this group.
    pub writes: Writes,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)] // the variants are documented; their fields are named after the types above
pub enum Command {
    /// A leader's first.
    Nothing,
    /// No leader commits at or below `ceiling` any more once it is not this one; no leader commits at or below `closed` from here on.
    Advance { ceiling: Timestamp, closed: Timestamp },
    /// A transaction of this group alone commits.
    Commit { txn: TxnId, at: Timestamp, writes: Writes },
    /// This group is bound to what the transaction's first group decides.
    Prepare { txn: TxnId, prepared: Prepared },
    /// The first group decides: committed at that timestamp, or aborted.
    Decide { txn: TxnId, committed: Option<Timestamp>, shards: Vec<u16> },
    /// Another group has learnt the decision.
    Finish { txn: TxnId, committed: Option<Timestamp> },
    /// All groups have: the first one need not keep what it decided.
    Forget { txn: TxnId },
}

/// Bytes of writes in a message, or a few more.
pub(crate) fn written_bytes(writes: &Writes) -> usize {
    writes.iter().map(|(key, value)| key.0.len() + value.as_ref().map_or(0, |value| value.0.len()) + 16).sum()
}

impl group::Command for Command {
    fn nothing() -> Command {
        Command::Nothing
    }

    fn bytes(&self) -> usize {
        const EACH: usize = 64;
        let more = match self {
            Command::Commit { writes, .. } => written_bytes(writes),
            Command::Prepare { prepared, .. } => {
                let reads: usize = prepared.reads.iter().map(|range| range.start.0.len() + range.end.0.len() + 8).sum();
                written_bytes(&prepared.writes) + reads + 4 * prepared.shards.len()
            }
            Command::Decide { shards, .. } => 4 * shards.len(),
            Command::Nothing | Command::Advance { .. } | Command::Finish { .. } | Command::Forget { .. } => 0,
        };
        EACH + more
    }
}

fn outcome(committed: Option<Timestamp>) -> String {
    committed.map_or_else(|| "aborted".to_owned(), |at| format!("committed at {at}"))
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Nothing => f.write_str("-"),
            Command::Advance { ceiling, closed } => write!(f, "Advance {ceiling} closed {closed}"),
            Command::Commit { txn, at, writes } => write!(f, "Commit {txn} at {at} {} writes", writes.len()),
            Command::Prepare { txn, prepared } => write!(f, "Prepare {txn} at {} {} writes", prepared.at, prepared.writes.len()),
            Command::Decide { txn, committed, .. } => write!(f, "Decide {txn} {}", outcome(*committed)),
            Command::Finish { txn, committed } => write!(f, "Finish {txn} {}", outcome(*committed)),
            Command::Forget { txn } => write!(f, "Forget {txn}"),
        }
    }
}
