//! What a site waits for: its timers, its disk.

use super::message::{Attempt, CopyId, CopyPage, How, Query, ReadId};
use super::records::LogRecord;
use rhumb_core::actor::Collect;
use rhumb_core::{Key, SiteId, Time, Timestamp, TxnId};
use std::collections::BTreeSet;

/// The timers of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Look after what is overdue, ping, pull.
    Tick,
    /// Ask again for locks that were denied.
    RetryRead(ReadRetry),
}

/// What a load or a persist is for.
#[derive(Clone, Debug)]
pub(super) enum Job {
    /// A page of records of an earlier incarnation.
    Recover,
    /// The newest rows for a prepare.
    Validate(Attempt),
    /// The rows of an attempt that is carried here.
    RowsOfCarried(Attempt),
    /// The rows of an attempt that others have forgotten.
    RowsOfForgotten(Attempt),
    /// What was read by an attempt that is to be committed by assumption.
    Examine(Attempt),
    /// Rows for a read.
    Read(ReadJob),
    /// Heads of the log for a peer.
    Log(PulledLog),
    /// Log records whose rows a peer fetches.
    FetchRecords { to: SiteId, seqs: BTreeSet<u64> },
    /// Rows of log records for a peer.
    FetchRows { to: SiteId, records: Vec<(u64, LogRecord)> },
    /// Rows for a peer that copies all.
    CopyRows { to: SiteId, copy: CopyId, from: Key, epoch: u64, collected: Timestamp },
    /// The rows that are here already where these were copied.
    CopiedRows(CopyPage),
    /// The bound of the clock is on disk.
    ClockBound(Timestamp),
    /// How far versions are about to be collected is on disk.
    Collect(Collect),
    /// All that this site was in doubt about up to there is over on disk, too.
    Closed(Timestamp),
}

/// Asks again for the locks that were denied to a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRetry {
    pub(super) read: ReadId,
}

/// A read on its way through a replica.
#[derive(Clone, Debug)]
pub(super) struct ReadJob {
    pub(super) from: SiteId,
    pub(super) read: ReadId,
    /// The epoch in which its gateway asked.
    pub(super) epoch: u64,
    pub(super) txn: TxnId,
    pub(super) query: Query,
    pub(super) how: How,
    pub(super) since: Time,
    /// The highest timestamp above the one asked for that was seen.
    pub(super) above: Timestamp,
    /// True once `above` is known and the rows asked for are those at the timestamp.
    pub(super) at_timestamp: bool,
    /// Where the newest versions of a range end that were looked at, if a limit cut them off.
    pub(super) upto: Option<Key>,
    /// Of how many of the keys the newest versions were looked at, once they were.
    pub(super) looked_at: Option<usize>,
    /// Up to where deletions were collected when the rows were last asked for.
    pub(super) collected: Timestamp,
}

/// A peer that pulls the log after `after`, and what this replica could promise then.
#[derive(Clone, Debug)]
pub(super) struct PulledLog {
    pub(super) to: SiteId,
    pub(super) after: u64,
    pub(super) closed: Closed,
}

/// Up to where a replica can promise to commit nothing more, and the epoch in which it was settled then, if it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    pub(super) upto: Timestamp,
    pub(super) in_epoch: Option<u64>,
}
