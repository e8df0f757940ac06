//! How long other sites take to answer a call, so that no leader gives up a site that is only slow: a slow disk, or a far one.
//!
//! What counts is a site's answer to a redistribution that this site leads: a trip there and back, the caller's own sync and the
//! answerer's. Answers that come after the leader has gone on count too, or it would never learn.

use rhumb_core::SiteId;
use std::collections::{BTreeMap, BTreeSet};

/// An answer that took longer is no measure: the call, or the answer, was sent again.
const ANSWER_TICKS_MAX: u32 = 24;

/// A redistribution that this site leads, or has led.
#[derive(Debug)]
pub struct Calling {
    at: u64,
    heard: BTreeSet<SiteId>,
}

impl Calling {
    /// One that began at that tick of the site.
    pub fn new(at: u64) -> Calling {
        Calling { at, heard: BTreeSet::new() }
    }
}

/// How long each site took to answer.
#[derive(Debug, Default)]
pub struct Pace {
    ticks: BTreeMap<SiteId, u32>,
}

impl Pace {
    /// `site` has answered a call at that tick. A slower answer counts at once, faster ones bit by bit.
    pub fn answered(&mut self, calling: &mut Calling, site: SiteId, now: u64) {
        if !calling.heard.insert(site) {
            return;
        }
        let took = u32::try_from(now - calling.at).unwrap_or(u32::MAX).min(ANSWER_TICKS_MAX);
        let known = self.ticks.entry(site).or_default();
        *known = took.max(*known - (*known - took.min(*known)).div_ceil(4));
    }

    /// Only these sites are asked any more.
    pub fn retain(&mut self, is_asked: impl Fn(SiteId) -> bool) {
        self.ticks.retain(|site, _| is_asked(*site));
    }

    /// How long the slowest took.
    pub fn slowest(&self) -> u32 {
        self.ticks.values().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SiteId = SiteId::new(0, 0);
    const B: SiteId = SiteId::new(1, 0);

    fn answered(pace: &mut Pace, site: SiteId, took: u64) {
        pace.answered(&mut Calling::new(100), site, 100 + took);
    }

    #[test]
    fn the_slowest_counts_and_is_forgotten_bit_by_bit() {
        let mut pace = Pace::default();
        assert_eq!(pace.slowest(), 0);
        answered(&mut pace, A, 3);
        answered(&mut pace, B, 11);
        assert_eq!(pace.slowest(), 11);
        let slowest = [9, 7, 6, 5, 4, 3, 3].map(|_| {
            answered(&mut pace, B, 3);
            pace.slowest()
        });
        assert_eq!(slowest, [9, 7, 6, 5, 4, 3, 3]);
        answered(&mut pace, B, 1_000);
        assert_eq!(pace.slowest(), ANSWER_TICKS_MAX);
    }

    #[test]
    fn only_the_first_answer_of_a_site_to_a_call_counts() {
        let mut pace = Pace::default();
        let mut calling = Calling::new(7);
        pace.answered(&mut calling, A, 9);
        pace.answered(&mut calling, A, 20);
        pace.answered(&mut calling, B, 12);
        assert_eq!(pace.slowest(), 5);
    }
}
