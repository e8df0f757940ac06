//! The bound for worst client and percentile: how many clients can be served in time.
//!
//! The objective is no worse than the incumbent only if enough clients have a latency within it. For one family, let t(c) be
//! the longest length of client c at which its latency can still be within the incumbent, if all its other families are at
//! their own bounds. If i of the sites chosen are within t(c), N = q − i more must be. Give each such pick 1/N of the weight
//! of c: then the clients that r picks serve weigh no more than those that need no pick, and the r largest sums. If that
//! is too little, no completion is as good as the incumbent; and a site with which it stays too little is closed.
//!
//! Weights are counted in multiples of 1/[`PARTS`], which every N up to [`NEED_MAX`] divides, so nothing is rounded; a
//! client that needs more picks than that is given away.

use super::order_statistic::OrderStatistic;
use super::relaxation::Relaxation;

/// The most picks that one client is counted to need.
const NEED_MAX: usize = 6;
/// The least common multiple of all numbers up to it.
const PARTS: u128 = 60;

/// How many clients can be served.
pub(super) struct Coverage {
    /// In parts: those of clients who need no pick.
    served: u128,
    /// In parts: what each open site adds.
    adds: Vec<u128>,
}

impl Coverage {
    /// Of the family at `place`: which clients have a latency of at most `within_ns`, where `chosen` are chosen and `missing`
    /// more will be, out of `open`; `bounds` have just been computed for these.
    pub fn new(
        relaxation: &Relaxation,
        place: usize,
        weights: &[u64],
        bounds: &OrderStatistic,
        within_ns: u64,
        (chosen, open, missing): (&[usize], &[usize], usize),
    ) -> Coverage {
        let family = &relaxation.families[place];
        let mut coverage = Coverage { served: 0, adds: vec![0; open.len()] };
        for (client, &weight) in weights.iter().enumerate() {
            let others = bounds.last_ns()[client] - bounds.part_ns(place)[client];
            let Some(left) = within_ns.checked_sub(others) else { continue };
            let in_time = |site: usize| family.value_ns(client, family.row(client)[site]) <= left;
            let need = family.order.saturating_sub(chosen.iter().filter(|&&site| in_time(site)).count());
            let parts = PARTS * u128::from(weight);
            if need == 0 || need > NEED_MAX {
                coverage.served += parts;
            } else if need <= missing {
                let each = parts / need as u128;
                for (adds, &site) in coverage.adds.iter_mut().zip(open) {
                    *adds += if in_time(site) { each } else { 0 };
                }
            }
        }
        coverage
    }

    /// Which of the open sites are in a placement that may serve at least `needed` (by weight), with `missing` picks.
    pub fn may_serve(&self, needed: u64, missing: usize) -> Vec<bool> {
        let mut largest = self.adds.clone();
        largest.sort_unstable_by(|a, b| b.cmp(a));
        let others: u128 = largest.iter().take(missing - 1).sum();
        let needed = PARTS * u128::from(needed);
        self.adds.iter().map(|adds| self.served + others + adds >= needed).collect()
    }
}
