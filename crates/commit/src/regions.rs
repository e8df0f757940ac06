//! A small set of regions, for evidence that travels with every commit.

use rhumb_core::RegionId;
use serde::{Deserialize, Serialize};

/// The most regions that a cluster can have; a [`Regions`] is one machine word.
pub const REGIONS_MAX: usize = 64;

/// A set of regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regions(u64);

impl Regions {
    /// No region.
    pub const NONE: Regions = Regions(0);

    /// Adds a region.
    pub fn insert(&mut self, region: RegionId) {
        self.0 |= Self::bit(region);
    }

    /// True if `region` is in the set.
    pub fn contains(self, region: RegionId) -> bool {
        self.0 & Self::bit(region) != 0
    }

    fn bit(region: RegionId) -> u64 {
        assert!(usize::from(region.0) < REGIONS_MAX, "a topology has at most {REGIONS_MAX} regions");
        1 << region.0
    }
}

impl FromIterator<RegionId> for Regions {
    fn from_iter<I: IntoIterator<Item = RegionId>>(regions: I) -> Regions {
        let mut set = Regions::NONE;
        for region in regions {
            set.insert(region);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set: Regions = [RegionId(0), RegionId(63)].into_iter().collect();
        assert!(set.contains(RegionId(0)) && set.contains(RegionId(63)) && !set.contains(RegionId(5)));
    }
}
