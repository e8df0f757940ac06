//! The clock of a site, and the bound on disk up to which it may issue timestamps.
//!
//! A hybrid clock forgets in a crash what it has issued and promised. So a site keeps a *bound* on disk: it issues no timestamp above it, and
//! its next incarnation begins above it, so that no two incarnations issue the same one. The bound is raised ahead of need, so that a transaction
//! seldom waits for it.
//!
//! ```text
//!   time of day ──────────────●───────────────┬──────────────▶
//!                             now             now + half a lead: the bound is raised once this is beyond it
//!   bound ────────────────────────────────────────────┤ now + lead, when it was last raised
//! ```
//!
//! Invariants:
//! - [`ClockLease::issue`] returns nothing above the bound on disk, and nothing twice in all incarnations of the site.
//! - What is written never falls. The disk is first in, first out, so a batch whose promise needs a bound needs it written no later than itself.
//! - The bound runs ahead of the time of day, not of the clock: an incarnation begins at the bound of the one before, and the clock would run ahead
//!   of
//!   the time by one lead more with each crash. A clock that is ahead takes its bound along in small steps.
//! - A bound behind the time of day is enough: timestamps are then behind it as well. A disk whose sync takes longer than the lead would else
//!   never catch up.

use rhumb_core::{HybridClock, Span, Time, Timestamp};

/// A clock that is ahead of the time of day takes its bound along in steps of this part of the lead.
pub const STEPS: u64 = 64;

/// A hybrid clock with its bound on disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClockLease {
    clock: HybridClock,
    lead: Span,
    /// The bound that is on disk.
    bound: Timestamp,
    /// The highest on its way there of whose arrival the site is told.
    asked: Timestamp,
    /// The highest ever written, told or not.
    written: Timestamp,
}

impl ClockLease {
    /// The clock of a site that has never run. Its bound is kept so far ahead of the time of day.
    pub fn new(lead: Span) -> ClockLease {
        let none = Timestamp::ZERO;
        ClockLease { clock: HybridClock::default(), lead, bound: none, asked: none, written: none }
    }

    /// The clock of a new incarnation, whose earlier ones have left this bound on disk.
    pub fn recovered(&self, bound: Timestamp) -> ClockLease {
        ClockLease { clock: HybridClock::above(bound), lead: self.lead, bound, asked: bound, written: bound }
    }

    /// The bound that is on disk.
    pub fn bound(&self) -> Timestamp {
        self.bound
    }

    /// The highest timestamp issued or observed.
    pub fn last(&self) -> Timestamp {
        self.clock.last()
    }

    /// Takes note of a timestamp issued elsewhere; later ones issued here lie above it.
    pub fn observe(&mut self, seen: Timestamp) {
        self.clock.observe(seen);
    }

    /// A timestamp above all that were issued or observed. It may lie above the bound, and a later incarnation may issue it again: for names that
    /// hold the incarnation as well, and for timestamps that are kept apart by the clocks of all whom they concern.
    pub fn now(&mut self, now: Time) -> Timestamp {
        self.clock.now(now)
    }

    /// True if a timestamp may be issued.
    pub fn may_issue(&self) -> bool {
        self.clock.last().next() <= self.bound
    }

    /// A new timestamp not above the bound; none if all up to it are used up.
    pub fn issue(&mut self, now: Time) -> Option<Timestamp> {
        self.clock.now_within(now, self.bound)
    }

    /// The bound to write so that the next timestamp may be issued, and be the time of day. None if it is on disk, or on its way.
    #[must_use = "it has to be written"]
    pub fn renew(&mut self, now: Time) -> Option<Timestamp> {
        self.raise(self.clock.last().next().max(Timestamp::from_time(now)), now)
    }

    /// The bound to write ahead of need, once half the lead is used up.
    #[must_use = "it has to be written"]
    pub fn renew_ahead(&mut self, now: Time) -> Option<Timestamp> {
        self.raise(Timestamp::from_time(now).plus(Span::from_micros(self.lead.as_micros() / 2)), now)
    }

    /// The bound to write so that what is promised at `at` is below it. None if it is on disk, or on its way. The site is to be
    /// [told](ClockLease::on_durable) once it is there.
    #[must_use = "it has to be written"]
    pub fn raise(&mut self, at: Timestamp, now: Time) -> Option<Timestamp> {
        if at <= self.asked {
            return None;
        }
        let step = Span::from_micros(self.lead.as_micros() / STEPS);
        let bound = at.plus(step).max(Timestamp::from_time(now).plus(self.lead)).max(self.written);
        (self.asked, self.written) = (bound, bound);
        Some(bound)
    }

    /// The bound to write in the same batch as what promises something up to `at`. None if a write before it has one.
    #[must_use = "it has to be written"]
    pub fn cover(&mut self, at: Timestamp) -> Option<Timestamp> {
        (at > self.written).then(|| {
            self.written = at;
            at
        })
    }

    /// A bound is on disk.
    pub fn on_durable(&mut self, bound: Timestamp) {
        self.bound = bound.max(self.bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAD: Span = Span::from_millis(640);
    const STEP: Span = Span::from_millis(10);

    fn at(millis: u64) -> Time {
        Time::from_micros(millis * 1_000)
    }

    fn stamp(millis: u64) -> Timestamp {
        Timestamp::from_time(at(millis))
    }

    #[test]
    fn nothing_is_issued_above_the_bound_on_disk() {
        let mut clock = ClockLease::new(LEAD);
        assert_eq!((clock.may_issue(), clock.issue(at(1_000))), (false, None));
        assert_eq!(clock.renew(at(1_000)), Some(stamp(1_000).plus(LEAD)));
        assert_eq!(clock.issue(at(1_000)), None, "it is on its way");
        clock.on_durable(stamp(1_000).plus(LEAD));
        assert_eq!(clock.issue(at(1_000)), Some(stamp(1_000)));
        assert_eq!(clock.issue(at(9_000)), Some(stamp(1_640)), "behind the time of day, as the bound is");
        assert_eq!((clock.may_issue(), clock.issue(at(9_000))), (false, None));
    }

    #[test]
    fn a_bound_is_asked_for_once() {
        let mut clock = ClockLease::new(LEAD);
        assert!(clock.renew(at(1_000)).is_some());
        assert_eq!((clock.renew(at(1_000)), clock.renew_ahead(at(1_000))), (None, None));
        assert_eq!(clock.renew_ahead(at(1_320)), None);
        assert_eq!(clock.renew_ahead(at(1_321)), Some(stamp(1_321).plus(LEAD)));
    }

    #[test]
    fn an_incarnation_begins_above_what_the_one_before_has_issued_and_runs_no_lead_ahead_with_each() {
        let mut clock = ClockLease::new(LEAD);
        let mut issued = Timestamp::ZERO;
        for incarnation in 0..100 {
            let bound = clock.renew(at(1_000 + incarnation)).expect("each incarnation begins at its bound");
            clock.on_durable(bound);
            let next = clock.issue(at(1_000 + incarnation)).expect("below the bound");
            assert!(next > issued);
            issued = next;
            clock = clock.recovered(clock.bound());
        }
        assert!(issued < stamp(1_100).plus(LEAD).plus(STEP * 100), "a step an incarnation, not a lead: {issued}");
    }

    #[test]
    fn what_is_promised_is_covered_by_its_own_batch_or_an_earlier_one() {
        let mut clock = ClockLease::new(LEAD);
        let bound = clock.renew(at(1_000)).expect("none is on disk");
        assert_eq!(clock.cover(bound), None, "the disk takes it first");
        assert_eq!(clock.cover(bound.next()), Some(bound.next()));
        assert_eq!(clock.cover(bound.next()), None);
        assert_eq!(clock.bound(), Timestamp::ZERO, "nobody is told of it");
        assert!(clock.raise(bound.next(), at(1_000)) > Some(bound.next()), "who has to be told asks for one");
    }

    #[test]
    fn what_is_written_never_falls() {
        let mut clock = ClockLease::new(LEAD);
        assert_eq!(clock.cover(stamp(99_000)), Some(stamp(99_000)));
        assert_eq!(clock.renew(at(1_000)), Some(stamp(99_000)));
        clock.on_durable(stamp(99_000));
        clock.on_durable(stamp(1_000));
        assert_eq!(clock.bound(), stamp(99_000));
    }
}
