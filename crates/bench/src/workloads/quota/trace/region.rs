//! The regions whose clients replay the series, each at another hour of the day.

use super::series::{Point, stretch};

/// A region with clients, and the difference of its standard time to UTC. Daylight saving is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name, as in the profile `paper_samya_5`.
    pub name: &'static str,
    /// Hours ahead of UTC.
    pub utc_hours: i64,
}

/// The five regions of Samya's section 5.2, in the order of the profile `paper_samya_5`.
pub const REGIONS: [Region; 5] = [
    Region { name: "us-west1", utc_hours: -8 },
    Region { name: "asia-east2", utc_hours: 8 },
    Region { name: "europe-west2", utc_hours: 0 },
    Region { name: "australia-southeast1", utc_hours: 10 },
    Region { name: "southamerica-east1", utc_hours: -3 },
];

/// The `points` points that region number `region` replays.
pub fn stretch_of(region: usize, points: usize) -> &'static [Point] {
    let behind = REGIONS.iter().map(|region| region.utc_hours).min().expect("there are regions");
    let ahead = |hours: i64| usize::try_from(hours - behind).expect("no region is further behind");
    let most = REGIONS.iter().map(|region| ahead(region.utc_hours)).max().expect("there are regions");
    stretch(points, ahead(REGIONS[region].utc_hours), most)
}
