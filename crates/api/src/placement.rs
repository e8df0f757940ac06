//! `/placement`: which regions vote, which hold a copy besides, and what one would plan another placement from.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A placement, by the names of regions: the answer to `POST /placement`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Placement {
    /// Its epoch.
    pub epoch: u64,
    /// The regions that hold a copy and vote.
    pub active: Vec<String>,
    /// The regions that hold a copy and do not vote.
    #[serde(default)]
    pub passive: Vec<String>,
    /// By region: where its clients read, and which region runs their commits. A region that is absent reads and commits as near as it can.
    #[serde(default)]
    pub coordinators: BTreeMap<String, Coordinators>,
    /// The regions that were declared lost and hold no copy. Nobody waits for their votes any more, which are taken to have been yes.
    /// Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

/// The body of `POST /placement`: the placement that is to come next. It refuses members of other names, unlike a [`Placement`], which is a
/// part of the answer to `GET`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacementChange {
    /// The epoch of the placement in force, for which the change was made.
    pub epoch: u64,
    /// The regions that are to hold a copy and vote.
    pub active: Vec<String>,
    /// The regions that are to hold a copy and not to vote.
    #[serde(default)]
    pub passive: Vec<String>,
    /// By region: where its clients are to read, and which region is to run their commits.
    #[serde(default)]
    pub coordinators: BTreeMap<String, Coordinators>,
    /// The regions that are to be declared lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

/// Where the clients of a region read and commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Coordinators {
    /// The region whose copy is read.
    pub read: String,
    /// The region that runs commits.
    pub commit: String,
}

/// The placement in force, and what was measured: the answer to `GET /placement`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlacementStatus {
    /// The placement in force.
    #[serde(flatten)]
    pub placement: Placement,
    /// False as long as the site that is asked still moves into it.
    pub settled: bool,
    /// All regions, in the order of the cluster.
    pub regions: Vec<RegionWorkload>,
    /// Round trips in milliseconds, a row and a column for each region in that order; null where not measured.
    pub rtt_ms: Vec<Vec<Option<f64>>>,
}

/// The workload of a region's clients. It is old if the region is not reachable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RegionWorkload {
    /// The name of the region.
    pub name: String,
    /// Whether all its sites answered the one that is asked lately.
    pub reachable: bool,
    /// Commits a second, of which a minute ago counts a third.
    pub commits_per_second: f64,
    /// Reads and scans a second of transactions that were to commit, likewise.
    pub reads_per_second: f64,
}
