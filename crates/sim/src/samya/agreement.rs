//! Invariant: an offer is spent once. Of all lists that any site knows to be decided, only one holds a given offer (a quota,
//! a site, its version), and all copies of that list are the same. What a site that is going to be lost knows by itself is left out: it
//! may have decided a list that the others had to end as dead, as long as it has fewer tokens by it.

use crate::world::Observer;
use rhumb_core::SiteId;
use rhumb_quota::Site;
use rhumb_quota::catalog::QuotaId;
use rhumb_quota::list::List;
use std::collections::BTreeMap;

/// Checks it after each event; `lost`: sites that are going to be lost.
pub fn observer(lost: Vec<SiteId>) -> Observer<Site> {
    let mut spent: BTreeMap<(QuotaId, SiteId, u64), List> = BTreeMap::new();
    // The versions at each site when its lists were last looked at.
    let mut looked: BTreeMap<(SiteId, u64, QuotaId), u64> = BTreeMap::new();
    Box::new(move |world| {
        for site in world.topology().sites().filter(|site| !lost.contains(site)) {
            let Some(actor) = world.actor(site) else { continue };
            for (quota, account) in actor.accounts() {
                if looked.insert((site, world.lives(site), quota), account.version) == Some(account.version) {
                    continue;
                }
                for list in actor.lists(quota) {
                    check(&mut spent, quota, list, site)?;
                }
            }
        }
        Ok(())
    })
}

fn check(spent: &mut BTreeMap<(QuotaId, SiteId, u64), List>, quota: QuotaId, list: &List, at: SiteId) -> Result<(), String> {
    for entry in &list.entries {
        match spent.get(&(quota, entry.site, entry.version)) {
            Some(known) if known == list => {}
            Some(other) => {
                return Err(format!("two lists of {quota} hold version {} of {}: {other}, and at {at} {list}", entry.version, entry.site));
            }
            None => {
                spent.insert((quota, entry.site, entry.version), list.clone());
            }
        }
    }
    Ok(())
}
