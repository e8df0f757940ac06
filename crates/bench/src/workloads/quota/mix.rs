//! What clients ask for next: as the creations and deletions of virtual machines in the shipped trace, or by shares.

use super::trace::{Demand, REGIONS, Want};
use rhumb_core::{Rng, Span};
use std::fmt;
use std::str::FromStr;

/// Points of the trace that a region goes through before it begins again: five days, five minutes each.
const POINTS: usize = 5 * 24 * 12;
/// What is asked for within one point comes in random order. How long a point lasts makes no difference: clients ask as fast as they can, or as told.
const INTERVAL: Span = Span::from_secs(5);

/// What clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Creations acquire and deletions release, in the order of the trace; each region is at another hour of the day.
    Trace,
    /// So many acquisitions to so many releases.
    Shares(u32, u32),
}

impl FromStr for Mix {
    type Err = String;
    fn from_str(text: &str) -> Result<Mix, String> {
        if text == "trace" {
            return Ok(Mix::Trace);
        }
        let shares = text.split_once(':').and_then(|(acquire, release)| Some((acquire.parse().ok()?, release.parse().ok()?)));
        match shares {
            Some((acquire, release)) if acquire > 0 => Ok(Mix::Shares(acquire, release)),
            _ => Err("expected `trace`, or ACQUIRE:RELEASE, such as 50:50".to_owned()),
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mix::Trace => f.write_str("mix of the trace"),
            Mix::Shares(acquire, release) => write!(f, "mix {acquire}:{release}"),
        }
    }
}

/// What the clients of one region ask for, one after the other, and what they hold.
pub struct Wants {
    mix: Mix,
    region: usize,
    rng: Rng,
    demand: Demand,
    /// Tokens that the region's clients hold and have not asked to release.
    held: u64,
}

impl Wants {
    /// Those of the region with this number.
    pub fn new(mix: Mix, region: usize, mut rng: Rng) -> Wants {
        let region = region % REGIONS.len();
        let demand = Demand::new(region, POINTS, INTERVAL, rng.fork());
        Wants { mix, region, rng, demand, held: 0 }
    }

    /// What is asked for next. Nobody releases what is not held: then the next acquisition is.
    pub fn next(&mut self) -> Want {
        let want = match self.mix {
            Mix::Shares(acquire, release) if self.rng.below(u64::from(acquire) + u64::from(release)) >= u64::from(acquire) => Want::Release,
            Mix::Shares(..) => Want::Acquire,
            Mix::Trace => self.of_trace(),
        };
        if want == Want::Release && self.held > 0 {
            self.held -= 1;
            return Want::Release;
        }
        Want::Acquire
    }

    fn of_trace(&mut self) -> Want {
        if let Some((_, want)) = self.demand.next() {
            return want;
        }
        self.demand = Demand::new(self.region, POINTS, INTERVAL, self.rng.fork());
        Want::Acquire
    }

    /// So many tokens were acquired.
    pub fn got(&mut self, tokens: u64) {
        self.held += tokens;
    }

    /// Takes all that is held, to give it back.
    pub fn take_held(&mut self) -> u64 {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept_as_long_as_something_is_held() {
        let mut wants = Wants::new(Mix::Shares(3, 1), 0, Rng::seeded(1));
        let mut releases = 0;
        for _ in 0..10_000 {
            match wants.next() {
                Want::Acquire => wants.got(1),
                Want::Release => releases += 1,
            }
        }
        assert!((2_350..2_650).contains(&releases), "{releases}");
        assert_eq!(wants.take_held(), 10_000 - 2 * releases);
        assert_eq!(wants.next(), Want::Acquire);
    }

    #[test]
    fn the_trace_begins_again_at_its_end() {
        let mut wants = Wants::new(Mix::Trace, 7, Rng::seeded(1));
        let length = Demand::new(2, POINTS, INTERVAL, Rng::seeded(1)).count();
        let releases = (0..length + 1_000).filter(|_| {
            wants.got(1);
            wants.next() == Want::Release
        });
        assert!(releases.count() > length / 3);
    }

    #[test]
    fn a_mix_is_written_as_shares_or_as_the_trace() {
        assert_eq!("50:50".parse(), Ok(Mix::Shares(50, 50)));
        assert_eq!("trace".parse(), Ok(Mix::Trace));
        for wrong in ["", "50", "0:1", "-1:2", "a:b"] {
            assert!(wrong.parse::<Mix>().is_err(), "{wrong}");
        }
    }
}
