//! The regions of a cluster, and changes of which of them vote.

use rhumb_commit::placement::{Change, Regions};
use rhumb_core::RegionId;
use std::collections::BTreeMap;

pub const NORTH: RegionId = RegionId(0);
pub const EAST: RegionId = RegionId(1);
pub const WEST: RegionId = RegionId(2);
pub const SOUTH: RegionId = RegionId(3);
pub const MIDDLE: RegionId = RegionId(4);

/// These regions vote, and those only hold a copy.
pub fn change<const V: usize, const P: usize>(voters: [RegionId; V], passives: [RegionId; P]) -> Change {
    let (voters, passives) = (voters.into_iter().collect(), passives.into_iter().collect());
    Change { voters, passives, coordinators: BTreeMap::new(), lost: Regions::NONE }
}
