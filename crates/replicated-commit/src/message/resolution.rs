//! What survivors tell each other of attempts that nobody can decide by votes alone, and of placements that they leave.

use super::attempt::{Attempt, Meta, Part, PreparedRecord};
use crate::resolution::{Round, Testimony};
use rhumb_commit::placement::Regions;
use rhumb_core::{RegionId, Timestamp};
use serde::{Deserialize, Serialize};

/// A leader asks the survivors what they know of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inquiry {
    /// Which attempt.
    pub meta: Meta,
    /// The round that it leads.
    pub round: Round,
    /// The regions that are lost.
    pub without: Regions,
}

/// A region has promised a round, and this is what it knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Testified {
    /// Of which attempt.
    pub attempt: Attempt,
    /// Which region.
    pub region: RegionId,
    /// The round.
    pub round: Round,
    /// What it knows.
    pub testimony: Testimony,
    /// The highest timestamp that its site of the coordinators' shard has prepared or applied.
    pub high: Timestamp,
    /// What the attempt reads and writes in this shard, if the region is prepared for it.
    pub contents: Option<Part>,
}

/// An attempt that a replica is in doubt about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// Which, and what it reads and writes.
    pub record: PreparedRecord,
    /// It is not prepared for it itself: it keeps the locks for others that are.
    pub carried: bool,
}

/// A replica votes in no epoch before `epoch` any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// The epoch of the placement that it has adopted.
    pub epoch: u64,
    /// The epoch that it is settled in, zero as long as not all rows are here.
    pub settled: u64,
    /// It speaks for what it voted on in this epoch and later.
    pub since: u64,
    /// Its log up to here has what it voted for, but for what it is in doubt about.
    pub log_end: u64,
    /// Nothing above it was read here in the epochs before.
    pub read_upto: Timestamp,
    /// The attempts of the epochs before that it is in doubt about, those after `after`, in order.
    pub doubts: Vec<Doubt>,
    /// The attempt that was asked from.
    pub after: Option<Attempt>,
    /// There are more.
    pub more: bool,
}
