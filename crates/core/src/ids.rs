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

    /// The site as bytes that sort as sites do.
    pub const fn to_be_bytes(self) -> [u8; 4] {
        ((self.region.0 as u32) << 16 | self.shard as u32).to_be_bytes()
    }

    /// The site in such bytes.
    pub const fn from_be_bytes(bytes: [u8; 4]) -> SiteId {
        let [high, low, shard @ ..] = bytes;
        SiteId::new(u16::from_be_bytes([high, low]), u16::from_be_bytes(shard))
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

impl TxnId {
    /// The transaction as bytes that sort as transactions do.
    pub fn to_be_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.began.bits().to_be_bytes());
        bytes[8..].copy_from_slice(&self.gateway.to_be_bytes());
        bytes
    }

    /// The transaction in such bytes.
    pub fn from_be_bytes(bytes: [u8; 12]) -> TxnId {
        let (began, gateway) = bytes.split_first_chunk().expect("twelve are more than eight");
        let gateway = SiteId::from_be_bytes(gateway.try_into().expect("four are left"));
        TxnId { began: Timestamp::from_bits(u64::from_be_bytes(*began)), gateway }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_sort_as_what_they_stand_for() {
        let txn = |began, region, shard| TxnId { began: Timestamp::from_bits(began), gateway: SiteId::new(region, shard) };
        let sorted = [txn(1, 0, 9), txn(2, 0, 0), txn(2, 0, 300), txn(2, 1, 0), txn(2, 256, 0), txn(256, 0, 0)];
        assert!(sorted.is_sorted() && sorted.map(TxnId::to_be_bytes).is_sorted());
        assert_eq!(sorted.map(|txn| TxnId::from_be_bytes(txn.to_be_bytes())), sorted);
    }
}
