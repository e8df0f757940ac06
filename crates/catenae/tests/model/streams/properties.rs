//! What holds of the sites together at any time.

use super::part::Part;
use super::{QUORUM, REGIONS};
use rhumb_catenae::message::Entry;

/// See [`super::DURABLE`].
pub fn is_durable<'a>(parts: [&Part; REGIONS], mut chosen: impl Iterator<Item = (u64, &'a Entry)>) -> bool {
    chosen.all(|(index, entry)| parts.iter().filter(|part| part.disk.holds(index, entry)).count() >= QUORUM)
}

/// See [`super::KEPT`]. Whatever crashes, a site misses no more than what follows on its durable progress.
pub fn is_kept(parts: [&Part; REGIONS]) -> bool {
    let tells = |teller: usize, other: usize| {
        let missed = parts[other].disk.settled() + 1..=parts[teller].agreement.view().chosen();
        teller == other || parts[teller].disk.has_all(missed)
    };
    (0..REGIONS).all(|teller| (0..REGIONS).all(|other| tells(teller, other)))
}

/// See [`super::COUNTED`].
pub fn is_counted(parts: [&Part; REGIONS]) -> bool {
    (0..REGIONS).all(|region| parts[region].counts(region))
}
