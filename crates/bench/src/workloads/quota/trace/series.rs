//! The recorded demand: virtual machines created and deleted per five minutes in one region of Azure, in 2017.
//!
//! Azure Public Dataset V1, CC-BY 4.0 (Cortez et al., SOSP 2017; processed form Bergsma et al., SOSP 2021); see
//! `data/README.md`. Creations are exact; deletions are an estimate for machines that lived longer than an hour.

use serde::Deserialize;
use std::sync::LazyLock;

/// Points per hour as recorded.
const POINTS_PER_HOUR: usize = 12;

/// One point: what was asked for in five minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Point {
    /// When the five minutes ended, in seconds since the trace began.
    pub t_seconds: u64,
    /// Machines created.
    #[serde(rename = "vm_created")]
    pub created: u32,
    /// Machines deleted, estimated.
    #[serde(rename = "vm_deleted_est_total")]
    pub deleted: u32,
}

static SERIES: LazyLock<Vec<Point>> = LazyLock::new(|| {
    let text = include_str!("../../../../data/azure2017_vm_created_deleted_5min_9days.csv");
    csv::Reader::from_reader(text.as_bytes()).deserialize().collect::<Result<_, _>>().expect("the shipped series is checked by a test")
});

/// The whole series, in order of time.
pub fn series() -> &'static [Point] {
    &SERIES
}

/// The stretch of `points` points that a region replays whose clock is `hours_ahead` of the one furthest behind. Regions
/// that are ahead replay later parts of the day at the same moment; all stretches end within the series, the last of a
/// region `hours_ahead_max` ahead at its end.
pub fn stretch(points: usize, hours_ahead: usize, hours_ahead_max: usize) -> &'static [Point] {
    let series = series();
    let last = series.len() - (hours_ahead_max - hours_ahead) * POINTS_PER_HOUR;
    &series[last.saturating_sub(points)..last]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_has_nine_days_without_a_gap() {
        let series = series();
        assert_eq!(series.len(), 2_638);
        assert!(series.windows(2).all(|pair| pair[1].t_seconds == pair[0].t_seconds + 300));
        assert_eq!(series[0], Point { t_seconds: 1_800_000, created: 363, deleted: 65 });
        assert_eq!(series.iter().map(|point| u64::from(point.created)).sum::<u64>(), 669_435);
        assert_eq!(series.iter().map(|point| u64::from(point.deleted)).sum::<u64>(), 631_710);
    }

    #[test]
    fn a_region_an_hour_ahead_replays_what_another_will_in_an_hour() {
        let (behind, ahead) = (stretch(720, 0, 18), stretch(720, 1, 18));
        assert_eq!(behind[POINTS_PER_HOUR..], ahead[..720 - POINTS_PER_HOUR]);
        assert_eq!(stretch(720, 18, 18).last(), series().last());
    }
}
