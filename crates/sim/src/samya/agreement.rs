//! Invariant: an offer is spent once. Of all lists that any site knows to be decided, only one holds a given offer (a quota,
//! a site, its version), and all copies of that list are the same.
//!
//! What a site that is going to be lost knows by itself is left out: it may have decided a list that the others had to end as dead, as long
//! as it has fewer tokens by it. So is what one site alone knew of two kinds of lists, if a crash came before that was on its disk: nobody has
//! heard of it, for whatever leaves a site waits for the disk. It may have decided a list by the word of a member that is declared lost by
//! the time it is back; that word counts for nothing then, and the list may have to end as dead. And of a list of its own offer alone nothing
//! may be on any disk. All other lists it must decide again.
//!
//! An offer of a member of Avantan\[\*\] that the site which knows the list knows to be lost is left out as well: the list may count as decided
//! although that member has refused it, and has spent the offer in another one ([`rhumb_quota::lost`] says why this mints nothing). What that member
//! has is checked against what is booked ([`lost`](super::lost)); the offers of all others are not left out.

use crate::world::Observer;
use rhumb_core::SiteId;
use rhumb_quota::Site;
use rhumb_quota::catalog::QuotaId;
use rhumb_quota::list::List;
use rhumb_quota::spec::ProtocolKind;
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
                let unknown = members_of_unknown_outcome(actor, quota);
                for list in actor.lists(quota) {
                    spent.check(quota, list, site, &unknown)?;
                }
            }
        }
        Ok(())
    })
}

/// The members of lists of `quota` that `site` cannot ask whether they have accepted one.
fn members_of_unknown_outcome(site: &Site, quota: QuotaId) -> Vec<SiteId> {
    let definitions = site.definitions();
    match definitions.get(quota).map(|definition| definition.spec.protocol) {
        Some(ProtocolKind::Any) => definitions.lost().collect(),
        _ => Vec::new(),
    }
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

    /// `site` knows this list to be decided; what the members `unknown` to it have spent their offers on, it does not know.
    fn check(&mut self, quota: QuotaId, list: &List, site: SiteId, unknown: &[SiteId]) -> Result<(), String> {
        for entry in list.entries.iter().filter(|entry| !unknown.contains(&entry.site)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_quota::list::Entry;
    use rhumb_quota::spec::Reallocation;
    use rhumb_quota::tokens::Tokens;

    const QUOTA: QuotaId = QuotaId(1);

    fn site(region: u16) -> SiteId {
        SiteId::new(region, 0)
    }

    fn list(regions: &[u16]) -> List {
        let entry = |region: &u16| Entry {
            site: site(*region),
            version: 5,
            offered: Tokens::NONE,
            kept: Tokens::NONE,
            wanted: Tokens::NONE,
            owed: 0,
            returning: 0,
        };
        List { reallocation: Reallocation::MaximumUsage, gathered: None, entries: regions.iter().map(entry).collect() }
    }

    #[test]
    fn an_offer_is_in_two_lists_only_if_it_is_a_lost_members() {
        let mut spent = Spent::default();
        assert_eq!(spent.check(QUOTA, &list(&[0, 1]), site(1), &[]), Ok(()));
        assert_eq!(spent.check(QUOTA, &list(&[0, 2]), site(2), &[site(0)]), Ok(()));
        assert!(spent.check(QUOTA, &list(&[0, 2]), site(2), &[]).is_err(), "r0 is not lost");
        assert!(spent.check(QUOTA, &list(&[0, 1, 3]), site(3), &[site(0)]).is_err(), "r1 is not lost");
    }
}
