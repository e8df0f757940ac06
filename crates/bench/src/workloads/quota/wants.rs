//! What the clients of a region ask for next, and what they hold.

use super::mix::Mix;
use super::trace::{Demand, REGIONS, Want};
use rhumb_core::{Rng, Span};

/// Points of the trace that a region goes through before it begins again: five days, five minutes each.
const POINTS: usize = 5 * 24 * 12;
/// What is asked for within one point comes in random order. How long a point lasts makes no difference: clients ask as fast as they can, or as told.
const INTERVAL: Span = Span::from_secs(5);

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
}
