//! The end of the faults: all is well again that is not lost, but for one link between two regions, which may stay cut while clients
//! go on.
//!
//! A protocol that lives by majorities must go on then as well: each region still reaches a majority, itself included.
//! Demanded only after everything has healed, progress would hide a rule that needs every link.

use super::World;
use crate::fault::Fault;
use crate::place::{Links, Place};
use crate::plan::FaultPlan;
use rhumb_core::actor::Actor;
use rhumb_core::{RegionId, Rng, Time};

/// Of so many runs one keeps a link cut.
const CUT_ONE_OF: u64 = 2;

/// True if the run of this seed keeps a link cut, provided that its cluster can do without.
pub(crate) fn keeps_a_link_cut(seed: u64) -> bool {
    Rng::seeded(seed).fork().below(CUT_ONE_OF) == 0
}

impl<A: Actor> World<A> {
    /// The regions that are not lost for good.
    pub(crate) fn regions_left(&self) -> Vec<RegionId> {
        let mut left: Vec<RegionId> = self.sites_left().map(|site| site.region).collect();
        left.dedup();
        left
    }

    /// The regions that are left, but for those whose clients have ended because they could have been lost.
    pub(crate) fn regions_to_go_on(&self, plan: &FaultPlan) -> Vec<RegionId> {
        let doomed: Vec<RegionId> = plan.losses().map(|(_, region)| region).collect();
        self.regions_left().into_iter().filter(|region| !doomed.contains(region)).collect()
    }

    /// Heals the world; of two runs, one keeps a link between two regions cut, in both directions, until `until`, if each region reaches a
    /// majority of `voters` without any single link.
    pub(crate) fn heal_but_one_link(&mut self, seed: u64, voters: &[RegionId], until: Time) {
        self.heal();
        let left = self.regions_left();
        let voters_left = voters.iter().filter(|region| left.contains(region)).count();
        if !keeps_a_link_cut(seed) || voters_left < voters.len() / 2 + 2 {
            return;
        }
        let mut rng = Rng::seeded(seed).fork();
        rng.below(CUT_ONE_OF);
        let first = rng.below(left.len() as u64) as usize;
        let second = (first + rng.between(1, left.len() as u64 - 1) as usize) % left.len();
        let links = Links::new(Place::Region(left[first]), Place::Region(left[second]));
        let span = Some(until.since(self.now()));
        self.strike(&Fault::Cut { links, span });
        self.strike(&Fault::Cut { links: links.reversed(), span });
    }
}
