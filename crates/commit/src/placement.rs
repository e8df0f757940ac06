//! Which regions hold what: the answer of the planner as the protocols obey it.
//!
//! | role | holds a copy of all rows | votes | its gateway reads |
//! |---|---|---|---|
//! | active | yes | yes | at home |
//! | passive | yes, a little behind | no | at home, validated by the votes |
//! | neither | no | no | at the nearest region that has a copy |
//!
//! Every region has gateways, whatever its role. Source: Zakhary et al., "Global-Scale Placement of Transactional Data
//! Stores", EDBT 2018, section 2.

use rhumb_core::RegionId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Regions that a cluster may have, at the most.
pub const REGIONS_MAX: usize = 64;

/// Some regions of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Regions(u64);

impl Regions {
    /// None of them.
    pub const NONE: Regions = Regions(0);

    /// The first `count` regions.
    ///
    /// # Panics
    /// If there are more than [`REGIONS_MAX`].
    pub fn first(count: usize) -> Regions {
        (0..count as u16).map(RegionId).collect()
    }

    /// True if `region` is one of them.
    pub fn contains(self, region: RegionId) -> bool {
        usize::from(region.0) < REGIONS_MAX && self.0 & (1 << region.0) != 0
    }

    /// How many they are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// True if there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The smallest number of them that is more than half.
    pub fn majority(self) -> usize {
        self.len() / 2 + 1
    }

    /// Those in either.
    pub fn or(self, other: Regions) -> Regions {
        Regions(self.0 | other.0)
    }

    /// Those not in `other`.
    pub fn without(self, other: Regions) -> Regions {
        Regions(self.0 & !other.0)
    }

    /// The regions, in order.
    pub fn iter(self) -> impl Iterator<Item = RegionId> {
        (0..REGIONS_MAX as u16).map(RegionId).filter(move |region| self.contains(*region))
    }
}

impl From<RegionId> for Regions {
    fn from(region: RegionId) -> Regions {
        [region].into_iter().collect()
    }
}

impl FromIterator<RegionId> for Regions {
    fn from_iter<I: IntoIterator<Item = RegionId>>(regions: I) -> Regions {
        Regions(regions.into_iter().fold(0, |bits, region| {
            assert!(usize::from(region.0) < REGIONS_MAX, "a cluster has at most {REGIONS_MAX} regions");
            bits | 1 << region.0
        }))
    }
}

impl fmt::Display for Regions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, region) in self.iter().enumerate() {
            write!(f, "{}{region}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

/// Which regions hold what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The active ones: their votes decide.
    pub voters: Regions,
    /// Those that hold a copy and do not vote.
    pub passives: Regions,
    /// Where the clients of a region read and commit, if not as near as they can.
    pub coordinators: BTreeMap<RegionId, Coordinators>,
}

/// Where the clients of a region read and commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coordinators {
    /// Optimistic reads go to this region, unless there is a copy at home.
    pub read: RegionId,
    /// Commits are handed to this region.
    pub commit: RegionId,
}

impl Placement {
    /// All of `count` regions are active.
    pub fn everywhere(count: usize) -> Placement {
        Placement { voters: Regions::first(count), passives: Regions::NONE, coordinators: BTreeMap::new() }
    }

    /// The regions that hold a copy.
    pub fn copies(&self) -> Regions {
        self.voters.or(self.passives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_a_set() {
        let some: Regions = [RegionId(4), RegionId(0), RegionId(4)].into_iter().collect();
        assert_eq!((some.len(), some.majority(), some.to_string()), (2, 2, "r0,r4".to_owned()));
        assert!(some.contains(RegionId(4)) && !some.contains(RegionId(1)) && !some.contains(RegionId(64)));
        assert_eq!(some.without(RegionId(0).into()), RegionId(4).into());
        assert_eq!(Regions::first(3).or(some).len(), 4);
        assert_eq!(Regions::first(REGIONS_MAX).len(), REGIONS_MAX);
        assert!(Regions::NONE.is_empty() && Regions::NONE.iter().next().is_none());
    }
}
