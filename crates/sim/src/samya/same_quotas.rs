//! Invariant: one change per slot. Sites that have applied as many changes know the same quotas.

use crate::world::Observer;
use rhumb_quota::Site;
use rhumb_quota::catalog::Definitions;
use std::collections::BTreeMap;

/// Checks it after each event.
pub fn observer() -> Observer<Site> {
    let mut known: BTreeMap<u64, Definitions> = BTreeMap::new();
    let mut looked = BTreeMap::new();
    Box::new(move |world| {
        for site in world.topology().sites() {
            let Some(actor) = world.actor(site).filter(|actor| actor.is_serving()) else { continue };
            let slot = actor.changes();
            if looked.insert((site, world.incarnation(site)), slot) == Some(slot) {
                continue;
            }
            let definitions = known.entry(slot).or_insert_with(|| actor.definitions().clone());
            if definitions != actor.definitions() {
                return Err(format!("after {slot} changes {site} knows other quotas than another site: {:?}", actor.definitions()));
            }
        }
        Ok(())
    })
}
