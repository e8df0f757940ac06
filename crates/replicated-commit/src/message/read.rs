//! Reads at replicas.

use super::list;
use rhumb_core::{Key, KeyRange, Row, Timestamp, TxnId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which rows to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Query {
    /// These keys.
    Keys(Vec<Key>),
    /// A range, `limit` rows at the most, deletions counted.
    Range {
        /// Which keys.
        range: KeyRange,
        /// At most so many rows.
        limit: u32,
        /// From the end downwards.
        reverse: bool,
    },
}

/// How a replica is to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// Take a shared lock, then the newest version.
    Lock,
    /// The newest version, no lock.
    Newest,
    /// As of a timestamp that no later commit may undercut.
    At(Timestamp),
    /// As of a timestamp that is closed already, or soon will be.
    Stale(Timestamp),
}

/// Names a read at its gateway, for the replicas that it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReadId {
    /// The incarnation of the gateway: its clock may show a timestamp that it has shown in another one.
    pub incarnation: Timestamp,
    /// When it was asked.
    pub made: Timestamp,
    /// It is of the rows that are expected beside those of a scan.
    pub of_expected: bool,
}

/// Why a replica did not serve a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Denial {
    /// Another transaction holds a row exclusively.
    Locked,
    /// Too many reads wait already.
    Busy,
    /// There is no copy here, or not yet a complete one.
    NoCopy,
    /// Versions that old are no longer kept; this is the oldest timestamp that can be read.
    Collected(Timestamp),
}

/// A read at one replica. One of a majority is of the active regions of `epoch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// Its name.
    pub read: ReadId,
    /// The epoch in which its gateway asks.
    pub epoch: u64,
    /// Of which transaction.
    pub txn: TxnId,
    /// Which rows.
    pub query: Query,
    /// How.
    pub how: How,
}

/// What one replica has read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// Which read that was.
    pub read: ReadId,
    /// The rows: of a read by key those of the first of its keys, as many as there are.
    pub rows: Vec<Row>,
    /// A scan that was cut off speaks for the rows up to here only.
    pub upto: Option<Key>,
    /// The highest timestamp above the one asked for at which a row has a version or a prepared write. Zero, as the two below, unless the read
    /// was [at](How::At) a timestamp.
    pub above: Timestamp,
    /// The highest of any commit that the replica knows.
    pub high: Timestamp,
    /// The highest of the versions' floors.
    pub floor: Timestamp,
    /// The replica had collected deletions up to here, whatever they covered, before it looked.
    pub collected: Timestamp,
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Query::Keys(keys) => list(f, keys.iter()),
            Query::Range { range, limit, reverse } => write!(f, "{range}{}{limit}", if *reverse { "⇣" } else { "⇡" }),
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            How::Lock => write!(f, "lock"),
            How::Newest => write!(f, "newest"),
            How::At(at) => write!(f, "at {at}"),
            How::Stale(at) => write!(f, "stale {at}"),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denial::Locked => write!(f, "locked"),
            Denial::Busy => write!(f, "busy"),
            Denial::NoCopy => write!(f, "no copy"),
            Denial::Collected(horizon) => write!(f, "collected below {horizon}"),
        }
    }
}
