//! The decided lists that somebody may still have to be told.
//!
//! A site that is a member of an undecided list takes part in nothing else. So of each site only the last list that it
//! is a member of can be news to it, and there are never more lists to keep than sites.

use crate::list::List;
use rhumb_core::SiteId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Decided lists by the name `K` of their instance: those that are the last of some member.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Recent<K> {
    lists: Vec<Remembered<K>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Remembered<K> {
    instance: K,
    list: List,
    last_of: BTreeSet<SiteId>,
}

impl<K> Default for Recent<K> {
    fn default() -> Recent<K> {
        Recent { lists: Vec::new() }
    }
}

impl<K: Copy + Ord> Recent<K> {
    /// Adds a list, decided after all that are remembered of its members.
    pub fn remember(&mut self, instance: K, list: &List) {
        let members: BTreeSet<SiteId> = list.members().collect();
        for older in &mut self.lists {
            older.last_of.retain(|site| !members.contains(site));
        }
        self.lists.retain(|older| !older.last_of.is_empty());
        self.lists.push(Remembered { instance, list: list.clone(), last_of: members });
    }

    /// The last list that `site` is a member of.
    pub fn last_of(&self, site: SiteId) -> Option<(K, &List)> {
        let found = self.lists.iter().find(|remembered| remembered.last_of.contains(&site))?;
        Some((found.instance, &found.list))
    }

    /// All lists.
    pub fn lists(&self) -> impl Iterator<Item = &List> + '_ {
        self.lists.iter().map(|remembered| &remembered.list)
    }

    /// All lists from the instance `from` on, in order.
    pub fn since(&self, from: K) -> impl Iterator<Item = (K, &List)> + '_ {
        self.lists.iter().filter(move |remembered| remembered.instance >= from).map(|remembered| (remembered.instance, &remembered.list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::Entry;
    use crate::spec::Reallocation;
    use crate::tokens::Tokens;

    fn list(sites: &[u16]) -> List {
        let entry = |site: &u16| Entry {
            site: SiteId::new(*site, 0),
            version: 0,
            offered: Tokens::NONE,
            kept: Tokens::NONE,
            wanted: Tokens::NONE,
            owed: 0,
            returning: 0,
        };
        List { reallocation: Reallocation::MaximumUsage, gathered: None, entries: sites.iter().map(entry).collect() }
    }

    #[test]
    fn a_list_is_forgotten_once_each_member_has_a_later_one() {
        let mut recent = Recent::default();
        recent.remember(1, &list(&[0, 1, 2]));
        recent.remember(2, &list(&[0, 1]));
        assert_eq!(recent.last_of(SiteId::new(2, 0)).map(|(slot, _)| slot), Some(1));
        assert_eq!(recent.last_of(SiteId::new(0, 0)).map(|(slot, _)| slot), Some(2));
        assert_eq!(recent.last_of(SiteId::new(3, 0)), None);
        recent.remember(5, &list(&[0, 2]));
        assert_eq!(recent.since(0).map(|(slot, _)| slot).collect::<Vec<_>>(), [2, 5]);
        assert_eq!(recent.since(3).map(|(slot, _)| slot).collect::<Vec<_>>(), [5]);
    }
}
