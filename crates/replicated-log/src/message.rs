//! What is said between sites. Clients ask and are told as by every protocol of [interactive transactions](rhumb_commit::interactive).

use crate::command::{Command, Writes};
use crate::group::{GroupNote, GroupPromise};
use crate::state::Marks;
use bytes::Bytes;
use rhumb_core::actor::Space;
use rhumb_core::{Ballot, Key, KeyRange, Row, SiteId, Timestamp, TxnId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The locks of a transaction at a leader, for as long as it holds them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// In which ballot the leader leads.
    pub ballot: Ballot,
    /// Told apart by this from others of the same transaction.
    pub instance: u64,
}

/// Which rows are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Query {
    /// These.
    Keys(Vec<Key>),
    /// Those of a range.
    Range {
        /// The range.
        range: KeyRange,
        /// How many of them at the most.
        limit: u32,
        /// From its end.
        reverse: bool,
    },
}

/// Why a leader does not do what a gateway asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The transaction has lost its locks: to an older one, or along with their leader, or because its gateway was silent.
    LocksLost,
    /// An older transaction is in the way of one that commits.
    OlderInTheWay,
    /// What it depends on has changed.
    Changed,
    /// It began so long ago that it may have ended.
    TooOld,
    /// The group has not prepared it in time.
    TooLate,
    /// A table is full.
    Busy,
    /// It has read more than can be kept locked.
    TooLarge,
    /// Versions of that time are not kept here.
    VersionsGone,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// It committed.
    Committed(Timestamp),
    /// It did not, and never will.
    Aborted(Option<Refusal>),
    /// It ended, and nobody knows how any more.
    Forgotten,
}

/// How far a state is transferred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cursor {
    /// From this record of the tables on.
    Records(u64),
    /// From this row on.
    Rows(Key),
}

/// A message that promises nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // the variants are documented; their fields are named after the types above
pub enum Note {
    /// Between the replicas of a shard.
    Group(GroupNote<Command>),
    /// Gateway to leader: lock and read these.
    Read { txn: TxnId, number: u64, session: Option<Session>, query: Query },
    /// Gateway to leader: read these as of `at`; if `strict`, say so if there is anything above.
    Snapshot { txn: TxnId, number: u64, at: Timestamp, query: Query, strict: bool },
    /// Leader: these; `more` if a bound cut them off. Of a strict snapshot nothing but that there is a version at `above`.
    Rows { txn: TxnId, number: u64, session: Option<Session>, rows: Vec<Row>, more: bool, above: Timestamp },
    /// Leader: no.
    Refused { txn: TxnId, number: u64, why: Refusal },
    /// Leader: an older transaction took its locks over.
    Wounded { txn: TxnId },
    /// Gateway to leaders: it is still open.
    Touch { txn: TxnId },
    /// Gateway to leaders: it was given up before anybody was asked to prepare it.
    Release { txn: TxnId },
    /// Gateway to leaders: prepare this; the first of the groups decides.
    Prepare { txn: TxnId, shards: Vec<u16>, session: Option<Session>, expect: Vec<(Key, Timestamp)>, writes: Writes },
    /// Leader to the leader of the first group: a majority has it prepared here.
    Prepared { txn: TxnId, at: Timestamp, shards: Vec<u16> },
    /// Leader to the leader of the first group: it is not prepared here, and cannot be.
    Vetoed { txn: TxnId, shards: Vec<u16>, why: Refusal },
    /// Leader of the first group, to the gateway: this is the outcome.
    Outcome { txn: TxnId, fate: Fate },
    /// Leader of the first group, to the leaders of the others: it was decided so.
    Decided { txn: TxnId, committed: Option<Timestamp> },
    /// Leader to the leader of the first group: a majority has the outcome here.
    Finished { txn: TxnId },
    /// Replica: of this transaction ask that one, if any; I do not lead.
    Elsewhere { txn: TxnId, leader: Option<SiteId> },
    /// To a site that can reach both: pass this on.
    Relay { from: SiteId, to: SiteId, note: Box<Note> },
    /// To whoever sends by others: this comes straight, if it comes at all.
    Straight,
    /// Replica to leader: the next page of your state; the first one if there is no transfer.
    Fetch { transfer: u64, cursor: Cursor },
    /// Leader: a page of its state.
    Page { transfer: u64, cursor: Cursor, marks: Marks, records: Vec<(Space, Bytes, Bytes)>, rows: Vec<Row>, next: Option<Cursor> },
}

/// A message that promises something durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Promise {
    /// Between the replicas of a shard.
    Group(GroupPromise),
}

impl Note {
    /// The transaction that it is about, if it is for a leader.
    pub fn for_leader(&self) -> Option<TxnId> {
        match self {
            Note::Read { txn, .. }
            | Note::Snapshot { txn, .. }
            | Note::Touch { txn }
            | Note::Release { txn }
            | Note::Prepare { txn, .. }
            | Note::Prepared { txn, .. }
            | Note::Vetoed { txn, .. }
            | Note::Decided { txn, .. }
            | Note::Finished { txn } => Some(*txn),
            Note::Group(_)
            | Note::Rows { .. }
            | Note::Refused { .. }
            | Note::Wounded { .. }
            | Note::Outcome { .. }
            | Note::Elsewhere { .. }
            | Note::Relay { .. }
            | Note::Straight
            | Note::Fetch { .. }
            | Note::Page { .. } => None,
        }
    }

    /// True if only a leader of its group sends it.
    pub fn is_of_leader(&self) -> bool {
        match self {
            Note::Rows { session, .. } => session.is_some(),
            Note::Refused { .. }
            | Note::Wounded { .. }
            | Note::Prepared { .. }
            | Note::Vetoed { .. }
            | Note::Outcome { .. }
            | Note::Decided { .. }
            | Note::Finished { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Query::Keys(keys) => keys.iter().try_for_each(|key| write!(f, " {key}")),
            Query::Range { range, limit, reverse } => write!(f, " {range} limit {limit}{}", if *reverse { " reverse" } else { "" }),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Group(note) => note.fmt(f),
            Note::Read { txn, query, .. } => write!(f, "Read {txn}{query}"),
            Note::Snapshot { txn, at, query, strict, .. } => {
                write!(f, "Snapshot {txn} at {at}{}{query}", if *strict { " strict" } else { "" })
            }
            Note::Rows { txn, rows, above, .. } => {
                write!(f, "Rows {txn}")?;
                rows.iter().take(8).try_for_each(|row| write!(f, " {}@{}", row.key, row.version))?;
                if *above > Timestamp::ZERO { write!(f, " above {above}") } else { Ok(()) }
            }
            Note::Refused { txn, why, .. } => write!(f, "Refused {txn} {why:?}"),
            Note::Wounded { txn } => write!(f, "Wounded {txn}"),
            Note::Touch { txn } => write!(f, "Touch {txn}"),
            Note::Release { txn } => write!(f, "Release {txn}"),
            Note::Prepare { txn, shards, writes, .. } => write!(f, "Prepare {txn} shards {shards:?} {} writes", writes.len()),
            Note::Prepared { txn, at, .. } => write!(f, "Prepared {txn} at {at}"),
            Note::Vetoed { txn, why, .. } => write!(f, "Vetoed {txn} {why:?}"),
            Note::Outcome { txn, fate } => write!(f, "Outcome {txn} {fate:?}"),
            Note::Finished { txn } => write!(f, "Finished {txn}"),
            Note::Decided { txn, committed: Some(at) } => write!(f, "Decided {txn} committed at {at}"),
            Note::Decided { txn, committed: None } => write!(f, "Decided {txn} aborted"),
            Note::Elsewhere { txn, leader: Some(leader) } => write!(f, "Elsewhere {txn}, {leader} leads"),
            Note::Elsewhere { txn, leader: None } => write!(f, "Elsewhere {txn}"),
            Note::Straight => f.write_str("Straight"),
            Note::Relay { from, to, note } => write!(f, "Relay {from} → {to}: {note}"),
            Note::Fetch { transfer, cursor } => write!(f, "Fetch {transfer} {cursor:?}"),
            Note::Page { transfer, records, rows, .. } => write!(f, "Page {transfer} {} records {} rows", records.len(), rows.len()),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Group(promise) => promise.fmt(f),
        }
    }
}
