//! What replicas have answered to a read, made into one answer, and what the transaction remembers of it.
//!
//! Source: section 3.2.1, the newest version of a majority.

use super::pending_read::{Asked, PendingRead, ScanRequest, ShardRead};
use super::{RangeEvidence, Txn};
use crate::config::{PAGE_BYTES_MAX, SNAPSHOT_MOVES_MAX, TXN_ROWS_MAX};
use crate::message::{How, Query, ReadCheck, Seen};
use rhumb_commit::transaction::TxnError;
use rhumb_core::{Key, KeyRange, Row, Time, Timestamp, work};
use std::collections::BTreeMap;

/// What a client is answered.
pub(super) struct Merged {
    pub(super) rows: Vec<Row>,
    /// Of a scan, the part of its range that the rows are of.
    pub(super) covered: Option<KeyRange>,
    /// The answer ends early.
    pub(super) more: bool,
}

impl Txn {
    /// Is the snapshot at `at` the right one? `Some(higher)`: read again at that timestamp.
    pub(super) fn check_snapshot(&mut self, at: Timestamp, pending: &PendingRead, now: Time) -> Result<Option<Timestamp>, TxnError> {
        if at != self.snapshot {
            return Ok(Some(self.snapshot)); // another read of the transaction has moved it
        }
        let (mut highest, mut floor) = (Timestamp::ZERO, Timestamp::ZERO);
        for (shard, part) in pending.shards.iter().chain(&pending.expected) {
            let above = part.replies.values().map(|reply| reply.above).max().unwrap_or(Timestamp::ZERO);
            let known = part.replies.values().map(|reply| reply.high).max().unwrap_or(Timestamp::ZERO);
            let limit = *self.horizon_of_known.entry(*shard).or_insert(known);
            // Whatever ended before this transaction began was shown in the first round: what the second one shows
            // above its timestamp is concurrent. In a later read it need not be, if commits above the snapshot were
            // known then; the newest version shown may hide one of them.
            if self.pinned && above > at && limit > at {
                return Err(TxnError::Conflict(
                    "a commit that may have ended before this transaction began lies above its snapshot".into(),
                ));
            }
            highest = highest.max(above);
            floor = part.replies.values().map(|reply| reply.floor).max().unwrap_or_default().max(floor);
        }
        if floor > at && (self.pinned || pending.moved >= SNAPSHOT_MOVES_MAX) {
            return Err(TxnError::Conflict("a commit among the rows read is newer than the snapshot of the transaction".into()));
        }
        let higher = if pending.moved == 0 && !self.pinned { highest.max(floor) } else { floor };
        self.pinned = higher <= at;
        Ok((higher > at).then(|| pending.moves_to(higher, now)))
    }

    /// Merges the replies, remembers them as evidence, and returns what the client asked for.
    pub(super) fn take_rows(&mut self, pending: &PendingRead) -> Result<Merged, TxnError> {
        let expect = match &pending.asked {
            Asked::Get { expect, .. } | Asked::Scan { expect, .. } => expect,
        };
        let mut by_key: BTreeMap<Key, Row> = BTreeMap::new();
        for part in pending.shards.values().chain(pending.expected.values()) {
            if let Query::Keys(_) = part.query {
                merge_keys(part, &mut by_key);
            }
        }
        if matches!(pending.how, How::At(_)) {
            // Other modes have expected versions validated with the votes; a stale read has today's schema anyway.
            for (key, version) in expect {
                match by_key.get(key) {
                    Some(row) if row.version == *version => {}
                    Some(_) => return Err(TxnError::Conflict(format!("what was expected at {key} has changed").into())),
                    None => return Err(too_much_expected()),
                }
            }
        }
        let validated = matches!(pending.how, How::Lock | How::Newest);
        if validated {
            self.remember_collected(pending);
        }
        match &pending.asked {
            Asked::Get { keys, .. } => {
                let rows: Vec<Row> = keys.iter().map_while(|key| by_key.get(key).cloned()).collect();
                if validated {
                    self.make_room(rows.iter().filter(|row| !self.rows.contains_key(&row.key)).count())?;
                    rows.iter().try_for_each(|row| self.remember_row(row))?;
                }
                let more = rows.len() < keys.len();
                if more && rows.is_empty() { Err(too_much_expected()) } else { Ok(Merged { rows, covered: None, more }) }
            }
            Asked::Scan { scan, .. } => {
                let (rows, covered, more, evidence) = merge_scan(scan, pending);
                if validated {
                    let found = evidence.iter().flat_map(|range| &range.rows);
                    found.into_iter().try_for_each(|found| self.compare(&found.key, found.seen.version))?;
                    self.make_room(evidence.iter().filter(|range| self.known(range).is_none()).map(|range| range.rows.len() + 1).sum())?;
                    evidence.into_iter().try_for_each(|range| self.remember_range(range))?;
                }
                Ok(Merged { rows, covered: Some(covered), more })
            }
        }
    }

    /// Remembers how far the replicas that were read from had collected deletions.
    fn remember_collected(&mut self, pending: &PendingRead) {
        for (shard, part) in pending.shards.iter().chain(&pending.expected) {
            let lowest = part.replies.values().map(|reply| reply.collected).min().unwrap_or_default();
            let known = self.collected.entry(*shard).or_insert(lowest);
            *known = lowest.min(*known);
        }
    }

    /// Holds a row against what this transaction has read before, by its key or in a range: nobody is shown two states of it.
    pub(super) fn compare(&self, key: &Key, version: Timestamp) -> Result<(), TxnError> {
        work::add(1 + self.ranges.len());
        let known = self.rows.get(key).map(|seen| seen.version).or_else(|| {
            let mut covering = self.ranges.iter().filter(|known| known.range.contains(key)).peekable();
            covering.peek()?;
            // A range has evidence of every shard, and the row is in that of its own.
            Some(covering.find_map(|known| known.version(key)).unwrap_or(Timestamp::ZERO))
        });
        match known {
            Some(known) if known != version => Err(TxnError::Conflict("a row changed between two reads of it".into())),
            _ => Ok(()),
        }
    }

    pub(super) fn remember_row(&mut self, row: &Row) -> Result<(), TxnError> {
        self.compare(&row.key, row.version)?;
        self.rows.insert(row.key.clone(), Seen::of(row));
        Ok(())
    }

    /// What the transaction has seen of just this range.
    fn known(&self, range: &RangeEvidence) -> Option<&RangeEvidence> {
        self.ranges.iter().find(|known| known.shard == range.shard && known.range == range.range)
    }

    pub(super) fn remember_range(&mut self, range: RangeEvidence) -> Result<(), TxnError> {
        work::add(range.rows.len() + 1 + self.ranges.len());
        match self.known(&range) {
            Some(known) if known.rows != range.rows => Err(TxnError::Conflict("a range changed between two reads of it".into())),
            Some(_) => Ok(()),
            None => {
                self.ranges.push(range);
                Ok(())
            }
        }
    }

    /// Makes room for the evidence of so many more rows. If there is none, none of them is to be remembered: the client is not shown them, and may
    /// go on without.
    fn make_room(&mut self, rows: usize) -> Result<(), TxnError> {
        if self.evidence + rows > TXN_ROWS_MAX {
            let advice = "read less, or read in a read-only transaction, which has no such limit";
            return Err(TxnError::TooLarge(
                format!("the transaction has read more than {TXN_ROWS_MAX} rows under validation; {advice}").into(),
            ));
        }
        self.evidence += rows;
        Ok(())
    }
}

pub(super) fn too_much_expected() -> TxnError {
    TxnError::TooLarge(format!("the definitions that the transaction depends on have more than {PAGE_BYTES_MAX} bytes").into())
}

/// Of each row that all replies show, the newest version among them.
pub(super) fn merge_keys(part: &ShardRead, into: &mut BTreeMap<Key, Row>) {
    let shown = part.replies.values().map(|reply| reply.rows.len()).min().unwrap_or(0);
    for row in part.replies.values().flat_map(|reply| &reply.rows[..shown]) {
        work::add(1);
        let merged = into.entry(row.key.clone()).or_insert_with(|| row.clone());
        if row.version > merged.version {
            *merged = row.clone();
        }
    }
}

/// The rows of a scan that every replica asked agrees to have shown: replies cut off by the limit are good only up to
/// their last row.
pub(super) fn merge_scan(scan: &ScanRequest, pending: &PendingRead) -> (Vec<Row>, KeyRange, bool, Vec<RangeEvidence>) {
    let cuts = pending.shards.values().flat_map(|part| part.replies.values().filter_map(|reply| reply.upto.clone()));
    let bound = if scan.reverse { cuts.max() } else { cuts.min() };
    let covered = match &bound {
        Some(bound) if scan.reverse => KeyRange::new(bound.clone(), scan.range.end.clone()),
        Some(bound) => KeyRange::new(scan.range.start.clone(), bound.successor()),
        None => scan.range.clone(),
    };
    let mut rows = Vec::new();
    let mut evidence = Vec::new();
    for (&shard, part) in &pending.shards {
        let mut newest: BTreeMap<&Key, &Row> = BTreeMap::new();
        for row in part.replies.values().flat_map(|reply| &reply.rows).filter(|row| covered.contains(&row.key)) {
            work::add(1);
            let known = newest.entry(&row.key).or_insert(row);
            if row.version > known.version {
                *known = row;
            }
        }
        let found = newest.values().map(|row| ReadCheck { key: row.key.clone(), seen: Seen::of(row) }).collect();
        evidence.push(RangeEvidence { shard, range: covered.clone(), rows: found });
        rows.extend(newest.into_values().filter(|row| row.value.is_some()).cloned());
    }
    rows.sort_unstable_by(|a, b| if scan.reverse { b.key.cmp(&a.key) } else { a.key.cmp(&b.key) });
    (rows, covered, bound.is_some(), evidence)
}
