//! The distance to a site from period to period: as it was, until two periods in a row say that it is another one.
//!
//! A score has no use for microseconds, and round trips are never the same twice: where loads and distances are alike, a score would
//! follow their noise. A round trip to a busy site waits there, so what such a period says is true only within what had to wait: its *margin*.

/// A distance is another one from this share of it on, in per cent …
pub const DISTANCE_PERCENT: u64 = 10;
/// … and this difference.
pub const DISTANCE_MICROS: u64 = 500;

/// What a period says of a distance: a round trip, microseconds, and by how much that may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeardDistance {
    /// The shortest round trip, without what it is thought to have waited.
    pub micros: u64,
    /// How long it is thought to have waited.
    pub margin: u64,
}

impl HeardDistance {
    /// By so much a distance may differ and be the same.
    fn step(self) -> u64 {
        (self.micros * DISTANCE_PERCENT / 100).max(DISTANCE_MICROS)
    }

    /// True if what had to wait could hide no other distance.
    fn is_sure(self) -> bool {
        self.margin <= self.step()
    }

    fn differs(self, from: HeardDistance) -> bool {
        self.micros.abs_diff(from.micros) > from.step().max(from.margin).max(self.margin)
    }
}

/// The distance to one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance {
    known: HeardDistance,
    /// What the last period said, if it was another distance.
    other: Option<HeardDistance>,
}

impl Distance {
    /// The first period has ended that says anything.
    pub fn new(first: HeardDistance) -> Distance {
        Distance { known: first, other: None }
    }

    /// Another period has. The first one that is sure needs no second.
    pub fn observe(&mut self, heard: HeardDistance) {
        if heard.is_sure() && !self.known.is_sure() {
            *self = Distance::new(heard);
            return;
        }
        self.other = match self.other {
            _ if !heard.differs(self.known) => None,
            Some(other) if !heard.differs(other) => {
                self.known = if other.micros < heard.micros { other } else { heard };
                None
            }
            _ => Some(heard),
        };
    }

    /// The distance, as a round trip in microseconds.
    pub fn micros(self) -> u64 {
        self.known.micros
    }
}
