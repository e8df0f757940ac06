//! What sites agree on in a redistribution: the list of those that take part, with what each offers and wants (the
//! paper's L_t), and what each gets by it.
//!
//! Invariant: what the members get, debts paid included, adds up to what they offered, of either kind.

use crate::reallocate::grants;
use crate::spec::Reallocation;
use crate::tokens::Tokens;
use rhumb_core::SiteId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One site's part in a redistribution: the paper's InitVal (Samya, Table 3).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// Which site.
    pub site: SiteId,
    /// How many lists it had applied. A list is applied where this still holds, so a replay is harmless.
    pub version: u64,
    /// The tokens it gives up until the list is decided or known to be dead.
    pub offered: Tokens,
    /// The tokens it keeps meanwhile.
    pub kept: Tokens,
    /// The tokens it would like to be granted.
    pub wanted: Tokens,
    /// Tokens it has to take out of circulation since the limit was lowered.
    pub owed: u64,
    /// Tokens that count as held, here or elsewhere, and that no client holds: it is to take them back.
    pub returning: u64,
}

/// A list: decided once, the same for all.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct List {
    /// Who gets what.
    pub reallocation: Reallocation,
    /// All entries were made within so many ticks before the list was; none: some are left from earlier attempts.
    pub gathered: Option<u32>,
    /// The members, in the order of their sites.
    pub entries: Vec<Entry>,
}

/// What a member gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Tokens for it.
    pub granted: Tokens,
    /// Tokens taken out of circulation for it.
    pub paid: u64,
}

impl List {
    /// The entry of `site`, if it is a member.
    pub fn entry(&self, site: SiteId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.site == site)
    }

    /// The members.
    pub fn members(&self) -> impl Iterator<Item = SiteId> + '_ {
        self.entries.iter().map(|entry| entry.site)
    }

    /// What `site` gets, if it is a member.
    pub fn share(&self, site: SiteId) -> Option<Share> {
        let index = self.entries.iter().position(|entry| entry.site == site)?;
        Some(self.shares()[index])
    }

    /// Held tokens of other sites that it brings to `site`, if that is a member.
    pub fn held_brought(&self, site: SiteId) -> Option<u64> {
        let offered = self.entry(site)?.offered.held;
        Some(self.share(site)?.granted.held.saturating_sub(offered))
    }

    /// What each member gets, in the order of the entries.
    pub fn shares(&self) -> Vec<Share> {
        let mut spare: u64 = self.entries.iter().map(|entry| entry.offered.left).sum();
        let debts = self.entries.iter().map(|entry| {
            let paid = entry.owed.min(spare);
            spare -= paid;
            paid
        });
        let debts: Vec<u64> = debts.collect();
        let left = grants(self.reallocation.module(), spare, &self.wanted(|wanted| wanted.left));
        let held = self.held();
        let shares = debts.into_iter().zip(left).zip(held);
        shares.map(|((paid, left), held)| Share { granted: Tokens { left, held }, paid }).collect()
    }

    /// True if the members that `is_lost` says together get more by it than they put in.
    pub fn leaves_more_to(&self, is_lost: impl Fn(SiteId) -> bool) -> bool {
        let lost = self.entries.iter().zip(self.shares()).filter(|(entry, _)| is_lost(entry.site));
        let (mut put_in, mut got) = (0, 0);
        for (Entry { offered, .. }, Share { granted, paid }) in lost {
            put_in += offered.left + offered.held;
            got += granted.left + granted.held + paid;
        }
        got > put_in
    }

    fn wanted(&self, kind: impl Fn(&Tokens) -> u64) -> Vec<u64> {
        self.entries.iter().map(|entry| kind(&entry.wanted)).collect()
    }

    /// Held tokens go where somebody wants to release them, as many as are wanted, and then where they are to be taken back, as far as they go. The
    /// others stay where they were.
    fn held(&self) -> Vec<u64> {
        let mut spare: u64 = self.entries.iter().map(|entry| entry.offered.held).sum();
        let mut held = Reallocation::MostSatisfied.module().accept(spare, &self.wanted(|wanted| wanted.held));
        spare -= held.iter().sum::<u64>();
        for (held, entry) in held.iter_mut().zip(&self.entries) {
            let found = entry.returning.min(spare);
            *held += found;
            spare -= found;
        }
        for (held, entry) in held.iter_mut().zip(&self.entries) {
            let back = entry.offered.held.min(spare);
            *held += back;
            spare -= back;
        }
        held
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}v{} offers {}", self.site, self.version, self.offered)?;
        if !self.wanted.is_none() {
            write!(f, " wants {}", self.wanted)?;
        }
        if self.owed > 0 {
            write!(f, " owes {}", self.owed)?;
        }
        if self.returning > 0 {
            write!(f, " takes {} back", self.returning)?;
        }
        Ok(())
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, entry) in self.entries.iter().enumerate() {
            write!(f, "{}{entry}", if index > 0 { ", " } else { "" })?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(site: u16, offered: Tokens, wanted: Tokens, owed: u64) -> Entry {
        Entry { site: SiteId::new(site, 0), version: 0, offered, kept: Tokens::NONE, wanted, owed, returning: 0 }
    }

    fn list(entries: Vec<Entry>) -> List {
        List { reallocation: Reallocation::MaximumUsage, gathered: None, entries }
    }

    #[test]
    fn debts_are_paid_before_anybody_gets_anything() {
        let list = list(vec![
            entry(0, Tokens::left(0), Tokens::NONE, 7),
            entry(1, Tokens::left(6), Tokens::left(4), 0),
            entry(2, Tokens::left(4), Tokens::NONE, 9),
        ]);
        let shares = list.shares();
        assert_eq!(shares.iter().map(|share| share.paid).collect::<Vec<_>>(), [7, 0, 3]);
        assert!(shares.iter().all(|share| share.granted.is_none()));
    }

    #[test]
    fn held_tokens_move_only_to_those_who_want_to_release_them() {
        let held = |held| Tokens { left: 0, held };
        let list = list(vec![entry(0, held(5), Tokens::NONE, 0), entry(1, held(5), Tokens::NONE, 0), entry(2, Tokens::NONE, held(7), 0)]);
        let granted: Vec<u64> = list.shares().iter().map(|share| share.granted.held).collect();
        assert_eq!(granted, [3, 0, 7]);
    }

    #[test]
    fn held_tokens_are_taken_back_as_far_as_nobody_wants_to_release_them() {
        let held = |held| Tokens { left: 0, held };
        let taken_back = |returning| {
            let first = Entry { returning, ..entry(0, held(1), Tokens::NONE, 0) };
            let list = list(vec![first, entry(1, held(5), Tokens::NONE, 0), entry(2, Tokens::NONE, held(2), 0)]);
            list.shares().iter().map(|share| share.granted.held).collect::<Vec<_>>()
        };
        assert_eq!(taken_back(3), [4, 0, 2]);
        assert_eq!(taken_back(9), [4, 0, 2]);
        assert_eq!(taken_back(1), [2, 2, 2]);
    }

    proptest! {
        #[test]
        fn shares_add_up_to_what_was_offered(
            numbers in prop::collection::vec((0..1000_u64, 0..1000_u64, 0..1500_u64, 0..1500_u64, 0..300_u64, 0..500_u64), 1..7),
            reallocation in prop::sample::select(Reallocation::NAMES),
        ) {
            let entries = numbers.iter().enumerate().map(|(site, (left, held, want_left, want_held, owed, returning))| Entry {
                returning: *returning,
                ..entry(site as u16, Tokens { left: *left, held: *held }, Tokens { left: *want_left, held: *want_held }, *owed)
            });
            let list = List { reallocation: reallocation.parse().expect("its name"), gathered: None, entries: entries.collect() };
            let shares = list.shares();
            let offered: Tokens = list.entries.iter().map(|entry| entry.offered).sum();
            let granted: Tokens = shares.iter().map(|share| share.granted).sum();
            let paid: u64 = shares.iter().map(|share| share.paid).sum();
            prop_assert_eq!(granted + Tokens::left(paid), offered);
            prop_assert!(shares.iter().zip(&list.entries).all(|(share, entry)| share.paid <= entry.owed));
        }
    }
}
