//! The end of the faults: all is well again, but for one link between two regions, which may stay cut while clients go on.
//!
//! A protocol that lives by majorities must go on then as well: each region still reaches a majority, itself included.
//! Demanded only after everything has healed, progress would hide a rule that needs every link.

use crate::fault::Fault;
use crate::place::{Links, Place};
use crate::world::World;
use rhumb_core::actor::Actor;
use rhumb_core::{RegionId, Rng, Time};

/// Of so many runs one keeps a link cut.
const CUT_ONE_OF: u64 = 2;

impl<A: Actor> World<A> {
    /// Heals the world; of two runs with three regions or more, one keeps a link between two of them cut, in both directions, until `until`.
    pub(crate) fn heal_but_one_link(&mut self, seed: u64, until: Time) {
        self.heal();
        let mut rng = Rng::seeded(seed).fork();
        let regions: Vec<RegionId> = self.topology().regions().collect();
        if regions.len() < 3 || rng.below(CUT_ONE_OF) > 0 {
            return;
        }
        let first = rng.below(regions.len() as u64) as usize;
        let second = (first + rng.between(1, regions.len() as u64 - 1) as usize) % regions.len();
        let links = Links::new(Place::Region(regions[first]), Place::Region(regions[second]));
        let span = Some(until.since(self.now()));
        self.strike(&Fault::Cut { links, span });
        self.strike(&Fault::Cut { links: links.reversed(), span });
    }
}
