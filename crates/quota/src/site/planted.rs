//! How tokens are handled where a rule of that is broken.

use crate::account::Account;
use crate::list::{Entry, List, Share};
use crate::lost::Booking;
use crate::planted::Planted;
use crate::tokens::Tokens;
use rhumb_core::{Rules, SiteId};

/// Algorithm 2 as printed: each site refused, in ascending order, adds its tokens to the spare ones once more.
pub fn share(rules: Rules<Planted>, list: &List, site: SiteId) -> Option<Share> {
    let total = |kind: fn(&Entry) -> u64| -> u64 { list.entries.iter().map(kind).sum() };
    let (mut spare, wanted) = (total(|entry| entry.offered.left), total(|entry| entry.wanted.left));
    if !rules.breaks(Planted::AsPrinted) || wanted <= spare || total(|entry| entry.owed) > 0 {
        return None;
    }
    let mut entries: Vec<Entry> = list.entries.clone();
    entries.sort_by_key(|entry| entry.wanted.left);
    for entry in &mut entries {
        entry.wanted.left = 0;
        spare += entry.offered.left;
        if wanted <= spare {
            break;
        }
    }
    let of_site = entries.iter().find(|entry| entry.site == site).expect("it is a member");
    let granted: u64 = entries.iter().map(|entry| entry.wanted.left).sum();
    let rest = spare.saturating_sub(granted) / entries.len() as u64;
    let held = list.share(site).expect("it is a member").granted.held;
    Some(Share { granted: Tokens { left: of_site.wanted.left + rest, held }, paid: 0 })
}

/// Applies a list again that was applied before, without asking for its version.
pub fn replays(rules: Rules<Planted>, account: &mut Account, entry: &Entry, share: Share) -> bool {
    let again = rules.breaks(Planted::SlotReplay) && entry.version != account.version;
    if again {
        account.tokens += share.granted;
    }
    again
}

/// Of what is to be taken back, what other sites hold is left there.
pub fn forget_what_is_held_elsewhere(rules: Rules<Planted>, account: &mut Account) {
    if rules.breaks(Planted::HeldLeftAbove) {
        account.returning = 0;
    }
}

/// What an heir has just taken over is left to be given out.
pub fn leave_lost_share(rules: Rules<Planted>, booking: &Booking, account: &mut Account) {
    if rules.breaks(Planted::LostShareLeft) {
        account.take_back(booking.held);
    }
}
