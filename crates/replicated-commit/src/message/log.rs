//! The log of a shard, and its rows, as replicas take them over from each other.

use super::attempt::{Attempt, Meta};
use crate::config::PAGE_BYTES_MAX;
use rhumb_core::{Key, Row, Timestamp, Value};
use serde::{Deserialize, Serialize};

/// A commit in a shard's log, without its rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHead {
    /// Its place in the log of the replica that says so.
    pub seq: u64,
    /// The attempt that committed.
    pub attempt: Attempt,
    /// Its commit timestamp.
    pub at: Timestamp,
    /// Its floor.
    pub floor: Timestamp,
}

/// A commit in a shard's log, with its rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Its place in the log.
    pub seq: u64,
    /// The attempt that committed.
    pub attempt: Attempt,
    /// Its commit timestamp.
    pub at: Timestamp,
    /// Its floor.
    pub floor: Timestamp,
    /// What it wrote in this shard, as far as these versions are still kept.
    pub writes: Vec<(Key, Option<Value>)>,
    /// True if some were collected in the meantime.
    pub partial: bool,
    /// What it is, if it has parts in other shards, too.
    pub meta: Option<Meta>,
}

impl LogEntry {
    /// The same without its rows.
    pub(crate) fn head(&self) -> LogHead {
        LogHead { seq: self.seq, attempt: self.attempt, at: self.at, floor: self.floor }
    }
}

/// How far a replica has taken over the log of a peer, which is to keep the rest for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pulled {
    /// The log is taken over up to here.
    pub after: u64,
    /// Every commit at or below it is applied.
    pub safe: Timestamp,
    /// The placement of this epoch says that it wants the log.
    pub epoch: u64,
    /// The epoch that it is settled in, zero as long as not all rows are here.
    pub settled: u64,
}

/// A page of a replica's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPage {
    /// It begins after this place.
    pub after: u64,
    /// What it lists.
    pub heads: Vec<LogHead>,
    /// It ends here.
    pub end: u64,
    /// There is more.
    pub more: bool,
    /// Once all up to `end` is applied, and there is no more, nothing at or below it will ever be committed with this replica's vote that is not
    /// in the log.
    pub closed: Timestamp,
    /// The log has lost what it had up to here.
    pub begins: u64,
    /// Deletions up to here may be gone.
    pub collected: Timestamp,
    /// The epoch of the replica's placement.
    pub epoch: u64,
}

/// Names a copy of all rows that a replica makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyId {
    /// The incarnation of that replica: its clock may show a timestamp that it has shown in another one.
    pub incarnation: Timestamp,
    /// When it began; no two began at the same time in one incarnation.
    pub began: Timestamp,
}

/// A page of a replica's rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyPage {
    /// Of which copy.
    pub copy: CopyId,
    /// It begins with this key.
    pub from: Key,
    /// The newest version of each, deletions included.
    pub rows: Vec<Row>,
    /// Where the next page begins; none after the last one.
    pub next: Option<Key>,
    /// Deletions up to here may be gone.
    pub collected: Timestamp,
    /// No row has a floor above it.
    pub highest: Timestamp,
    /// The epoch that the replica is settled in.
    pub epoch: u64,
}

/// Cuts rows in the order of their keys off where they would make too long a message; tells if it did. One row always stays.
pub(crate) fn cut_to_size(rows: &mut Vec<Row>) -> bool {
    let mut bytes = 0;
    let fitting = rows.iter().take_while(|row| {
        bytes += row.bytes();
        bytes <= PAGE_BYTES_MAX
    });
    let keep = fitting.count().max(1);
    let cut = keep < rows.len();
    rows.truncate(keep);
    cut
}
