//! The shape of a cluster: its regions, and the sites in each.
//!
//! Every region holds one replica of every shard, each at a site of its own: the site `(region, shard)`. A key belongs
//! to one shard, by hash, and so to one site per region.

use crate::ids::{RegionId, SiteId};
use crate::key::Key;

/// The shape of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    regions: Vec<String>,
    shards: u16,
}

impl Topology {
    /// A cluster of the named regions with `shards` sites in each.
    ///
    /// # Panics
    /// If there is no region or no shard.
    pub fn new(regions: Vec<String>, shards: u16) -> Topology {
        assert!(!regions.is_empty() && shards > 0, "a cluster has at least one region and one site in it");
        Topology { regions, shards }
    }

    /// The number of regions.
    pub fn region_count(&self) -> usize {
        self.regions.len()
    }

    /// The number of shards, which is the number of sites in each region.
    pub fn shard_count(&self) -> u16 {
        self.shards
    }

    /// The smallest number of regions that is more than half of them.
    pub fn majority(&self) -> usize {
        self.regions.len() / 2 + 1
    }

    /// All regions, in order.
    pub fn regions(&self) -> impl Iterator<Item = RegionId> + use<> {
        (0..self.regions.len() as u16).map(RegionId)
    }

    /// All sites, region by region.
    pub fn sites(&self) -> impl Iterator<Item = SiteId> + use<> {
        let shards = self.shards;
        self.regions().flat_map(move |region| (0..shards).map(move |shard| SiteId { region, shard }))
    }

    /// All sites but `me`.
    pub fn others(&self, me: SiteId) -> impl Iterator<Item = SiteId> + use<> {
        self.sites().filter(move |site| *site != me)
    }

    /// The sites that hold a replica of `shard`, one per region.
    pub fn replicas(&self, shard: u16) -> impl Iterator<Item = SiteId> + use<> {
        self.regions().map(move |region| SiteId { region, shard })
    }

    /// The name of `region`.
    pub fn name(&self, region: RegionId) -> &str {
        &self.regions[usize::from(region.0)]
    }

    /// The region called `name`.
    pub fn region(&self, name: &str) -> Option<RegionId> {
        self.regions.iter().position(|known| known == name).map(|index| RegionId(index as u16))
    }

    /// True if the cluster has this site.
    pub fn has(&self, site: SiteId) -> bool {
        usize::from(site.region.0) < self.regions.len() && site.shard < self.shards
    }

    /// The shard that `key` belongs to: FNV-1a of its bytes, modulo the number of shards. Part of the data format.
    pub fn shard_of(&self, key: &Key) -> u16 {
        if self.shards == 1 {
            return 0;
        }
        let hash = key.0.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        // FNV's low bits are weak for short keys; fold the high half in.
        ((hash ^ (hash >> 32)) % u64::from(self.shards)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_spread_over_all_shards() {
        let topology = Topology::new(vec!["a".into()], 3);
        let mut counts = [0; 3];
        for n in 0..3_000 {
            counts[usize::from(topology.shard_of(&Key::from(format!("user{n}").as_str())))] += 1;
        }
        assert!(counts.iter().all(|&count| (800..1_200).contains(&count)), "{counts:?}");
    }

    #[test]
    fn a_majority_is_more_than_half() {
        for (regions, majority) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)] {
            assert_eq!(Topology::new(vec!["r".into(); regions], 1).majority(), majority);
        }
    }
}
