//! Counts on which the catalog decides: what lost sites have of a quota ([`lost`](crate::lost)), and how many tokens of a dropped one clients hold
//! ([`catalog`](crate::catalog)). The first site that is not lost leads them, and proposes what follows.

use super::Site;
use crate::catalog::{Change, QuotaId};
use crate::count::Tally;
use crate::info::SiteTokens;
use crate::lost::Counted;
use rhumb_core::Effects;
use std::collections::{BTreeMap, BTreeSet};

/// Quotas of which one change of the catalog says what was counted at the most.
const COUNTED_MAX: usize = 256;
/// A count that could not settle is tried again after so many ticks, then twice as many each time,
const AGAIN_TICKS: u32 = 10;
/// but so many at the most while a site does not answer, for that may last,
const SILENT_TICKS_MAX: u32 = 160;
/// and so many while one is in a redistribution, which is soon over.
const BUSY_TICKS_MAX: u32 = 40;

/// When a site counts a quota, for the catalog to decide what lost sites have of it, or that it ends.
#[derive(Debug)]
pub struct Settling {
    /// Ticks until it does.
    wait: u32,
    /// The wait after that one.
    next: u32,
    /// What was counted.
    counted: Option<Counted>,
}

impl Settling {
    /// At once.
    fn new() -> Settling {
        Settling { wait: 0, next: AGAIN_TICKS, counted: None }
    }

    /// True if it is time to count.
    pub fn is_due(&self) -> bool {
        self.wait == 0 && self.counted.is_none()
    }

    /// A count is begun; it may come to nothing.
    pub fn begin(&mut self) {
        self.wait = self.next;
    }

    /// It came to nothing, as some site did not answer.
    pub fn unanswered(&mut self) {
        self.next = (2 * self.next).min(SILENT_TICKS_MAX);
    }

    /// It came to nothing, though all answer: some are redistributing.
    pub fn void(&mut self) {
        self.next = (2 * self.next).min(BUSY_TICKS_MAX);
    }

    /// Time passes.
    pub fn tick(&mut self) {
        self.wait = self.wait.saturating_sub(1);
    }
}

impl Site {
    /// The first site that is not lost has quotas counted of which it is not settled what lost sites have, and those that end.
    pub(super) fn plan_counts(&mut self) {
        let losses = self.cluster.losses();
        let is_heir = self.cluster.heir(losses) == self.cluster.me;
        let may_end = if is_heir { self.catalog.definitions().may_end() } else { BTreeSet::new() };
        for (id, quota) in &mut self.quotas {
            let is_unsettled = is_heir && quota.definition.settled.losses < losses;
            if !is_unsettled && !may_end.contains(id) {
                quota.settling = None;
            } else if quota.settling.is_none() {
                quota.settling = Some(Settling::new());
                self.active.insert(*id);
            }
        }
    }

    /// Those that are not lost were counted, all knowing the quota alike: what is missing, the lost ones have; and what clients hold is known.
    pub(super) fn take_count(&mut self, id: QuotaId, tally: &Tally, fx: &mut Effects<Site>) {
        let Some(terms) = tally.terms.filter(|terms| *terms == self.terms(id)) else { return };
        let made = &self.catalog.definitions().made;
        let parts = made.parts(terms.limit, made.inherited(terms.settled, terms.losses), terms.losses);
        let number = |tokens: u64| i64::try_from(tokens).expect("limits leave room for the sum of all tokens");
        let total = |site: &SiteTokens| number(site.left + site.held + site.offered) - number(site.owed);
        let beyond = number(terms.limit) - tally.tokens.iter().map(total).sum::<i64>() - number(parts);
        if let Some(settling) = self.quotas.get_mut(&id).and_then(|quota| quota.settling.as_mut()) {
            fx.count(if terms.settled < terms.losses { "quota.lost.counted" } else { "quota.closing.counted" });
            settling.counted = Some(Counted { beyond, held: tally.held_by_clients(), in_doubt: tally.in_doubt });
        }
    }

    /// Has the catalog decide what follows from counts, of some quotas at a time.
    pub(super) fn decide_counts(&mut self, fx: &mut Effects<Site>) {
        let losses = self.cluster.losses();
        let (mut booked, mut ended) = (BTreeMap::new(), BTreeMap::new());
        for id in &self.active {
            let Some(quota) = self.quotas.get(id) else { continue };
            let Some(counted) = quota.settling.as_ref().and_then(|settling| settling.counted) else { continue };
            if quota.definition.settled.losses < losses {
                booked.insert(*id, counted);
            } else {
                ended.insert(*id, counted.held);
            }
            if booked.len().max(ended.len()) == COUNTED_MAX {
                break;
            }
        }
        if !booked.is_empty() {
            self.with_catalog(fx, |catalog, out| catalog.propose_own(Change::Book { losses, counted: booked }, out));
        }
        if !ended.is_empty() {
            self.with_catalog(fx, |catalog, out| catalog.propose_own(Change::End { losses, held: ended }, out));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins a count and lets it end so. The ticks until the next.
    fn again_after(settling: &mut Settling, end: fn(&mut Settling)) -> usize {
        settling.begin();
        end(settling);
        (0..)
            .find(|_| {
                let is_due = settling.is_due();
                settling.tick();
                is_due
            })
            .expect("it is tried again")
    }

    #[test]
    fn silence_puts_the_next_count_off_longer_than_busy_sites_do() {
        let mut settling = Settling::new();
        assert!(settling.is_due());
        let silent = [0; 6].map(|_| again_after(&mut settling, Settling::unanswered));
        assert_eq!(silent, [10, 20, 40, 80, 160, 160]);
        let busy = [0; 3].map(|_| again_after(&mut settling, Settling::void));
        assert_eq!(busy, [160, 40, 40]);
    }
}
