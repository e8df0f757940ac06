//! Sites that are lost for good: their tokens are settled by a count, without minting any.
//!
//! ```text
//!   operator ──Lost(S)──▶ catalog ──▶ every other site: S takes part in nothing any more, whatever it says
//!                                       │ no redistribution is under way
//!                        heir: a count among all that are not lost: what is missing, the lost sites have
//!                                       │
//!                     ◀──Book(missing)──┘ decided once: the heir adds it to what clients *hold*
//!   operator ──Free(n)──▶ catalog, by any site: so many of them no client holds any more; the heir takes them back
//! ```
//!
//! # The rule
//!
//! 1. **Declaration.** The catalog decides that S is lost, if a majority of all sites remains. Losses are ordered, so their number
//!    names them. A site that knows of it sends S nothing but the catalog and takes nothing from S. S, should it live, learns
//!    of it from the first site that it speaks to, and serves quotas no more.
//! 2. **Closing.** Nobody adds S to a list. A list of `majority` that has S as a member is decided or not like any other: no message from S is
//!    needed. A
//!    list of `any` needs every member. Once all its members that are not lost have said that they hold it *and* know of the
//!    losses, none of them accepts messages of a lost member any more, and all end the list alike: decided if it leaves its lost members with
//!    more tokens than they put in, else dead ([`any`](crate::avantan::any)).
//! 3. **Count.** The *heir*, the first site that is not lost, has all that are not lost stand still at one moment
//!    ([`count`](crate::count)), none in a redistribution, all knowing the same losses, limit and bookings. What they have is, with
//!    what the lost sites have, the limit.
//! 4. **Booking.** The difference is decided in the catalog, for that number of losses; a booking for another number is void. The heir takes
//!    over the parts of the lost sites in the limit, for this and later limits, and all that they may have had is *held* by clients.
//! 5. **Freeing.** An operator who knows that clients hold less frees the rest, of that quota alone: what the lost site gave out below it, it
//!    booked there. The catalog decides it, so that no more is freed than is booked, whichever sites are asked; and knows the last request ids,
//!    so that who asks again, at whichever site, frees once. The heir takes the tokens back: those that are held at other sites come to it by
//!    redistributions. If it is lost, nobody knows which of them it had found: the next booking begins with all that was booked, as far as others
//!    hold as many, and nothing of it is freed.
//!
//! # Why it is safe
//!
//! *Nothing is minted or lost.* In a count nothing is on its way, so left + held - owed over all sites, lost ones included, is the
//! limit. Let `beyond` be what lists brought a site, less what they took: its tokens less its part of the limit, whatever
//! the limit is. Over all sites it adds up to nothing, so the lost ones have minus what the others have. It stays so: every later list
//! is among sites that know of the losses, and its changes add up to nothing among them. The catalog books once for a number of losses,
//! and sites that stood still for it have applied all earlier bookings.
//!
//! *The lost site never has more than was booked.* It changes `beyond` only by applying a list that was decided.
//! `majority`: the others stood still in no redistribution, so of every list that holds an offer of theirs the outcome is known, and each list
//! holds one. S knows no more lists than they do. If it lacks the last one, what it offered there stays frozen.
//! `any`: S may have applied or refused a list that the others had to end without it. Their `AcceptOk` shows that none of them has applied it before.
//! If it counts as decided, S has at most what the list gives it, which is booked; had it refused, it has less. If it counts as dead, S has at most
//! what it had before, which is booked; had it applied it, it has less. Of several lost members the same holds for their sum, and the limit binds the
//! sum; also if one of them has ended the list by this very rule, when fewer were lost: with these it had no more by that than the rule, which
//! counts a list as decided for what it leaves them, assumes of all.
//!
//! *An offer may be in two such lists.* S may have refused a list unheard, offered the same tokens in another one, and be lost before the others end
//! the first. Both may count as decided then, though S has applied one of them at the most. That mints nothing: what S has beyond its part is the
//! sum of what each list changed for it, nothing for one that it has not applied; and the argument above bounds each list by itself. What is booked
//! is the sum of these bounds, as among the others every list has one outcome. An offer of a site that is not lost is in one such list at the most:
//! the site needs to have accepted it, and then is in no other until it has ended.
//!
//! *Limits.* S may not have heard of a lowered limit, or its clients hold more than its part since. A site has left + held + offered =
//! issued + owed + beyond, and issued + owed is at most its part of the highest limit that it ever heard of. So it is booked as held with
//! that, and as owed with the difference, which is collected as any debt is. It hears that it is lost before it hears of anything decided
//! later: what the limit was raised by since then is issued to the heir, as long as it is the first change of it since then; of several
//! the last counts so.
//!
//! *What may be freed.* All that may count as held too much. That is what is booked; and what members of a list of `any` hold by its outcome, and
//! would not by the other, which S may know: then their clients may have released at S. They keep that in mind ([`in_doubt`](crate::account::Account))
//! until it is booked. When the heir is lost it is unknown where the tokens are that it had taken over, and which of those it had found that it
//! was to take back: as many as the others hold may be among these.
//!
//! *Quotas that end.* A dropped quota is counted like a lost site's tokens, by the same heir, and what clients held of it is taken back above it
//! ([`catalog`](crate::catalog)). What is booked there, and not freed, may be held by no client of it, so that clients of the quota above would hold
//! more than counts. So as many stay held above, and may be freed there: they are booked there as well, some
//! perhaps for the second time, as the lost site had tokens of both. How many, no site knows: what an operator frees is what counts as held beyond what
//! clients hold.
//!
//! *What S does after the declaration* it does with tokens that are booked as held, so that clients never hold more than
//! was issued, however long it is cut off.
//!
//! What an operator sees of all this, and risks: `docs/http.md`, "A site is lost".

use rhumb_core::SiteId;
use serde::{Deserialize, Serialize};

/// A site that was declared lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Loss {
    /// Which.
    pub site: SiteId,
    /// Its place among all sites, from 0: which part of a limit was its own.
    pub rank: u32,
}

/// How far the parts that lost sites have in a quota are settled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Settled {
    /// The first so many lost sites: their heir has their parts.
    pub losses: u32,
    /// What the heir took over with the last of them; none: the quota is younger than they are.
    pub booking: Option<Booking>,
    /// Tokens that count as held for lost sites, by this and earlier bookings, but for those freed before there was this heir.
    pub booked: u64,
    /// Of these, those that operators have freed.
    pub freed: u64,
    /// Tokens that ended quotas below this one have given back since there was this heir, which takes them back. Of ever new quotas, so many that
    /// 64 bits do not hold their sum.
    pub returned: u128,
}

/// What sites that are not lost have counted of a quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counted {
    /// What the lost ones have beyond their parts of the limit.
    pub beyond: i64,
    /// Tokens that clients hold by the accounts of the others,
    pub held: u64,
    /// and those of them that clients may have released at a lost site.
    pub in_doubt: u64,
}

/// What an heir takes over of a quota.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Booking {
    /// As many tokens as the lost sites may have given out.
    pub held: u64,
    /// Of these, those by which they may exceed what was theirs since the limit was lowered.
    pub owed: u64,
    /// Their parts of the limit, without what it was raised by since the loss.
    pub issued: u64,
}

/// What sites that stand still have to agree on before it is known what the others have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Terms {
    /// The limit.
    pub limit: u64,
    /// How many sites are lost.
    pub losses: u32,
    /// For how many of them that is settled.
    pub settled: u32,
    /// No client can use it any more.
    pub closing: bool,
    /// What operators have freed,
    pub freed: u64,
    /// and ended quotas below have given back.
    pub returned: u128,
}

impl Settled {
    /// Of a quota that is made when so many sites are lost.
    pub fn from_the_start(losses: usize) -> Settled {
        Settled { losses: u32::try_from(losses).expect("a cluster has few sites"), ..Settled::default() }
    }

    /// Books what lost sites have beyond their parts, of this limit, as far as they may have heard of it, and of the highest; once for a number
    /// of losses.
    pub fn book(&mut self, losses: u32, counted: Counted, parts: u64, parts_max: u64) {
        if self.losses >= losses {
            return;
        }
        let total = i128::from(counted.beyond) + i128::from(parts);
        // A site never owes more than it may have given out.
        let held = u64::try_from(i128::from(counted.beyond) + i128::from(parts_max)).unwrap_or(0);
        let owed = u64::try_from(i128::from(held) - total).unwrap_or(0);
        self.booked += held + counted.in_doubt;
        self.losses = losses;
        self.booking = Some(Booking { held, owed, issued: parts });
    }

    /// The heir is lost as well, and another is to take over what so many lost sites had. What the first had taken over, and was to take back, is
    /// booked again as far as it was there. As much as it had not found, or has given to others, these may have among those that they `held`.
    pub fn change_heir(&mut self, losses: u32, held: u64) {
        if self.losses < losses {
            let not_found = u64::try_from(u128::from(self.booked) + self.returned).unwrap_or(u64::MAX);
            self.booked = not_found.min(held);
            (self.freed, self.returned) = (0, 0);
        }
    }

    /// A quota `below` has ended, of which clients `held` so many tokens: of this one no more. Those that are booked there, and not freed, may be
    /// none that clients held. They stay held here, and may be freed here.
    pub fn take_over(&mut self, below: &Settled, held: u64) {
        let unknown = (below.booked - below.freed).min(held);
        self.returned += u128::from(held - unknown);
        // It bounds what may be freed.
        self.booked = self.booked.saturating_add(unknown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(beyond: i64) -> Counted {
        Counted { beyond, ..Counted::default() }
    }

    #[test]
    fn what_lost_sites_may_have_given_out_is_held_and_what_is_not_theirs_is_owed() {
        let mut settled = Settled::default();
        settled.book(1, beyond(-4), 20, 50);
        let booking = Booking { held: 46, owed: 30, issued: 20 };
        assert_eq!((settled.losses, settled.booking, settled.booked), (1, Some(booking), 46), "16 are theirs");
    }

    #[test]
    fn a_number_of_losses_is_booked_once() {
        let mut settled = Settled::default();
        settled.book(2, beyond(3), 10, 10);
        let first = settled.clone();
        settled.book(2, beyond(9), 10, 10);
        settled.book(1, beyond(9), 10, 10);
        assert_eq!(settled, first);
        settled.freed = 6;
        settled.book(3, beyond(0), 5, 5);
        assert_eq!((settled.booked, settled.freed, settled.booking.map(|booking| booking.held)), (18, 6, Some(5)));
    }

    #[test]
    fn a_new_heir_takes_over_all_that_others_may_hold() {
        let mut settled = Settled::default();
        settled.book(1, beyond(0), 10, 10);
        (settled.freed, settled.returned) = (4, 3);
        let booked_for_another = |held| {
            let mut settled = settled.clone();
            settled.change_heir(2, held);
            settled.book(2, beyond(0), 20, 20);
            settled.change_heir(2, 0);
            (settled.booked, settled.freed, settled.returned)
        };
        assert_eq!(booked_for_another(0), (20, 0, 0), "what the first heir had is booked again");
        assert_eq!(booked_for_another(7), (27, 0, 0), "it may not have found any of what was freed");
        assert_eq!(booked_for_another(50), (33, 0, 0), "or of what was given back");
    }

    #[test]
    fn what_is_booked_below_stays_held_above_and_may_be_freed() {
        let mut below = Settled::default();
        below.book(1, beyond(0), 10, 10);
        below.freed = 4;
        let given_back = |held| {
            let mut above = Settled::default();
            above.take_over(&below, held);
            (above.returned, above.booked)
        };
        assert_eq!([0, 5, 6, 9].map(given_back), [(0, 0), (0, 5), (0, 6), (3, 6)]);
    }

    #[test]
    fn what_clients_may_have_released_at_a_lost_site_may_be_freed() {
        let mut settled = Settled::default();
        settled.book(1, Counted { held: 9, in_doubt: 3, ..beyond(0) }, 10, 10);
        assert_eq!((settled.booked, settled.booking.map(|booking| booking.held)), (13, Some(10)));
    }

    #[test]
    fn a_quota_made_later_owes_nothing_to_a_lost_site() {
        let mut settled = Settled::from_the_start(1);
        settled.book(1, beyond(0), 10, 10);
        assert_eq!(settled, Settled::from_the_start(1));
    }
}
