//! The distance to a site from period to period: as it was, until two periods in a row say that it is another one.
//!
//! A score has no use for microseconds, and round trips are never the same twice: where loads and distances are alike, a score would
//! follow their noise.

/// A distance is another one from this share of it on, in per cent …
pub const DISTANCE_PERCENT: u64 = 10;
/// … and this difference.
pub const DISTANCE_MICROS: u64 = 500;

/// The distance to one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance {
    micros: u64,
    /// What the last period said, if it was another distance.
    other: Option<u64>,
}

impl Distance {
    /// The first period has ended, with this shortest round trip.
    pub fn new(micros: u64) -> Distance {
        Distance { micros, other: None }
    }

    /// Another period has.
    pub fn observe(&mut self, micros: u64) {
        let differs = |from: u64| micros.abs_diff(from) > (from * DISTANCE_PERCENT / 100).max(DISTANCE_MICROS);
        self.other = match self.other {
            _ if !differs(self.micros) => None,
            Some(other) if !differs(other) => {
                self.micros = micros.min(other);
                None
            }
            _ => Some(micros),
        };
    }

    /// The distance, as a round trip in microseconds.
    pub fn micros(self) -> u64 {
        self.micros
    }
}
