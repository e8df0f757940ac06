//! What each region's client asks for, and when: the series, phase-shifted by the regions' time differences.
//!
//! All machines created or deleted within one interval of the trace are asked for at moments spread over that interval
//! at random, from the seed. A deletion whose machine was never granted asks for nothing: the client notices, not this.

use super::parameters::REGIONS;
use super::series::{Point, stretch};
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
        Demand { points: region_stretch(region, points).iter(), interval, began: Span::ZERO, rng, pending: Vec::new() }
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

/// How many tokens clients would hold if nothing were ever refused, at the end of each point of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// By region.
    pub regions: Vec<Vec<u64>>,
    /// Over all regions.
    pub total: Vec<u64>,
}

impl Level {
    /// The level over `points` points. A region's client starts with no tokens and never holds fewer.
    pub fn of(points: usize) -> Level {
        let regions: Vec<Vec<u64>> = (0..REGIONS.len())
            .map(|region| {
                let mut held = 0_u64;
                let step = |point: &Point| {
                    held = (held + u64::from(point.created)).saturating_sub(u64::from(point.deleted));
                    held
                };
                region_stretch(region, points).iter().map(step).collect()
            })
            .collect();
        let total = (0..points).map(|point| regions.iter().map(|region| region[point]).sum()).collect();
        Level { regions, total }
    }

    /// The mean of a region's level, over all regions and points.
    pub fn mean(&self) -> f64 {
        let points = (self.regions.len() * self.total.len()).max(1);
        self.total.iter().sum::<u64>() as f64 / points as f64
    }

    /// The highest level of any region.
    pub fn max(&self) -> u64 {
        self.regions.iter().flatten().copied().max().unwrap_or(0)
    }

    /// The highest level of all regions together.
    pub fn total_max(&self) -> u64 {
        self.total.iter().copied().max().unwrap_or(0)
    }

    /// The share of the time in which all regions together would hold more than `limit`.
    pub fn share_above(&self, limit: u64) -> f64 {
        self.total.iter().filter(|total| **total > limit).count() as f64 / self.total.len().max(1) as f64
    }
}

fn region_stretch(region: usize, points: usize) -> &'static [Point] {
    let behind = REGIONS.iter().map(|region| region.utc_hours).min().expect("there are regions");
    let ahead = |hours: i64| usize::try_from(hours - behind).expect("no region is further behind");
    let most = REGIONS.iter().map(|region| ahead(region.utc_hours)).max().expect("there are regions");
    stretch(points, ahead(REGIONS[region].utc_hours), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Span = Span::from_secs(5);

    #[test]
    fn demand_comes_in_order_and_holds_every_creation_and_deletion() {
        let demand: Vec<_> = Demand::new(1, 30, INTERVAL, Rng::seeded(3)).collect();
        assert!(demand.is_sorted_by_key(|(at, _)| *at));
        let points = region_stretch(1, 30);
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

    #[test]
    fn the_published_series_asks_for_far_more_than_the_papers_limit() {
        let level = Level::of(720);
        assert_eq!((level.max(), level.total_max()), (9_597, 29_787));
        assert_eq!(level.mean().round(), 4_014.0);
        assert!(level.share_above(5_000) > 0.92);
    }
}
