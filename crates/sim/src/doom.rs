//! How a region is lost for good in a run: at once, or because one of its sites cannot go on with its folder.
//!
//! ```text
//!   snapshot ──▶ crash ──▶ another folder, or a damaged block ──▶ each start is refused ──▶ an operator gives the region up
//! ```

use crate::fault::{Fault, Replacement};
use crate::place::Place;
use rhumb_core::{RegionId, Rng, SiteId, Span, Time};

/// How likely a region is lost at once.
const AT_ONCE: f64 = 0.4;
/// How likely a site of the region has a damaged disk, if nothing is lost at once.
const DAMAGED: f64 = 0.2;
/// How long a site is down whose folder is replaced, or was copied.
const DOWN: Span = Span::from_millis(500);

/// The end of `region`, of which `site` is one, in the first `span` of a run.
pub(crate) fn draw(region: RegionId, site: SiteId, span: Span, rng: &mut Rng) -> Vec<(Time, Fault)> {
    let mut times: Vec<Time> = (0..4).map(|_| Time::from_micros(rng.below(span.as_micros()))).collect();
    times.sort();
    if rng.chance(AT_ONCE) {
        return vec![(times[2], Fault::Lose { place: Place::Region(region) })];
    }
    let given_up = (times[3], Fault::GiveUp { region });
    if rng.chance(DAMAGED) {
        return vec![(times[2], Fault::Damage { site }), given_up];
    }
    let with = *rng.pick(&Replacement::ALL).expect("there are some to pick from");
    vec![
        (times[0], Fault::TakeSnapshot { site }),
        (times[1], Fault::Crash { place: Place::Site(site), down: Some(DOWN) }),
        (times[2], Fault::ReplaceFolder { site, with, down: DOWN }),
        given_up,
    ]
}
