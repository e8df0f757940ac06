//! Names of regions, sites and transactions.

use crate::hlc::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A region (a datacenter): its index in the [`Topology`](crate::Topology).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegionId(pub u16);

/// A site: one server process of a region. It holds the region's replica of shard `shard`, and is a gateway too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SiteId {
    /// The region that the site stands in.
    pub region: RegionId,
    /// The shard whose replica it holds; also its index in the region.
    pub shard: u16,
}

impl SiteId {
    /// The site that holds the replica of `shard` in region `region`.
    pub const fn new(region: u16, shard: u16) -> SiteId {
        SiteId { region: RegionId(region), shard }
    }
}

/// A transaction: the gateway that runs it and the timestamp it began at, which that gateway issues only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TxnId {
    /// When it began, by its gateway's hybrid clock.
    pub began: Timestamp,
    /// The site that its client is connected to.
    pub gateway: SiteId,
}

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl fmt::Display for SiteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.region, self.shard)
    }
}

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.began, self.gateway)
    }
}
