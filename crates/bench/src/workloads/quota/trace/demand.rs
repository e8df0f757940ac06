//! What each region's client asks for, and when: the series, phase-shifted by the regions' time differences.
//!
//! All machines created or deleted within one interval of the trace are asked for at moments spread over that interval
//! at random, from the seed. A deletion whose machine was never granted asks for nothing: the client notices, not this.

use super::region::stretch_of;
use super::series::Point;
use rhumb_core::{Rng, Span};

/// What a point of the trace asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Want {
    /// One more.
    Acquire,
    /// One less.
    Release,
}

/// The demand of one client: an iterator over moments since the start and what is wanted then, in order.
pub struct Demand {
    points: std::slice::Iter<'static, Point>,
    interval: Span,
    began: Span,
    rng: Rng,
    /// What is left of the present interval, latest first.
    pending: Vec<(Span, Want)>,
}

impl Demand {
    /// The demand of region number `region` over `points` points, `interval` apart.
    pub fn new(region: usize, points: usize, interval: Span, rng: Rng) -> Demand {
        Demand { points: stretch_of(region, points).iter(), interval, began: Span::ZERO, rng, pending: Vec::new() }
    }
}

impl Iterator for Demand {
    type Item = (Span, Want);

    fn next(&mut self) -> Option<(Span, Want)> {
        while self.pending.is_empty() {
            let point = self.points.next()?;
            let wants = [(point.created, Want::Acquire), (point.deleted, Want::Release)];
            for want in wants.iter().flat_map(|(count, want)| (0..*count).map(|_| *want)) {
                self.pending.push((self.began + Span::from_micros(self.rng.below(self.interval.as_micros())), want));
            }
            self.pending.sort_unstable_by(|one, other| other.cmp(one));
            self.began = self.began + self.interval;
        }
        self.pending.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Span = Span::from_secs(5);

    #[test]
    fn demand_comes_in_order_and_holds_every_creation_and_deletion() {
        let demand: Vec<_> = Demand::new(1, 30, INTERVAL, Rng::seeded(3)).collect();
        assert!(demand.is_sorted_by_key(|(at, _)| *at));
        let points = stretch_of(1, 30);
        let count = |want| demand.iter().filter(|(_, it)| *it == want).count() as u32;
        assert_eq!(count(Want::Acquire), points.iter().map(|point| point.created).sum::<u32>());
        assert_eq!(count(Want::Release), points.iter().map(|point| point.deleted).sum::<u32>());
        for (index, point) in points.iter().enumerate() {
            let (from, to) = (INTERVAL * index as u64, INTERVAL * (index as u64 + 1));
            let within = demand.iter().filter(|(at, _)| (from..to).contains(at)).count() as u32;
            assert_eq!(within, point.created + point.deleted);
        }
    }

    #[test]
    fn a_seed_decides_the_moments() {
        let draw = |seed| Demand::new(0, 2, INTERVAL, Rng::seeded(seed)).collect::<Vec<_>>();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
