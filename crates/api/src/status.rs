//! `GET /status`: the state of a site, and of its cluster as it sees that.

use crate::quorums::QuorumRole;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// The state of a site: the answer to `GET /status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The name of the cluster.
    pub cluster: String,
    /// The name of the site, as `ireland/0`.
    pub site: String,
    /// Whether it serves clients.
    pub ready: bool,
    /// Why it does not; null if it does.
    #[schema(required)]
    pub reason: Option<String>,
    /// All regions, in the order of the cluster.
    pub regions: Vec<RegionStatus>,
    /// All other sites, in the order of the cluster.
    pub peers: Vec<PeerStatus>,
    /// Transactions under way; null while the site recovers, or if its actor does not answer.
    #[schema(required)]
    pub transactions: Option<TransactionStatus>,
    /// Quotas; null likewise.
    #[schema(required)]
    pub quotas: Option<QuotaStatus>,
    /// Epochs of Catenae; null likewise, and at a site that does not run it.
    #[schema(required)]
    pub epochs: Option<EpochStatus>,
    /// The part that the site has in the quorums of QuAD; null likewise. More is at `/quorums`.
    #[schema(required)]
    pub quorums: Option<QuorumStatus>,
}

/// What a region holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RegionRole {
    /// A copy, and it votes.
    Active,
    /// A copy, a little behind.
    Passive,
    /// Nothing: its clients read elsewhere.
    None,
}

/// A region as the site sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RegionStatus {
    /// Its name.
    pub name: String,
    /// Whether it is the site's own.
    pub local: bool,
    /// How many sites it has.
    pub sites: u32,
    /// How many of them were heard lately, the site itself among them.
    pub reachable: u32,
    /// The measured round trip to its nearest site in milliseconds, 0 within the site's own region; null while not measured.
    #[schema(required)]
    pub rtt_ms: Option<f64>,
    /// The least time that a commit takes there, in milliseconds: the round trip to the nearest active regions that complete a majority;
    /// null while not known.
    #[schema(required)]
    pub floor_ms: Option<f64>,
    /// What it holds.
    pub role: RegionRole,
    /// The region whose copy its clients read; null if that is not laid down.
    #[schema(required)]
    pub reads_at: Option<String>,
    /// The region that runs the commits of its clients; null likewise.
    #[schema(required)]
    pub commits_at: Option<String>,
}

/// Another site as this one sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PeerStatus {
    /// Its name, as `ireland/0`.
    pub site: String,
    /// The address of its port for peers.
    pub address: String,
    /// Whether there is a connection to it.
    pub connected: bool,
    /// The round trip in milliseconds; null while not measured.
    #[schema(required)]
    pub rtt_ms: Option<f64>,
    /// Milliseconds since it was heard; null if it never was.
    #[schema(required)]
    pub heard_ms_ago: Option<u64>,
    /// How far its clock is ahead in milliseconds, negative if behind; null while not measured.
    #[schema(required)]
    pub clock_ahead_ms: Option<f64>,
    /// True if that is too far, so that messages are refused.
    pub clock_apart: bool,
}

/// Transactions under way at the site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TransactionStatus {
    /// Transactions that clients of this site have open.
    pub open: usize,
    /// Attempts to commit that are prepared here and hold locks, their outcome not known yet.
    pub prepared: usize,
    /// Attempts that have waited long for the vote of a region that does not answer.
    pub in_doubt: usize,
    /// Up to this timestamp every commit of the cluster is applied here, in microseconds since the Unix epoch; null while not known.
    #[schema(required)]
    pub safe_us: Option<u64>,
    /// How long ago that is, in milliseconds; null likewise.
    #[schema(required)]
    pub safe_lag_ms: Option<f64>,
    /// The regions whose sites all answered lately.
    pub reachable_regions: Vec<String>,
}

/// Quotas at the site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotaStatus {
    /// How many there are.
    pub quotas: usize,
    /// Requests that wait for tokens.
    pub waiting: usize,
    /// Quotas whose tokens are being redistributed.
    pub redistributing: usize,
    /// Sites declared lost.
    pub lost: usize,
    /// Quotas in which it is not settled yet what those have.
    pub unsettled: usize,
}

/// Epochs of Catenae at the site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EpochStatus {
    /// The last epoch that the coordinator of the site's region has sealed.
    pub sealed: u64,
    /// The last epoch that is settled.
    pub settled: u64,
    /// Epochs that are not.
    pub unsettled: usize,
    /// The regions that are passed over because they are silent.
    pub passed_over: Vec<String>,
}

/// The part that the site has in the quorums of QuAD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuorumStatus {
    /// The epoch that it is in.
    pub epoch: u64,
    /// Whether it is a core.
    pub role: QuorumRole,
    /// How many cores there are to be: a number, or `auto`.
    pub cores: String,
    /// It holds everything that was committed before the epoch.
    pub caught_up: bool,
    /// The configuration is being changed.
    pub sealed: bool,
    /// The requests that its clients had in progress in its last period, over its capacity; null if not known.
    #[schema(required)]
    pub load: Option<f64>,
    /// What brought the configuration about, for people.
    pub why: String,
}

impl fmt::Display for RegionRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RegionRole::Active => "active",
            RegionRole::Passive => "passive",
            RegionRole::None => "none",
        })
    }
}
