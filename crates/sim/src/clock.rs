//! A site's own clock: off by an offset, drifting, and set forwards or backwards by a fault.
//!
//! Two things are told apart, as an operating system does. What an actor reads (`now`) is the wall clock: it has offset,
//! drift and jumps. What its timers run on is the same quartz, so they drift alike, but setting the wall clock neither
//! hastens nor delays them.

use rhumb_core::{Span, Time};

/// What a clock without skew shows when the world begins, so that one that is slow shows a time too.
pub const CLOCK_ORIGIN: Time = Time::from_micros(1_000_000_000);

const MILLION: i128 = 1_000_000;

/// How a site's clock differs from true time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockSkew {
    /// How far it is ahead when the world begins, in microseconds; negative: behind.
    pub offset_micros: i64,
    /// How much faster than true time it runs, in parts per million; negative: slower.
    pub drift_ppm: i32,
}

/// A site's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SiteClock {
    skew: ClockSkew,
}

impl SiteClock {
    pub(crate) fn new(skew: ClockSkew) -> SiteClock {
        SiteClock { skew }
    }

    /// What it shows at the true time `now`.
    pub(crate) fn read(&self, now: Time) -> Time {
        let elapsed = i128::from(now.as_micros());
        let drift = (elapsed * i128::from(self.skew.drift_ppm)).div_euclid(MILLION);
        let reading = i128::from(CLOCK_ORIGIN.as_micros()) + elapsed + drift + i128::from(self.skew.offset_micros);
        Time::from_micros(u64::try_from(reading.max(0)).unwrap_or(u64::MAX))
    }

    /// What its quartz has counted at the true time `now`, whatever the clock was set to.
    pub(crate) fn steady(&self, now: Time) -> Time {
        SiteClock::new(ClockSkew { offset_micros: 0, ..self.skew }).read(now)
    }

    /// Sets it forwards, or backwards if negative.
    pub(crate) fn jump(&mut self, by_micros: i64) {
        self.skew.offset_micros = self.skew.offset_micros.saturating_add(by_micros);
    }

    /// Sets it right if it is farther from true time than `most`, drift included.
    pub(crate) fn set_right(&mut self, now: Time, most: Span) {
        let right = CLOCK_ORIGIN + now.since(Time::ZERO);
        let shows = self.read(now);
        if shows.since(right).max(right.since(shows)) > most {
            self.skew.offset_micros = 0;
        }
    }

    /// The true time that passes until `span` has passed on this clock, rounded up.
    pub(crate) fn true_span(&self, span: Span) -> Span {
        let rate = u128::try_from(MILLION + i128::from(self.skew.drift_ppm)).expect("a clock does not run backwards");
        let micros = (u128::from(span.as_micros()) * MILLION.unsigned_abs()).div_ceil(rate);
        Span::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_its_offset_drift_and_jumps() {
        let mut clock = SiteClock::new(ClockSkew { offset_micros: -250, drift_ppm: 100 });
        assert_eq!(clock.read(Time::ZERO), CLOCK_ORIGIN.minus(Span::from_micros(250)));
        assert_eq!(clock.read(Time::from_micros(1_000_000)), CLOCK_ORIGIN + Span::from_micros(1_000_000 + 100 - 250));
        clock.jump(-1_000);
        assert_eq!(clock.read(Time::from_micros(1_000_000)), CLOCK_ORIGIN + Span::from_micros(1_000_000 + 100 - 1_250));
        clock.jump(i64::MIN);
        assert_eq!(clock.read(Time::ZERO), Time::ZERO, "no clock shows less than nothing");
    }

    #[test]
    fn a_span_never_ends_before_it_has_passed_on_the_clock() {
        for drift_ppm in [-200_000, -333, -1, 0, 1, 77, 200_000] {
            let clock = SiteClock::new(ClockSkew { offset_micros: 0, drift_ppm });
            for micros in [0, 1, 2, 999, 1_000_003] {
                let span = Span::from_micros(micros);
                for start in [0, 1, 12_345].map(Time::from_micros) {
                    let passed = clock.read(start + clock.true_span(span)).since(clock.read(start));
                    assert!(passed >= span, "{passed} of {span} at {drift_ppm} ppm");
                    assert!(passed <= span + Span::from_micros(2), "{passed} of {span} at {drift_ppm} ppm");
                }
            }
        }
    }
}
