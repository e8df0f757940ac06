//! What clients and operators ask a site, and what they are told.

use rhumb_commit::interactive;
use rhumb_commit::placement::{Placement, Regions};
use rhumb_core::{RegionId, SiteId, Span, Table, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a site has measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Round trips to the sites of its shard in other regions, as far as known.
    pub rtts: Vec<(RegionId, Span)>,
    /// Commits that its clients asked for, in thousandths a second.
    pub commits_milli: u64,
    /// Reads and scans of transactions that were to commit, likewise.
    pub reads_milli: u64,
}

/// What clients and operators ask a site.
pub type Request = interactive::Request<Admin>;

/// What they are told.
pub type Answer = interactive::Answer<Status>;

/// What operators ask a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admin {
    /// Settle changes of the placement that are in doubt without these regions, which an operator is about to declare lost. Answered by
    /// [`interactive::Answer::Done`], before that has happened.
    Settle {
        /// Which regions.
        lost: Regions,
    },
    /// How is this site? Answered by its [`Status`].
    Status,
}

/// The state of a site, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// False while it recovers from its own disk.
    pub serving: bool,
    /// The placement that it has adopted.
    pub placement: Placement,
    /// True if it votes, promises and is read in that placement's epoch as far as its role goes: it knows all before, and its
    /// copy is whole.
    pub settled: bool,
    /// Transactions that its clients have open.
    pub open_transactions: usize,
    /// Attempts prepared here, outcome unknown.
    pub prepared: usize,
    /// Of these, those that wait for a vote that no reachable region can give.
    pub in_doubt: usize,
    /// Up to this timestamp every commit of the cluster is applied here.
    pub safe: Timestamp,
    /// The regions whose sites all answered lately.
    pub reachable: Vec<RegionId>,
    /// The measurements of every site, as far as this one has received them.
    pub measured: BTreeMap<SiteId, Measured>,
    /// Round trips to the sites of this site's shard, by region, where measured.
    pub rtts: Vec<(RegionId, rhumb_core::Span)>,
    /// How full its tables and queues are.
    pub tables: Vec<Table>,
}
