//! Whether this site's clock agrees with the clocks of the other sites, and whose messages may be believed.
//!
//! Hybrid clocks follow the fastest clock that they hear of, and bounds on disk follow hybrid clocks. Without a limit, one
//! clock that is a year ahead takes every clock of the cluster along, for good. Two rules keep it out:
//!
//! 1. A message carries the reading of its sender's clock. One that lies more than the *maximum offset* ahead of the
//!    receiver's is refused, whatever it says.
//! 2. A site whose clock lies farther than that from the clocks of a majority of sites is *odd*: it stops. A site starts
//!    what depends on its clock only once the clock is *confirmed* by a majority, itself included.
//!
//! ```text
//!   this site         ping at 10.000 ────────▶           the peer's clock showed 10.310 at some moment between
//!                     pong at 10.100 ◀──────── 10.310    ⇒ it is 210 to 310 ms ahead
//! ```
//!
//! Invariants: an offset is known as an interval that holds the true one, however long the round trip took, if neither
//! clock was set meanwhile; a peer counts as *near* only if all of that interval is within the maximum offset, as *apart*
//! only if none of it is; a slow network therefore never makes a site odd.
//!
//! No protocol depends on the maximum offset for safety. It bounds how far timestamps run ahead of the time of day.

use crate::ids::SiteId;
use crate::time::{Span, Time};
use std::collections::BTreeMap;
use std::fmt;

/// The maximum offset unless configured otherwise. Far above what synchronized clocks differ by.
pub const MAX_OFFSET: Span = Span::from_secs(5);

/// How far a peer's clock is ahead of this site's, in microseconds; negative: behind. The true offset lies in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// At least so far.
    pub least_micros: i64,
    /// At most so far.
    pub most_micros: i64,
}

impl Offset {
    /// From a round trip: the peer's clock showed `theirs` at some moment between `sent` and `received` on this one.
    pub fn of_round_trip(sent: Time, theirs: Time, received: Time) -> Offset {
        Offset { least_micros: difference(theirs, received), most_micros: difference(theirs, sent) }
    }

    /// In the middle of what it may be.
    pub fn middle_micros(self) -> i64 {
        self.least_micros.midpoint(self.most_micros)
    }

    fn is_within(self, most: Span) -> bool {
        self.least_micros >= -signed(most) && self.most_micros <= signed(most)
    }

    fn is_beyond(self, most: Span) -> bool {
        self.most_micros < -signed(most) || self.least_micros > signed(most)
    }

    /// The offset of the interval that is nearest to none.
    fn nearest_micros(self) -> i64 {
        if self.least_micros > 0 { self.least_micros } else { self.most_micros.min(0) }
    }
}

/// What the clocks of the others say of this site's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A majority of all sites, this one included, is near.
    Confirmed,
    /// Neither a majority near nor one apart has answered.
    Unconfirmed,
    /// A majority of all sites is apart from it.
    Odd(Disagreement),
}

/// How a clock disagrees with those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// How far it is ahead of the nearest of those that it is apart from, at least; negative: behind.
    pub ahead_micros: i64,
    /// So many sites' clocks it is apart from.
    pub sites: usize,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.ahead_micros.unsigned_abs() as f64 / 1e6;
        let side = if self.ahead_micros > 0 { "ahead of" } else { "behind" };
        write!(f, "the clock of this site is {seconds:.1} s {side} the clocks of {} other sites", self.sites)
    }
}

/// What one site knows of the others' clocks.
#[derive(Clone, Debug)]
pub struct ClockOffsets {
    max_offset: Span,
    /// Sites of the cluster, this one included.
    sites: usize,
    offsets: BTreeMap<SiteId, Offset>,
}

impl ClockOffsets {
    /// Nothing known yet, in a cluster of `sites` sites.
    pub fn new(sites: usize, max_offset: Span) -> ClockOffsets {
        ClockOffsets { max_offset, sites, offsets: BTreeMap::new() }
    }

    /// True if a message may be taken that left when its sender's clock showed `sent`, and arrived at `now` on this one.
    pub fn admits(&self, sent: Time, now: Time) -> bool {
        sent.since(now) <= self.max_offset
    }

    /// Notes the latest offset of `peer`.
    pub fn measured(&mut self, peer: SiteId, offset: Offset) {
        self.offsets.insert(peer, offset);
    }

    /// Forgets the offset of `peer`: it is out of reach, or its process has ended and the next one reads another clock.
    pub fn forget(&mut self, peer: SiteId) {
        self.offsets.remove(&peer);
    }

    /// The latest offset of each peer that has one.
    pub fn offsets(&self) -> impl Iterator<Item = (SiteId, Offset)> + '_ {
        self.offsets.iter().map(|(peer, offset)| (*peer, *offset))
    }

    /// The latest offset of `peer`, and whether all that it may be lies beyond the maximum.
    pub fn offset(&self, peer: SiteId) -> Option<(Offset, bool)> {
        self.offsets.get(&peer).map(|offset| (*offset, offset.is_beyond(self.max_offset)))
    }

    /// The maximum offset.
    pub fn max_offset(&self) -> Span {
        self.max_offset
    }

    /// True if all who have answered are near, or nobody has: nobody who hears this site would be misled.
    pub fn is_uncontradicted(&self) -> bool {
        self.offsets.values().all(|offset| offset.is_within(self.max_offset))
    }

    /// What the others say of this site's clock.
    pub fn verdict(&self) -> Verdict {
        let majority = self.sites / 2 + 1;
        let apart = || self.offsets.values().filter(|offset| offset.is_beyond(self.max_offset));
        let near = 1 + self.offsets.values().filter(|offset| offset.is_within(self.max_offset)).count();
        if near >= majority {
            Verdict::Confirmed
        } else if apart().count() >= majority {
            let nearest = apart().map(|offset| -offset.nearest_micros()).min_by_key(|micros| micros.abs());
            Verdict::Odd(Disagreement { ahead_micros: nearest.expect("a majority is at least one"), sites: apart().count() })
        } else {
            Verdict::Unconfirmed
        }
    }
}

/// `a` minus `b`, in microseconds.
fn difference(a: Time, b: Time) -> i64 {
    signed(a.since(b)) - signed(b.since(a))
}

fn signed(span: Span) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Span = Span::from_secs(5);

    fn at(millis: u64) -> Time {
        Time::from_micros(1_000_000_000) + Span::from_millis(millis)
    }

    fn peer(region: u16) -> SiteId {
        SiteId::new(region, 0)
    }

    /// Peers whose clocks are exactly so many seconds ahead.
    fn offsets(sites: usize, ahead: &[i64]) -> ClockOffsets {
        let mut offsets = ClockOffsets::new(sites, MAX);
        for (region, seconds) in ahead.iter().enumerate() {
            let micros = seconds * 1_000_000;
            offsets.measured(peer(region as u16 + 1), Offset { least_micros: micros, most_micros: micros });
        }
        offsets
    }

    #[test]
    fn a_round_trip_bounds_the_offset_from_both_sides() {
        let offset = Offset::of_round_trip(at(10_000), at(10_310), at(10_100));
        assert_eq!(offset, Offset { least_micros: 210_000, most_micros: 310_000 });
        let offset = Offset::of_round_trip(at(10_000), at(2_000), at(10_100));
        assert_eq!(offset, Offset { least_micros: -8_100_000, most_micros: -8_000_000 });
    }

    #[test]
    fn a_minority_that_is_near_contradicts_nobody() {
        assert!(offsets(5, &[]).is_uncontradicted() && offsets(5, &[1]).is_uncontradicted());
        assert!(!offsets(5, &[1, 6]).is_uncontradicted() && !offsets(5, &[-6]).is_uncontradicted());
        assert_eq!(offsets(5, &[1]).verdict(), Verdict::Unconfirmed);
    }

    #[test]
    fn a_message_from_the_far_future_is_refused_and_one_from_the_past_is_not() {
        let offsets = ClockOffsets::new(3, MAX);
        assert!(offsets.admits(at(5_000), at(0)));
        assert!(!offsets.admits(at(5_001), at(0)));
        assert!(offsets.admits(Time::ZERO, at(0)), "it may have been under way for long");
    }

    #[test]
    fn a_clock_is_confirmed_by_a_majority_that_includes_its_own_site() {
        assert_eq!(offsets(1, &[]).verdict(), Verdict::Confirmed);
        assert_eq!(offsets(3, &[]).verdict(), Verdict::Unconfirmed);
        assert_eq!(offsets(3, &[1]).verdict(), Verdict::Confirmed);
        assert_eq!(offsets(3, &[3600, 0]).verdict(), Verdict::Confirmed, "the other one is wrong");
        assert_eq!(offsets(5, &[1]).verdict(), Verdict::Unconfirmed);
        assert_eq!(offsets(5, &[1, -4]).verdict(), Verdict::Confirmed);
    }

    #[test]
    fn a_clock_apart_from_a_majority_is_odd() {
        assert_eq!(offsets(3, &[-3600, -3599]).verdict(), Verdict::Odd(Disagreement { ahead_micros: 3_599_000_000, sites: 2 }));
        assert_eq!(offsets(5, &[60, 61, 62]).verdict(), Verdict::Odd(Disagreement { ahead_micros: -60_000_000, sites: 3 }));
        assert_eq!(offsets(5, &[60, 61]).verdict(), Verdict::Unconfirmed, "two of five are no majority");
        assert_eq!(offsets(2, &[60]).verdict(), Verdict::Unconfirmed, "nobody can tell which of the two is wrong");
    }

    #[test]
    fn a_slow_round_trip_neither_confirms_nor_refutes() {
        let mut offsets = ClockOffsets::new(3, MAX);
        // Twelve seconds under way: the peer is 9 s behind to 3 s ahead.
        offsets.measured(peer(1), Offset::of_round_trip(at(0), at(3_000), at(12_000)));
        assert_eq!(offsets.verdict(), Verdict::Unconfirmed);
        offsets.measured(peer(1), Offset::of_round_trip(at(20_000), at(20_050), at(20_100)));
        assert_eq!(offsets.verdict(), Verdict::Confirmed);
        assert_eq!(offsets.offset(peer(1)).map(|(_, apart)| apart), Some(false));
        offsets.forget(peer(1));
        assert_eq!(offsets.offset(peer(1)), None);
        assert_eq!(offsets.verdict(), Verdict::Unconfirmed);
    }

    #[test]
    fn a_disagreement_says_what_an_operator_must_know() {
        let Verdict::Odd(disagreement) = offsets(3, &[-3600, -3600]).verdict() else { panic!("it is odd") };
        assert_eq!(disagreement.to_string(), "the clock of this site is 3600.0 s ahead of the clocks of 2 other sites");
    }
}
