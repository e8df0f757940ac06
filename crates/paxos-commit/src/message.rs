//! What is said between sites. Clients ask and are told as by every protocol of [one-shot transactions](rhumb_commit::one_shot).

use rhumb_commit::one_shot::execution::Writes;
use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_commit::votes::Vote;
use rhumb_core::{Key, KeyRange, RegionId, Row, SiteId, Timestamp, TxnId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What regions vote on: an attempt's reads and writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The timestamp of its versions.
    pub at: Timestamp,
    /// The keys that it touches: the version read, and whether it may write there.
    pub keys: BTreeMap<Key, (Timestamp, bool)>,
    /// The ranges that it read: the version of every row there, deletions among them.
    pub ranges: Vec<(KeyRange, BTreeMap<Key, Timestamp>)>,
    /// What it writes.
    pub writes: Writes,
}

/// A message that promises nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // the variants are documented; their fields are named after the types above
pub enum Note {
    /// Coordinator to all replicas: what are the rows of this transaction?
    Execute { txn: TxnId, transaction: Transaction },
    /// Replica: these; deletions among those of ranges, `more` if a range has too many. Its timestamp must lie above `above`.
    Executed { txn: TxnId, rows: Vec<Row>, ranges: Vec<Vec<Row>>, more: bool, above: Timestamp },
    /// Replica: forget what I said, an older transaction took the locks over; I shall say it again.
    Wounded { txn: TxnId },
    /// Coordinator: given up before anybody was asked for a vote.
    Release { txn: TxnId },
    /// Coordinator to all replicas: vote on this.
    Prepare { txn: TxnId, proposal: Proposal },
    /// Coordinator to all replicas: this is the outcome; if it committed, with what it wrote.
    Decided { txn: TxnId, committed: Option<(Timestamp, Writes)> },
    /// Replica to all others: which is your vote? `doubter` has voted yes and hears nothing: the sender itself, or one that has asked it.
    Inquire { txn: TxnId, doubter: SiteId },
    /// Replica to one in doubt: this is the vote of another region, to which the link may be cut.
    Passed { txn: TxnId, region: RegionId, vote: Vote },
}

/// A message that promises something durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Promise {
    /// Replica: this is my vote, for ever.
    Voted { txn: TxnId, vote: Vote },
    /// The same, to be passed on to one in doubt.
    Pass { txn: TxnId, vote: Vote, doubter: SiteId },
}

impl Proposal {
    /// What it reads and writes.
    pub fn footprint(&self) -> Footprint {
        Footprint {
            keys: self.keys.iter().map(|(key, (_, writes))| (key.clone(), *writes)).collect(),
            ranges: self.ranges.iter().map(|(range, _)| range.clone()).collect(),
        }
    }
}

impl fmt::Display for Proposal {
    /// `12.000345 a@3.000000 wb@0.000000 k..l: 2 rows`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)?;
        self.keys.iter().try_for_each(|(key, (version, writes))| write!(f, " {}{key}@{version}", if *writes { "w" } else { "" }))?;
        self.ranges.iter().try_for_each(|(range, rows)| write!(f, " {range}: {} rows", rows.len()))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Execute { txn, transaction } => write!(f, "Execute {txn} {transaction}"),
            Note::Executed { txn, rows, ranges, .. } => {
                write!(f, "Executed {txn}")?;
                rows.iter().try_for_each(|row| write!(f, " {}@{}", row.key, row.version))?;
                ranges.iter().try_for_each(|rows| write!(f, " {} rows", rows.len()))
            }
            Note::Wounded { txn } => write!(f, "Wounded {txn}"),
            Note::Release { txn } => write!(f, "Release {txn}"),
            Note::Prepare { txn, proposal } => write!(f, "Prepare {txn} at {proposal}"),
            Note::Decided { txn, committed: Some((at, _)) } => write!(f, "Decided {txn} committed at {at}"),
            Note::Decided { txn, committed: None } => write!(f, "Decided {txn} aborted"),
            Note::Inquire { txn, doubter } => write!(f, "Inquire {txn} for {doubter}"),
            Note::Passed { txn, region, vote } => write!(f, "Passed {txn} {region} {vote}"),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Voted { txn, vote } => write!(f, "Voted {txn} {vote}"),
            Promise::Pass { txn, vote, doubter } => write!(f, "Pass {txn} {vote} to {doubter}"),
        }
    }
}
