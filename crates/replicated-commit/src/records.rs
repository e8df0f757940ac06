//! What a site keeps on disk besides rows: its votes, what it is prepared for, its log of commits, and a few numbers.
//!
//! | space | key | holds |
//! |---|---|---|
//! | [`VOTES`] | attempt | [`VoteRecord`]: this region's vote, the outcome once known, and its part in a resolution |
//! | [`PREPARED`] | attempt | [`PreparedRecord`]: the locks and writes of a prepared attempt; none at a site alone |
//! | [`CARRIED`] | attempt | [`PreparedRecord`]: the same of an attempt that other replicas are in doubt about |
//! | [`LOG`] | sequence number, big-endian | [`LogRecord`]: a commit applied by this site's own vote or decision |
//! | [`PLACEMENT`] | empty | [`PlacementRecord`]: the placement that this site has adopted |
//! | [`NUMBERS`] | a [`Number`] | bound of the clock, floor of forgetting, length of the log, a cursor per peer |
//!
//! Records are encoded with postcard; the version of the data folder covers their format.

pub use super::message::PreparedRecord;
use super::message::{Attempt, Meta};
use crate::resolution::Acceptor;
use rhumb_commit::placement::{Placement, Regions};
use rhumb_commit::votes::{Decision, Vote};
use rhumb_core::actor::Space;
use rhumb_core::{Batch, Key, RegionId, Timestamp};
use serde::{Deserialize, Serialize};

/// Votes of this site as coordinator.
pub const VOTES: Space = Space(1);
/// Prepared attempts of this site as cohort.
pub const PREPARED: Space = Space(2);
/// Commits of this shard, in the order in which this site applied them.
pub const LOG: Space = Space(3);
/// Attempts that others are prepared for and in doubt about, whose locks this site keeps along with them.
pub const CARRIED: Space = Space(6);
/// Single numbers.
pub const NUMBERS: Space = Space(4);
/// The placement.
pub const PLACEMENT: Space = Space(5);

/// What this region has on record of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoteRecord {
    /// On what.
    pub meta: Meta,
    /// The vote, if the region has cast one; once final, never changed.
    pub vote: Option<Vote>,
    /// The outcome, once it is known and applied by this site's own cohort.
    pub decision: Option<Decision>,
    /// What it has promised and accepted in its resolution.
    pub acceptor: Acceptor,
}

/// A commit in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    /// Which.
    pub attempt: Attempt,
    /// Its commit timestamp.
    pub at: Timestamp,
    /// Its floor.
    pub floor: Timestamp,
    /// The keys that it wrote in this shard.
    pub keys: Vec<Key>,
    /// What it is, if it has parts in other shards, too.
    pub meta: Option<Meta>,
}

/// The placement that a site has adopted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementRecord {
    /// The placement.
    pub placement: Placement,
    /// The last epoch of which the site knows every commit of the epochs before.
    pub settled: u64,
    /// The site holds all rows as of then.
    pub copied: bool,
    /// The logs that it may take over from wherever they begin.
    pub enter: Regions,
    /// The log of this site has all that it voted for in this epoch and later ones.
    pub since: u64,
}

/// A number kept on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Number {
    /// No timestamp above it was issued, and nothing was read above it, by any incarnation of this site.
    ClockBound,
    /// Attempts of transactions that began at or below it and have no record are forgotten.
    Forgotten,
    /// The sequence number of the last log record.
    LogEnd,
    /// Below it the history of rows may have holes.
    HistoryFloor,
    /// The log holds nothing up to this sequence number.
    Truncated,
    /// Deletions at or below it may be gone; nothing at or below it is taken over any more.
    Collected,
    /// How far this site has taken over the log of its peer in a region.
    Cursor(RegionId),
    /// No commit applied here, nor its floor, lies above it.
    Highest,
}

impl Number {
    /// Adds to `batch` that this number is now `value`.
    pub fn put(self, batch: &mut Batch, value: u64) {
        batch.put_record(NUMBERS, self.key(), value.to_be_bytes().to_vec());
    }

    fn key(self) -> Vec<u8> {
        match self {
            Number::ClockBound => vec![1],
            Number::Forgotten => vec![2],
            Number::LogEnd => vec![3],
            Number::HistoryFloor => vec![4],
            Number::Truncated => vec![6],
            Number::Collected => vec![7],
            Number::Highest => vec![8],
            Number::Cursor(region) => [&[5][..], &region.0.to_be_bytes()].concat(),
        }
    }

    /// The number and its value in a record of [`NUMBERS`].
    pub fn decode(key: &[u8], bytes: &[u8]) -> Option<(Number, u64)> {
        let number = match key {
            [1] => Number::ClockBound,
            [2] => Number::Forgotten,
            [3] => Number::LogEnd,
            [4] => Number::HistoryFloor,
            [6] => Number::Truncated,
            [7] => Number::Collected,
            [8] => Number::Highest,
            [5, high, low] => Number::Cursor(RegionId(u16::from_be_bytes([*high, *low]))),
            _ => return None,
        };
        Some((number, u64::from_be_bytes(bytes.try_into().ok()?)))
    }
}

/// The key of an attempt's records: ordered by when it was made.
pub fn attempt_key(attempt: &Attempt) -> Vec<u8> {
    [&attempt.made.bits().to_be_bytes()[..], &attempt.txn.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::{SiteId, TxnId};

    #[test]
    fn attempt_keys_sort_by_when_the_attempt_was_made() {
        let attempt = |began, region, made| Attempt {
            txn: TxnId { began: Timestamp::from_bits(began), gateway: SiteId::new(region, 1) },
            made: Timestamp::from_bits(made),
        };
        assert!(attempt_key(&attempt(9, 9, 300)) < attempt_key(&attempt(1, 0, 301)));
        assert_ne!(attempt_key(&attempt(9, 9, 300)), attempt_key(&attempt(9, 8, 300)));
    }

    #[test]
    fn numbers_round_trip() {
        use Number::{ClockBound, Collected, Cursor, Forgotten, Highest, HistoryFloor, LogEnd, Truncated};
        for number in [ClockBound, Forgotten, LogEnd, HistoryFloor, Truncated, Collected, Highest, Cursor(RegionId(300))] {
            let mut batch = Batch::new();
            number.put(&mut batch, 77);
            let [rhumb_core::actor::Op::PutRecord { key, bytes, .. }] = &batch.ops[..] else { panic!("one record") };
            assert_eq!(Number::decode(key, bytes), Some((number, 77)));
        }
        assert_eq!(Number::decode(&[9], &[0; 8]), None);
        assert_eq!(Number::decode(&[1], &[0; 7]), None);
    }
}
