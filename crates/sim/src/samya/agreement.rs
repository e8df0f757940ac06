//! Invariant: an offer is spent once. Of all lists that any site knows to be decided, only one holds a given offer (a quota,
//! a site, its version), and all copies of that list are the same.
//!
//! What a site that is going to be lost knows by itself is left out: it may have decided a list that the others had to end as dead, as long
//! as it has fewer tokens by it. So is what one site alone knew of two kinds of lists, if a crash came before that was on its disk: nobody has
//! heard of it, for whatever leaves a site waits for the disk. It may have decided a list by the word of a member that is declared lost by
//! the time it is back; that word counts for nothing then, and the list may have to end as dead. And of a list of its own offer alone nothing
//! may be on any disk. All other lists it must decide again.

use crate::world::Observer;
use rhumb_core::SiteId;
use rhumb_quota::Site;
use rhumb_quota::catalog::QuotaId;
use rhumb_quota::list::List;
use std::collections::{BTreeMap, BTreeSet};

/// A decided list, and the sites at which it was seen.
struct Known {
    list: List,
    at: BTreeSet<SiteId>,
}

/// Which list has spent an offer.
#[derive(Default)]
struct Spent(BTreeMap<(QuotaId, SiteId, u64), Known>);

/// Checks it after each event; `lost`: sites that are going to be lost.
pub fn observer(lost: Vec<SiteId>) -> Observer<Site> {
    let mut spent = Spent::default();
    // The versions at each site when its lists were last looked at.
    let mut looked: BTreeMap<(SiteId, u64, QuotaId), u64> = BTreeMap::new();
    Box::new(move |world| {
        for site in world.topology().sites().filter(|site| !lost.contains(site)) {
            let Some(actor) = world.actor(site) else { continue };
            for (quota, account) in actor.accounts() {
                let before = looked.insert((site, world.incarnation(site), quota), account.version);
                if before == Some(account.version) {
                    continue;
                }
                if before.is_none() {
                    spent.forget(quota, (site, account.version), |list| {
                        list.entries.len() == 1 || list.members().any(|member| lost.contains(&member))
                    });
                }
                for list in actor.lists(quota) {
                    spent.check(quota, list, site)?;
                }
            }
        }
        Ok(())
    })
}

impl Spent {
    /// An incarnation of `site` begins at this version: of later lists it knows no more. Those that `may_end_otherwise` are decided once
    /// somebody else knows of them.
    fn forget(&mut self, quota: QuotaId, (site, version): (SiteId, u64), may_end_otherwise: impl Fn(&List) -> bool) {
        self.0.retain(|(of, ..), Known { list, at }| {
            let forgotten = *of == quota && list.entry(site).is_some_and(|entry| entry.version >= version);
            if forgotten && may_end_otherwise(list) {
                at.remove(&site);
            }
            !at.is_empty()
        });
    }

    fn check(&mut self, quota: QuotaId, list: &List, site: SiteId) -> Result<(), String> {
        for entry in &list.entries {
            let of = (entry.site, entry.version);
            let known = self.0.entry((quota, of.0, of.1)).or_insert_with(|| Known { list: list.clone(), at: BTreeSet::new() });
            if known.list != *list {
                return Err(format!("two lists of {quota} hold version {} of {}: {}, and at {site} {list}", of.1, of.0, known.list));
            }
            known.at.insert(site);
        }
        Ok(())
    }
}
