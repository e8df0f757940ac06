//! Floors: up to where a snapshot must reach that sees a commit, so that it sees all that ended before that commit began.
//!
//! Timestamps are proposed by gateways whose clocks differ. T1 may commit at 110, and T2, which begins elsewhere after T1 has
//! ended and touches none of its rows, at 90. A snapshot at 100 whose messages are long under way can then find T2 where it
//! arrives late, and miss T1 where it arrived early. So each commit has a *floor*: the highest timestamp that was prepared
//! anywhere where T1 could have been, when T2's votes were cast.
//!
//! ```text
//!   T2's gateway          every region that votes                        a snapshot's gateway
//!     │ Accept at 90          │ coordinator: votes yes, its highest          │ Read at 100
//!     ├──────────────────────▶│ prepared timestamp is 110                    ├───────────▶│ finds T2@90, floor 110
//!     │◀── Vote yes, high 110 ┤                                              │◀───────────┤ Rows …, floor 110
//!     │ AskHigh               │ sites of the other shards                    │ Read at 110
//!     ├──────────────────────▶│                                              ├───────────▶│ finds T1@110 too
//!     │◀───────────── High 70 ┤                                              │
//!     │ Decided, floor 110    │
//!     ├──────────────────────▶│ keeps 90 ⇒ 110
//! ```
//!
//! T1 had a majority of yes-votes before it ended. The votes on T2, and the answers of a majority in each other shard, were requested after that.
//! Some region is in both majorities, and reports a timestamp of at least T1's. A snapshot that finds T2 and lies below T2's floor is read again at
//! the floor.
//!
//! Invariants: a commit is applied with a floor or not at all; `of(at)` is at least the floor of every commit applied at `at`
//! in this incarnation or an earlier one; a site's high covers whatever it is prepared for or has applied in any incarnation.

use super::Cohort;
use crate::records::Number;
use rhumb_core::{Batch, Table, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Commits whose floors are kept one by one.
const FLOORS_MAX: usize = 16_384;

/// Seconds for each of which the highest floor of its commits is kept: more than a snapshot lives.
const SECONDS_MAX: usize = 1_024;

/// The floors of the commits applied at one shard replica.
#[derive(Clone, Debug, Default)]
pub(crate) struct Floors {
    /// Of those whose floor lies above their timestamp.
    by_commit: BTreeMap<Timestamp, Timestamp>,
    /// The same, lowest floor first.
    by_floor: BTreeSet<(Timestamp, Timestamp)>,
    /// At least the floors of all other commits of a second of timestamps, but for those below `base`.
    by_second: BTreeMap<u64, Timestamp>,
    /// At least the floor of every commit that is kept in neither way.
    base: Timestamp,
}

impl Floors {
    /// Keeps the floor of a commit at `at`. Beyond [`FLOORS_MAX`] the lowest is folded into that of its second, and beyond [`SECONDS_MAX`] the
    /// lowest of those into one bound for all.
    pub(crate) fn keep(&mut self, at: Timestamp, floor: Timestamp) {
        let known = self.by_commit.get(&at).copied().unwrap_or(at);
        if floor <= known.max(self.base) {
            return;
        }
        self.by_commit.insert(at, floor);
        self.by_floor.remove(&(known, at));
        self.by_floor.insert((floor, at));
        if self.by_floor.len() > FLOORS_MAX
            && let Some((floor, at)) = self.by_floor.pop_first()
        {
            self.by_commit.remove(&at);
            self.fold(at, floor);
        }
    }

    fn fold(&mut self, at: Timestamp, floor: Timestamp) {
        let known = self.by_second.entry(second_of(at)).or_default();
        *known = floor.max(*known);
        if self.by_second.len() > SECONDS_MAX
            && let Some((&second, &floor)) = self.by_second.iter().min_by_key(|(_, floor)| **floor)
        {
            self.by_second.remove(&second);
            self.raise_base(floor);
        }
    }

    /// No commit that is not kept by itself has a floor above `floor`.
    pub(crate) fn raise_base(&mut self, floor: Timestamp) {
        self.base = floor.max(self.base);
    }

    /// Lists its tables: as full at rest as they were.
    pub(crate) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("cohort.floors", self.by_commit.len(), FLOORS_MAX).stays());
        visit(Table::new("cohort.floors_by_second", self.by_second.len(), SECONDS_MAX).stays());
    }

    /// Up to where a snapshot must reach that sees a commit at `at`.
    pub(crate) fn of(&self, at: Timestamp) -> Timestamp {
        let folded = self.by_second.get(&second_of(at)).copied().unwrap_or(at);
        self.by_commit.get(&at).copied().unwrap_or(at).max(folded).max(self.base)
    }
}

/// The second that `at` lies in.
fn second_of(at: Timestamp) -> u64 {
    at.time().as_micros() / 1_000_000
}

impl Cohort {
    /// Notes in memory and in `batch` that a commit is applied here, whose readers must reach up to `floor`.
    pub(crate) fn keep_floor(&mut self, at: Timestamp, floor: Timestamp, batch: &mut Batch) {
        self.floors.keep(at, floor);
        self.highest = at.max(self.highest);
        self.note_applied(at.max(floor), batch);
    }

    /// Rows were copied of which none has a floor above `highest`.
    pub(crate) fn copy_floors(&mut self, highest: Timestamp, batch: &mut Batch) {
        self.floors.raise_base(highest);
        self.note_applied(highest, batch);
    }

    fn note_applied(&mut self, highest: Timestamp, batch: &mut Batch) {
        if highest > self.highest_applied {
            self.highest_applied = highest;
            Number::Highest.put(batch, highest.bits());
        }
    }

    /// An earlier incarnation applied nothing above `highest`, nor with a floor above it.
    pub(crate) fn recover_highest(&mut self, highest: Timestamp) {
        self.highest_applied = highest;
        self.highest = highest.max(self.highest);
        self.floors.raise_base(highest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::Time;

    fn at(bits: u64) -> Timestamp {
        Timestamp::from_bits(bits)
    }

    #[test]
    fn a_floor_is_that_of_its_commit() {
        let mut floors = Floors::default();
        floors.keep(at(90), at(110));
        floors.keep(at(95), at(95));
        assert_eq!([floors.of(at(90)), floors.of(at(95)), floors.of(at(96))], [at(110), at(95), at(96)]);
        floors.keep(at(90), at(105));
        assert_eq!(floors.of(at(90)), at(110), "two commits at one timestamp: the higher floor");
        floors.raise_base(at(100));
        assert_eq!([floors.of(at(90)), floors.of(at(95)), floors.of(at(120))], [at(110), at(100), at(120)]);
    }

    #[test]
    fn forgetting_lowers_no_floor() {
        let mut floors = Floors::default();
        let commits = 3 * FLOORS_MAX as u64;
        let at = |ms: u64| Timestamp::from_time(Time::from_micros(ms * 1_000));
        let floor = |n: u64| at(n * 100 + (n * 7_919) % 5_000);
        for n in 1..=commits {
            floors.keep(at(n * 100), floor(n));
        }
        assert!(floors.by_commit.len() <= FLOORS_MAX && floors.by_floor.len() == floors.by_commit.len());
        assert_eq!(floors.by_second.len(), SECONDS_MAX);
        assert!((1..=commits).all(|n| floors.of(at(n * 100)) >= floor(n)));
    }

    /// What was written long before a snapshot was taken is not moved above it by later commits, however many there are.
    #[test]
    fn a_floor_that_is_folded_is_no_other_seconds() {
        let mut floors = Floors::default();
        let at = |ms: u64| Timestamp::from_time(Time::from_micros(ms * 1_000));
        for n in 0..2 * FLOORS_MAX as u64 {
            floors.keep(at(10_000 + n), at(10_500 + n));
        }
        assert_eq!(floors.of(at(9_000)), at(9_000));
        assert!(floors.of(at(10_000)) >= at(10_500) && floors.of(at(10_000)) < at(11_600));
    }
}
