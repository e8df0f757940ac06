//! An attempt to commit: its name, what it does in each shard, and a region's vote on it.

use super::list;
use rhumb_commit::placement::{Placement, Regions};
use rhumb_commit::votes::{Refusal, Tally, Vote};
use rhumb_core::{Key, KeyRange, RegionId, Row, SiteId, Timestamp, TxnId, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// One attempt to commit a transaction. A gateway makes another only when the one before has certainly aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// The transaction.
    pub txn: TxnId,
    /// When its gateway made it; a later attempt of the same transaction has a later one.
    pub made: Timestamp,
}

impl Attempt {
    /// The last, in their order, of all attempts of transactions that began by `then`.
    pub fn last_begun(then: Timestamp) -> Attempt {
        let gateway = SiteId { region: RegionId(u16::MAX), shard: u16::MAX };
        Attempt { txn: TxnId { began: then, gateway }, made: Timestamp::MAX }
    }
}

/// Names a commit that one gateway hands over to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HandoffId {
    /// Whose transaction it is.
    pub gateway: SiteId,
    /// The incarnation of that gateway: its clock may show a timestamp that it has shown in another one.
    pub incarnation: Timestamp,
    /// When it was handed over; no two have the same time in one incarnation.
    pub made: Timestamp,
}

/// What every participant must know of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Which attempt.
    pub attempt: Attempt,
    /// The commit timestamp that it proposes.
    pub at: Timestamp,
    /// The epoch of the placement in which it was made.
    pub epoch: u64,
    /// The regions whose votes decide it: those that were active in that epoch.
    pub electorate: Regions,
    /// Those of them that it declares lost: they do not vote for it, and nobody waits for their votes.
    pub declares_lost: Regions,
    /// Its gateway waits to hear that a majority has applied it.
    pub two_rounds: bool,
    /// The shard whose site coordinates in each region.
    pub coordinator: u16,
    /// The shards that it touches, in order; the coordinator's is among them.
    pub participants: Vec<u16>,
}

impl Meta {
    /// The site that coordinates the attempt in `region`.
    pub fn coordinator_in(&self, region: RegionId) -> SiteId {
        SiteId { region, shard: self.coordinator }
    }

    /// The same, if it has parts in several shards.
    pub fn of_several_shards(&self) -> Option<Meta> {
        (self.participants.len() > 1).then(|| self.clone())
    }

    /// Adds to `tally` that the regions which the attempt itself declares lost do not vote for it.
    pub fn refuse_for_lost(&self, tally: &mut Tally) {
        self.declares_lost.iter().for_each(|region| tally.record_if_open(region, Vote::No(Refusal::StaleConfiguration)));
    }
}

impl Part {
    /// True if one of the two writes what the other reads or writes.
    pub fn conflicts(&self, other: &Part) -> bool {
        let written: BTreeSet<&Key> = self.writes.iter().map(|(key, _)| key).collect();
        self.has_read_from(other) || other.has_read_from(self) || other.writes.iter().any(|(key, _)| written.contains(key))
    }

    /// True if it reads what `other` writes.
    pub fn has_read_from(&self, other: &Part) -> bool {
        let read: BTreeSet<&Key> = self.reads.iter().map(|read| &read.key).collect();
        let within = |key: &Key| self.ranges.iter().any(|check| check.range.contains(key));
        other.writes.iter().any(|(key, _)| read.contains(key) || within(key))
    }

    /// The placement that it writes.
    pub fn placement(&self) -> Option<Placement> {
        let mut written = self.writes.iter().filter(|(key, _)| Placement::is_key(key));
        written.find_map(|(_, value)| value.as_ref().and_then(Placement::decode))
    }

    /// The regions that it declares lost.
    pub fn declares_lost(&self) -> Regions {
        self.placement().map_or(Regions::NONE, |placement| placement.declares_lost())
    }
}

/// How a row was when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The version; zero if there was none.
    pub version: Timestamp,
    /// It had a value: it was neither deleted nor absent.
    pub is_live: bool,
}

impl Seen {
    /// What `row` is.
    pub fn of(row: &Row) -> Seen {
        Seen { version: row.version, is_live: row.value.is_some() }
    }

    /// True if the row has changed since, at a replica that has `newest` of it and no deletion at or below `collected` any more.
    ///
    /// An older version, or none, is no change: the replica may lag. But it has all commits up to `collected`. If it has no trace of a row that
    /// was live by then, that was deleted.
    pub fn is_stale(&self, newest: Timestamp, collected: Timestamp) -> bool {
        newest > self.version || self.is_live && newest < self.version && self.version <= collected
    }
}

/// A row that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCheck {
    /// Its key.
    pub key: Key,
    /// How it was.
    pub seen: Seen,
}

/// A range that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeCheck {
    /// The range, cut to what was read of it.
    pub range: KeyRange,
    /// Every row found in it, deletions included, in key order.
    pub rows: Vec<ReadCheck>,
}

/// What an attempt does in one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Rows that were read.
    pub reads: Vec<ReadCheck>,
    /// Ranges that were read.
    pub ranges: Vec<RangeCheck>,
    /// Rows to write; `None` deletes.
    pub writes: Vec<(Key, Option<Value>)>,
}

/// A commit that one gateway asks another one to run, in the other's incarnation that began at `incarnation`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    /// Its name.
    pub id: HandoffId,
    /// The beginning of the other gateway's incarnation that is to run it.
    pub incarnation: Timestamp,
    /// What the transaction does, by shard.
    pub parts: Vec<(u16, Part)>,
    /// Its client waits until a majority has applied it.
    pub two_rounds: bool,
}

/// A region's vote on an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voted {
    /// On what.
    pub meta: Meta,
    /// Whose vote.
    pub region: RegionId,
    /// The vote.
    pub vote: Vote,
    /// The highest timestamp that its coordinator's site had prepared or applied when it said so.
    pub high: Timestamp,
}

impl Voted {
    /// The site that cast the vote for its region.
    pub fn coordinator(&self) -> SiteId {
        SiteId { region: self.region, shard: self.meta.coordinator }
    }
}

/// A prepared attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedRecord {
    /// Which.
    pub meta: Meta,
    /// Its locks and writes in this shard.
    pub part: Part,
}

/// What is [agreed on](rhumb_core::Effects::agree) of an attempt: its commit timestamp, or, once that is on disk, that it aborted.
pub const ATTEMPT: &str = "attempt";

/// Attempts are recorded under this topic that may count as committed because a lost region may have voted for them.
pub const ASSUMED: &str = "assumed";

/// What is recorded of an attempt that aborted.
pub const ABORTED: Option<Timestamp> = None;

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.txn, self.made)
    }
}

impl fmt::Display for HandoffId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.gateway, self.made)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r")?;
        list(f, self.reads.iter().map(|read| &read.key))?;
        if !self.ranges.is_empty() {
            write!(f, " s")?;
            list(f, self.ranges.iter().map(|range| &range.range))?;
        }
        write!(f, " w")?;
        list(f, self.writes.iter().map(|(key, _)| key))
    }
}
