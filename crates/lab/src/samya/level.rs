//! How many tokens all clients would hold together if nothing were ever refused: what limits are chosen by.

use super::parameters::REGIONS;
use rhumb_bench::workloads::quota::trace::{Point, stretch_of};

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
                stretch_of(region, points).iter().map(step).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_series_asks_for_far_more_than_the_papers_limit() {
        let level = Level::of(720);
        assert_eq!((level.max(), level.total_max()), (9_597, 29_787));
        assert_eq!(level.mean().round(), 4_014.0);
        assert!(level.share_above(5_000) > 0.92);
    }
}
