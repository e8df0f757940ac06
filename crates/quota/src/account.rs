//! The tokens of one quota at one site, and every way in which they change.
//!
//! ```text
//!            issue                 acquire
//!     limit ───────▶  left  ─────────────────▶ held ─┐
//!                    ▲ │ ▲ ◀───────────────── ▲  │   │ offer (somebody wants to release elsewhere)
//!              apply │ │ │     release        │  │   │
//!                    │ ▼ offer          apply │  ▼   ▼
//!                    offered.left           offered.held
//! ```
//!
//! Invariant: left + held + offered - owed = what was issued here + what redistributions brought - what they took.
//! Nothing is left while something is owed.
//!
//! Source: Samya, 3.2, equation 1; acquire and release are equations 2 and 3 of 4.1.2.

use crate::list::{Entry, Share};
use crate::lost::Booking;
use crate::operation::Action;
use crate::tokens::Tokens;
use rhumb_core::SiteId;
use serde::{Deserialize, Serialize};

/// The account of one quota at one site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Account {
    /// At hand.
    pub tokens: Tokens,
    /// Given up until a redistribution is decided or known to be dead.
    pub offered: Tokens,
    /// To be taken out of circulation since the limit was lowered.
    pub owed: u64,
    /// This site's part of the limit, as far as it has taken it up.
    pub issued: u64,
    /// Lists applied.
    pub version: u64,
    /// Tokens left right after the last grant; the site looks ahead once few of them are left.
    pub last_grant: u64,
    /// The parts of so many lost sites are among what is issued here.
    pub settled: u32,
    /// Tokens of lost sites that an operator has freed, as far as they were taken up here.
    pub freed: u64,
    /// Tokens that ended quotas below have given back, as far as they were taken up here.
    pub returned: u128,
    /// Tokens that no client holds any more and that count as held still: they are to be taken back here, once they come here.
    pub returning: u64,
    /// Tokens held here that clients may have released at a lost site: it may know another outcome of a redistribution. Until that is booked.
    pub in_doubt: u64,
}

impl Account {
    /// True if `action` can be carried out for `amount` tokens.
    pub fn allows(&self, action: Action, amount: u64) -> bool {
        let at_hand = if action == Action::Acquire { self.tokens.left } else { self.tokens.held };
        at_hand >= amount
    }

    /// Takes `amount` of what is left, if there is as much.
    pub fn acquire(&mut self, amount: u64) -> bool {
        let enough = self.allows(Action::Acquire, amount);
        if enough {
            self.tokens.left -= amount;
            self.tokens.held += amount;
        }
        enough
    }

    /// Takes `amount` back from those who hold it, if as much is held here.
    pub fn release(&mut self, amount: u64) -> bool {
        let enough = self.allows(Action::Release, amount);
        if enough {
            self.tokens.held -= amount;
            self.tokens.left += amount;
            self.pay();
        }
        enough
    }

    /// Takes up a new part of the limit.
    pub fn issue(&mut self, issued: u64) {
        if issued >= self.issued {
            self.tokens.left += issued - self.issued;
        } else {
            self.owed += self.issued - issued;
        }
        self.issued = issued;
        self.pay();
        self.last_grant = self.tokens.left;
    }

    /// Takes over what the first `losses` lost sites may have had: clients hold it.
    pub fn inherit(&mut self, booking: &Booking, losses: u32) {
        self.tokens += Tokens { left: 0, held: booking.held };
        self.owed += booking.owed;
        self.issued += booking.issued;
        self.settled = losses;
        self.pay();
    }

    /// Takes back what operators have freed, and ended quotas below have given back: so many in all.
    pub fn take_up(&mut self, freed: u64, returned: u128) {
        let given_back = u64::try_from(returned.saturating_sub(self.returned)).expect("clients hold no more at a time");
        self.take_back(freed.saturating_sub(self.freed) + given_back);
        (self.freed, self.returned) = (freed, returned);
    }

    /// No client holds `amount` of the tokens that count as held: takes back what is held here; the rest is to come from other sites.
    pub fn take_back(&mut self, amount: u64) {
        self.returning += amount;
        self.find(amount);
    }

    /// Takes back what no client holds of `brought` held tokens. Those that clients of this site have acquired since they can release here.
    pub fn find(&mut self, brought: u64) {
        let found = self.returning.min(brought).min(self.tokens.held);
        self.returning -= found;
        self.tokens.held -= found;
        self.tokens.left += found;
        self.pay();
    }

    /// Gives up `offered` for a redistribution.
    pub fn offer(&mut self, site: SiteId, offered: Tokens, wanted: Tokens) -> Entry {
        assert!(self.offered.is_none(), "a site takes part in one redistribution at a time");
        self.tokens -= offered;
        self.offered = offered;
        self.entry(site, wanted)
    }

    fn entry(&self, site: SiteId, wanted: Tokens) -> Entry {
        let offered = self.offered;
        Entry { site, version: self.version, offered, kept: self.tokens, wanted, owed: self.owed, returning: self.returning }
    }

    /// Takes the offer back: the redistribution is dead, or was decided without this site.
    pub fn withdraw(&mut self) {
        self.tokens += std::mem::take(&mut self.offered);
        self.pay();
    }

    /// Exchanges the offer for the share of a decided list.
    pub fn apply(&mut self, entry: &Entry, share: Share) {
        assert_eq!((entry.version, entry.offered), (self.version, self.offered), "a list is applied once, to the offer made for it");
        self.offered = Tokens::NONE;
        self.version += 1;
        // Part of the debt may have been paid from releases since it was told.
        let paid = share.paid.min(self.owed);
        self.owed -= paid;
        self.tokens += share.granted + Tokens::left(share.paid - paid);
        self.pay();
        self.last_grant = self.tokens.left;
    }

    /// Takes out of circulation what is left, as far as something is owed.
    fn pay(&mut self) {
        let paid = self.owed.min(self.tokens.left);
        self.owed -= paid;
        self.tokens.left -= paid;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: SiteId = SiteId::new(0, 0);

    fn account(left: u64) -> Account {
        let mut account = Account::default();
        account.issue(left);
        account
    }

    #[test]
    fn tokens_go_out_and_come_back() {
        let mut account = account(10);
        assert!(account.acquire(7) && !account.acquire(4) && account.acquire(3));
        assert_eq!(account.tokens, Tokens { left: 0, held: 10 });
        assert!(!account.release(11) && account.release(10));
        assert_eq!(account.tokens, Tokens::left(10));
    }

    #[test]
    fn a_lowered_limit_takes_what_is_left_and_then_what_comes_back() {
        let mut account = account(10);
        assert!(account.acquire(8));
        account.issue(5);
        assert_eq!((account.tokens, account.owed), (Tokens { left: 0, held: 8 }, 3));
        assert!(account.release(2));
        assert_eq!((account.tokens, account.owed), (Tokens { left: 0, held: 6 }, 1));
        assert!(account.release(3));
        assert_eq!((account.tokens, account.owed), (Tokens { left: 2, held: 3 }, 0));
        account.issue(9);
        assert_eq!(account.tokens, Tokens { left: 6, held: 3 });
    }

    #[test]
    fn a_debt_paid_meanwhile_is_not_paid_twice() {
        let mut account = account(10);
        assert!(account.acquire(10));
        account.issue(4);
        let entry = account.offer(SITE, Tokens::NONE, Tokens::NONE);
        assert_eq!(entry.owed, 6);
        assert!(account.release(4));
        account.apply(&entry, Share { granted: Tokens::left(1), paid: 6 });
        assert_eq!((account.tokens, account.owed), (Tokens { left: 5, held: 6 }, 0), "2 of 6 were needed, 4 come back, 1 granted");
    }

    #[test]
    fn an_offer_taken_back_pays_debts_first() {
        let mut account = account(10);
        account.offer(SITE, Tokens::left(10), Tokens::NONE);
        account.issue(4);
        assert_eq!((account.tokens, account.owed), (Tokens::NONE, 6));
        account.withdraw();
        assert_eq!((account.tokens, account.owed), (Tokens::left(4), 0));
    }

    #[test]
    fn what_is_inherited_is_held_until_it_is_freed() {
        let mut account = account(10);
        account.inherit(&Booking { held: 12, owed: 3, issued: 8 }, 1);
        assert_eq!((account.tokens, account.owed), (Tokens { left: 7, held: 12 }, 0), "10 left pay 3 owed");
        assert_eq!((account.issued, account.settled), (18, 1));
        account.take_up(5, 0);
        account.take_up(5, 0);
        assert_eq!((account.tokens, account.freed), (Tokens { left: 12, held: 7 }, 5));
        account.take_up(5, 2);
        account.take_up(6, 2);
        assert_eq!(account.tokens, Tokens { left: 15, held: 4 });
    }

    #[test]
    fn what_is_taken_back_and_held_elsewhere_is_taken_back_when_it_comes() {
        let mut account = account(10);
        assert!(account.acquire(3));
        account.take_back(5);
        assert_eq!((account.tokens, account.returning), (Tokens::left(10), 2));
        assert!(account.acquire(1) && account.release(1) && account.acquire(1));
        assert_eq!((account.tokens, account.returning), (Tokens { left: 9, held: 1 }, 2), "a client holds it");
        let entry = account.offer(SITE, Tokens::left(4), Tokens { left: 0, held: 2 });
        account.apply(&entry, Share { granted: Tokens { left: 1, held: 3 }, paid: 0 });
        account.find(3);
        assert_eq!((account.tokens, account.returning), (Tokens { left: 8, held: 2 }, 0));
    }

    #[test]
    #[should_panic(expected = "a list is applied once")]
    fn a_list_is_not_applied_again() {
        let mut account = account(10);
        let entry = account.offer(SITE, Tokens::left(10), Tokens::NONE);
        let share = Share { granted: Tokens::left(12), paid: 0 };
        account.apply(&entry, share);
        account.apply(&entry, share);
    }
}
