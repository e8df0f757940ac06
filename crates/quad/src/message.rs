//! What sites say to one another, each message with its sender's epoch ([`Stamped`](super::Stamped)).

use super::configuration::{Carried, Configuration, Epoch, Goal};
use super::records::CommitRecord;
use rhumb_core::{Ballot, Key, KeyRange, Row, SiteId, Time, Timestamp, TxnId, Value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is [agreed on](rhumb_core::Effects::agree) of a transaction that prepares: the timestamp of its commit once that is settled, or that
/// it aborted.
pub const TRANSACTION: &str = "transaction";

/// Where a page of differences begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cursor {
    /// At the beginning.
    Start,
    /// After this difference.
    Difference(Vec<u8>),
    /// After this row, where all rows are gone through.
    Row(Key),
    /// Once all differences are told: after this commit that is not settled, or at the first.
    Commit(Option<TxnId>),
}

/// A row that one site may lack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Its key.
    pub key: Key,
    /// Its newest version at the source.
    pub version: Timestamp,
    /// The epoch in which it was written; zero where all rows are gone through.
    pub epoch: Epoch,
}

/// A puller's question: what was written in these epochs?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pull {
    /// Names the question.
    pub number: u64,
    /// From this epoch on.
    pub since: Epoch,
    /// Before this one.
    pub before: Epoch,
    /// Where the page begins.
    pub after: Cursor,
}

/// A source's answer to that, a page at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differences {
    /// Names the question.
    pub number: u64,
    /// What was written.
    pub entries: Vec<Difference>,
    /// Where the next page begins; none: this is the last.
    pub next: Option<Cursor>,
    /// The source does not know any more what was written in those epochs, and goes through all rows.
    pub whole: bool,
}

/// What a replica answers a read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// Whose read.
    pub txn: TxnId,
    /// Which of its reads.
    pub number: u32,
    /// The session in which the locks are held.
    pub session: Timestamp,
    /// The newest versions there, deletions included.
    pub rows: Vec<Row>,
    /// A limit, or their size, cut them off.
    pub more: bool,
}

/// What a site measured in a period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Transactions of its own clients that were in progress at a time, on average, over its capacity, in millionths.
    pub load_ppm: u64,
    /// How long what arrived there had to wait, on average, microseconds.
    pub latency_micros: u64,
    /// And at the least.
    pub queue_micros: u64,
    /// Its own clients' that only read.
    pub reads: u64,
    /// Its own clients' that wrote.
    pub writes: u64,
    /// Rows there, deleted ones included.
    pub rows: u64,
    /// Rows written there since the epoch began, some of them twice.
    pub written: u64,
    /// True if it holds all that was committed before its epoch.
    pub caught_up: bool,
    /// True if the configuration changed meanwhile: what was in progress waited for that, and tells nothing of the load.
    pub changing: bool,
    /// The shortest round trip to each site, microseconds.
    pub rtt_micros: BTreeMap<SiteId, u64>,
}

/// What a sealed site knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What it has accepted of the next configuration, and in which ballot.
    pub accepted: Option<(Ballot, Box<Configuration>)>,
    /// It holds all that was committed before this epoch.
    pub holds: Epoch,
    /// Above all timestamps that it has seen.
    pub clock: Timestamp,
    /// Commits that stand here and are not settled.
    pub unsettled: Vec<Carried>,
}

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
    /// Is the receiver up? What the sender's clock showed when it asked.
    Ping { sent: Time },
    /// To a ping: it is, and hears the other, and these.
    Pong { sent: Time, hears: Vec<SiteId> },
    /// To all members: what the sender measured in a period.
    Measured { measured: Measured },
    /// Of a site that is no member: it asks to become one.
    Join,
    /// Gateway to its read quorum: lock this shared, and tell what it holds.
    Read { txn: TxnId, number: u32, query: Query },
    /// Replica: locked. This is there.
    Rows(Rows),
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
    /// Replica that is prepared to the gateway: what came of it? `committed` if the commit stands here, and may not be shown yet.
    Inquire { txn: TxnId, committed: bool },
    /// Gateway, to an inquiry: the commit stands at the whole write quorum, and may be shown.
    Settled { txn: TxnId },
    /// The receiver seems to be in a later epoch: which configuration is that?
    Behind,
    /// This was decided.
    Decided { configuration: Box<Configuration> },
    /// Mover to all members: stop serving this epoch, take part in no lower ballot, say what you know.
    Seal { ballot: Ballot, goal: Goal },
    /// Acceptor to a mover: there is a higher ballot.
    Outbid { ballot: Ballot },
    /// Mover to each site that is to hold all commits of this epoch: copy them from these sealed sites, and older ones from `anchor`.
    Reconcile { ballot: Ballot, anchor: SiteId, sources: BTreeSet<SiteId> },
    /// Site that reconciles to the mover: this many pages have been copied so far. Mover to all members: the attempt advances.
    Advances { ballot: Ballot, pages: u64 },
    /// To a source: what was written?
    Pull(Pull),
    /// To a source: these rows.
    Fetch { number: u64, keys: Vec<Key> },
    /// Mover to all members: accept this as the next configuration.
    Accept { ballot: Ballot, configuration: Box<Configuration> },
}

/// A message that promises something durable. What a source tells a puller is one: the puller claims to hold the past on the strength of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Promise {
    /// Replica, to the first round: locks and writes are on disk. `clock` is above all that was committed here in conflict.
    Prepared { txn: TxnId, clock: Timestamp },
    /// Gateway, second round: all `participants` are prepared, and the decision is on disk.
    Commit { txn: TxnId, at: Timestamp, participants: BTreeSet<SiteId> },
    /// Replica, to the second round, to the gateway and all who are prepared: the commit is on disk.
    Committed { txn: TxnId },
    /// To the mover: this site has stopped serving the epoch. With what it knows.
    Sealed { ballot: Ballot, report: Report },
    /// To the mover: everything that it named is copied; this many rows were missing here.
    Reconciled { ballot: Ballot, copied: u64 },
    /// Acceptor to the mover: accepted.
    Accepted { ballot: Ballot },
    /// Source, to a pull: this.
    Differences(Differences),
    /// Source, to a pull: these commits stand here and are not settled.
    Commits { number: u64, commits: Vec<CommitRecord>, next: Option<Cursor> },
    /// Source, to a fetch: here they are, or the first of them.
    Copies { number: u64, rows: Vec<Row> },
}

/// How many of the first things have no more than so many bytes in sum; one at least, if there is one.
pub(crate) fn fitting(bytes: impl Iterator<Item = usize>, bytes_max: usize) -> usize {
    let mut sum = 0;
    let fit = bytes.take_while(|bytes| {
        sum += bytes;
        sum <= bytes_max
    });
    fit.count().max(1)
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
            Note::Ping { .. } => write!(f, "ping"),
            Note::Pong { .. } => write!(f, "pong"),
            Note::Measured { measured } => write!(f, "measured: load {:.1} %, {} rows", measured.load_ppm as f64 / 10_000.0, measured.rows),
            Note::Join => write!(f, "join"),
            Note::Read { txn, number, query } => write!(f, "read {txn} {number} {query}"),
            Note::Rows(Rows { txn, number, rows, .. }) => write!(f, "rows {txn} {number}: {}", rows.len()),
            Note::Confirm { txn, .. } => write!(f, "confirm {txn}"),
            Note::Confirmed { txn } => write!(f, "confirmed {txn}"),
            Note::Prepare { txn, writes, .. } => write!(f, "prepare {txn}: {} writes", writes.len()),
            Note::Refused { txn, .. } => write!(f, "refused {txn}"),
            Note::Abort { txn } => write!(f, "abort {txn}"),
            Note::Inquire { txn, committed: false } => write!(f, "inquire {txn}"),
            Note::Inquire { txn, committed: true } => write!(f, "inquire {txn}, committed"),
            Note::Settled { txn } => write!(f, "settled {txn}"),
            Note::Behind => write!(f, "behind"),
            Note::Decided { configuration } => write!(f, "decided {configuration}"),
            Note::Seal { ballot, .. } => write!(f, "seal {ballot}"),
            Note::Outbid { ballot } => write!(f, "outbid by {ballot}"),
            Note::Reconcile { ballot, anchor, sources } => write!(f, "reconcile {ballot} with {}, from {anchor}", sources.len()),
            Note::Advances { ballot, pages } => write!(f, "advances {ballot}: {pages} pages"),
            Note::Pull(Pull { number, since, before, .. }) => write!(f, "pull {number}: {since} to before {before}"),
            Note::Fetch { number, keys } => write!(f, "fetch {number}: {}", keys.len()),
            Note::Accept { ballot, configuration } => write!(f, "accept {ballot}: {configuration}"),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Prepared { txn, clock } => write!(f, "prepared {txn} above {clock}"),
            Promise::Commit { txn, at, .. } => write!(f, "commit {txn} at {at}"),
            Promise::Committed { txn } => write!(f, "committed {txn}"),
            Promise::Sealed { ballot, report } => {
                write!(f, "sealed {ballot}: holds {}, {} unsettled", report.holds, report.unsettled.len())?;
                report.accepted.as_ref().map_or(Ok(()), |(ballot, accepted)| write!(f, ", accepted {ballot}: {accepted}"))
            }
            Promise::Reconciled { ballot, copied } => write!(f, "reconciled {ballot}: {copied} copied"),
            Promise::Accepted { ballot } => write!(f, "accepted {ballot}"),
            Promise::Differences(Differences { number, entries, next, .. }) => {
                write!(f, "differences {number}: {}{}", entries.len(), if next.is_some() { " and more" } else { "" })
            }
            Promise::Commits { number, commits, next } => {
                write!(f, "commits {number}: {}{}", commits.len(), if next.is_some() { " and more" } else { "" })
            }
            Promise::Copies { number, rows } => write!(f, "copies {number}: {}", rows.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn copies_are_cut_where_their_bytes_end_and_a_large_row_goes_alone() {
        let fitting = |bytes: &[usize], bytes_max| super::fitting(bytes.iter().copied(), bytes_max);
        assert_eq!(fitting(&[10, 10, 10], 20), 2);
        assert_eq!(fitting(&[10, 10, 10], 30), 3);
        assert_eq!(fitting(&[100, 2], 20), 1);
    }
}
