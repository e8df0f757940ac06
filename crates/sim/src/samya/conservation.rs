//! Invariant: no token is minted or lost. What a site has, beyond its part of the limit, changes only when it applies a list;
//! and what all members of a list gain and lose by it adds up to nothing. Or when it takes over what lost sites had: that they had
//! as much, `lost` checks, and that nothing is missing then, `rest`.

use crate::world::{Observer, World};
use rhumb_core::{Load, Loaded, SiteId, record};
use rhumb_quota::Site;
use rhumb_quota::account::Account;
use rhumb_quota::catalog::QuotaId;
use rhumb_quota::{list::List, records};
use std::collections::BTreeMap;

/// What a site has beyond its part of the limit: what lists brought it, less what they took.
pub fn beyond(account: &Account) -> i128 {
    let Account { tokens, offered, owed, issued, .. } = *account;
    i128::from(tokens.left + tokens.held + offered.left + offered.held) - i128::from(owed) - i128::from(issued)
}

/// All accounts of a site, by its actor if it is up, else by its disk.
pub fn accounts(world: &World<Site>, site: SiteId) -> BTreeMap<QuotaId, Account> {
    if let Some(actor) = world.actor(site).filter(|actor| actor.is_serving()) {
        return actor.accounts().map(|(quota, account)| (quota, account.clone())).collect();
    }
    let load = Load::Records { space: records::ACCOUNTS, from: bytes::Bytes::new(), limit: usize::MAX, bytes: usize::MAX };
    let Ok(Loaded::Records { records: found, .. }) = world.store(site).load(&load) else { return BTreeMap::new() };
    let account = |(key, bytes): (bytes::Bytes, bytes::Bytes)| Some((records::quota_of(&key)?, record::decode(&bytes)?));
    found.into_iter().filter_map(account).collect()
}

/// What a list changed at one of its members.
#[derive(Default)]
struct Books {
    /// By quota and site: its version, what it had beyond its part, and how many lost sites it has taken over, as last seen.
    seen: BTreeMap<(QuotaId, SiteId), (u64, i128, u32)>,
    /// What the list applied to that version changed.
    changes: BTreeMap<(QuotaId, SiteId, u64), i128>,
}

/// Checks it after each event; `lost`: sites that are going to be lost. Of a list that such a site is in, it may know another outcome.
pub fn observer(lost: Vec<SiteId>) -> Observer<Site> {
    let mut books = Books::default();
    let stays = move |list: &&List| !list.members().any(|member| lost.contains(&member));
    Box::new(move |world| {
        for site in world.topology().sites() {
            // What a dead site has on its disk, it had in memory before.
            let Some(actor) = world.actor(site).filter(|actor| actor.is_serving()) else { continue };
            for (quota, account) in actor.accounts() {
                if books.note(quota, site, account)? {
                    actor.lists(quota).into_iter().filter(&stays).try_for_each(|list| books.check(quota, list))?;
                }
            }
        }
        Ok(())
    })
}

impl Books {
    /// Notes what `site` has now; true if it has applied a list.
    fn note(&mut self, quota: QuotaId, site: SiteId, account: &Account) -> Result<bool, String> {
        let now = (account.version, beyond(account), account.settled);
        let before = self.seen.insert((quota, site), now).unwrap_or((0, 0, 0));
        if now.2 != before.2 {
            return Ok(false);
        }
        match now.0.checked_sub(before.0) {
            // Back to what was durable. What it had applied without having it on its disk may have to end otherwise (`agreement`); should it
            // apply the same list to another change, the sum over all members shows that.
            None => {
                self.changes.retain(|(of, at, version), _| (*of, *at) != (quota, site) || *version < now.0);
                Ok(false)
            }
            Some(0) if now.1 == before.1 => Ok(false),
            Some(0) => Err(format!("{site} had {} tokens of {quota} beyond its part and has {}, without a list", before.1, now.1)),
            Some(1) => {
                let change = now.1 - before.1;
                match self.changes.insert((quota, site, before.0), change) {
                    Some(first) if first != change => {
                        Err(format!("{site} applied the list at its version {} of {quota} twice, to {first} and to {change}", before.0))
                    }
                    _ => Ok(true),
                }
            }
            // An incarnation that came back and went on within one event is seen as a whole.
            Some(_) => Ok(true),
        }
    }

    /// A list that all members have applied has changed the number of tokens by nothing.
    fn check(&self, quota: QuotaId, list: &List) -> Result<(), String> {
        let changes = list.entries.iter().map(|entry| self.changes.get(&(quota, entry.site, entry.version)).copied());
        match changes.sum::<Option<i128>>() {
            Some(sum) if sum != 0 => Err(format!("the list {list} of {quota} made {sum} tokens out of nothing")),
            _ => Ok(()),
        }
    }
}
