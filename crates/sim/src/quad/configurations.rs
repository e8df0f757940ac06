//! Invariants of configurations: sites agree on them, in each every read quorum meets every write quorum and two write quorums
//! meet, and each could take over what the one before had committed.

use crate::World;
use rhumb_core::SiteId;
use rhumb_quad::{Configuration, Epoch, Site, carries};
use std::collections::{BTreeMap, BTreeSet};

/// Checks each configuration as soon as the first site adopts it, and that all others adopt the same.
pub(super) fn observer() -> impl FnMut(&World<Site>) -> Result<(), String> {
    let mut known: BTreeMap<Epoch, Configuration> = BTreeMap::new();
    let mut seen: BTreeMap<SiteId, Epoch> = BTreeMap::new();
    move |world| {
        for site in world.topology().sites() {
            let Some(configuration) = world.actor(site).map(Site::configuration) else {
                seen.remove(&site);
                continue;
            };
            if seen.insert(site, configuration.epoch) == Some(configuration.epoch) {
                continue;
            }
            match known.get(&configuration.epoch) {
                Some(known) if known == configuration => {}
                Some(known) => return Err(format!("{site} is in {configuration}, while it was decided: {known}")),
                None => {
                    intersects(configuration)?;
                    known.insert(configuration.epoch, configuration.clone());
                }
            }
        }
        Ok(())
    }
}

/// Asks for the quorums of all sets of sites: what one set can do, the rest must not be able to do against it.
pub(super) fn intersects(configuration: &Configuration) -> Result<(), String> {
    let members: Vec<SiteId> = configuration.members().into_iter().collect();
    let holders: BTreeSet<SiteId> = configuration.holders().collect();
    if !carries(&configuration.quorums, &holders) {
        return Err(format!("no write quorum holds what was committed before {configuration}"));
    }
    for chosen in 0..1_u32 << members.len() {
        let side = |here: u32| -> BTreeSet<SiteId> {
            members.iter().enumerate().filter(|(bit, _)| chosen >> bit & 1 == here).map(|(_, site)| *site).collect()
        };
        let (some, rest) = (side(1), side(0));
        let quorums = &configuration.quorums;
        let writes = |sites: &BTreeSet<SiteId>| sites.iter().any(|at| quorums.write(*at, sites, 0).is_some());
        let reads = |sites: &BTreeSet<SiteId>| sites.iter().any(|at| quorums.read(*at, sites, 0).is_some());
        if writes(&some) && (writes(&rest) || reads(&rest)) {
            return Err(format!("a write among {some:?} is not met by all others in {configuration}"));
        }
    }
    Ok(())
}

/// The latest configuration that any site has adopted.
pub(super) fn latest(world: &World<Site>) -> Configuration {
    let adopted = world.topology().sites().filter_map(|site| world.actor(site).map(Site::configuration));
    adopted.max_by_key(|configuration| configuration.epoch).expect("a site is up").clone()
}

/// Once all is healed and quiet, all sites are in one epoch, serve it, and hold all that came before it.
pub(super) fn at_rest(world: &World<Site>) -> Result<(), String> {
    let latest = latest(world);
    if let Some(site) = latest.members().into_iter().find(|site| world.is_lost(*site)) {
        return Err(format!("{site} is lost, and is a member at the end: {latest}"));
    }
    for site in world.sites_left() {
        let Some(actor) = world.actor(site) else { return Err(format!("{site} is down at the end")) };
        if actor.configuration().epoch != latest.epoch {
            return Err(format!("{site} is in {} at the end, another one in {latest}", actor.configuration()));
        }
        if actor.is_sealed() {
            return Err(format!("{site} is sealed in {latest} at the end"));
        }
        if latest.bases.contains_key(&site) && !actor.is_caught_up() {
            return Err(format!("{site} has not caught up with {latest} at the end"));
        }
    }
    Ok(())
}
