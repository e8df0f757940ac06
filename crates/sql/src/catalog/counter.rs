//! The counter of a sequence: the number given out last, and how it moves on.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::SequenceDescriptor;
use crate::storage::index_prefix;
use rhumb_core::Key;
use serde::{Deserialize, Serialize};

/// The counter of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counter {
    /// The number given out last, or else the next.
    pub last: i64,
    /// True if it was given out.
    pub called: bool,
}

/// A block has at most one of so many numbers that are left.
const SHARE: i128 = 8;

/// Numbers of a sequence that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    next: i64,
    increment: i64,
    left: u64,
}

impl Counter {
    /// That of a sequence of which no number was given out.
    pub fn new(start: i64) -> Counter {
        Counter { last: start, called: false }
    }

    /// The key that it lies under.
    pub fn key(sequence: &SequenceDescriptor) -> Key {
        Key::new(index_prefix(sequence.database, sequence.id, crate::schema::IndexId(0)))
    }

    /// Moves on by up to `wanted` numbers, and up to a share of those that are left, so that there are some for other sites; by one at least. Error
    /// 2200H at the end.
    pub fn take(&mut self, sequence: &SequenceDescriptor, wanted: u64) -> SqlResult<Run> {
        let (increment, end) = (i128::from(sequence.increment), if sequence.increment > 0 { sequence.max } else { sequence.min });
        let mut next = i128::from(self.last) + if self.called { increment } else { 0 };
        if next > i128::from(sequence.max) || next < i128::from(sequence.min) {
            if !sequence.cycle {
                return Err(exhausted(sequence));
            }
            next = i128::from(if sequence.increment > 0 { sequence.min } else { sequence.max });
        }
        let there_are = (i128::from(end) - next) / increment + 1;
        let count = i128::from(wanted).min(there_are / SHARE).max(1).min(there_are);
        let fitting = |number: i128| i64::try_from(number).map_err(|_| SqlError::internal("a sequence went beyond its bounds"));
        *self = Counter { last: fitting(next + (count - 1) * increment)?, called: true };
        Ok(Run { next: fitting(next)?, increment: sequence.increment, left: u64::try_from(count).unwrap_or(1) })
    }
}

impl Iterator for Run {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        let number = self.next;
        // There is none behind the last.
        self.next = self.next.wrapping_add(self.increment);
        Some(number)
    }
}

/// 2200H.
fn exhausted(sequence: &SequenceDescriptor) -> SqlError {
    let (end, bound) = if sequence.increment > 0 { ("maximum", sequence.max) } else { ("minimum", sequence.min) };
    let message = format!("nextval: reached {end} value of sequence \"{}\" ({bound})", sequence.name);
    SqlError::new(SqlState::SequenceGeneratorLimitExceeded, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{DatabaseId, TableId};
    use crate::types::SqlType;

    fn sequence(increment: i64, min: i64, max: i64, cycle: bool) -> SequenceDescriptor {
        SequenceDescriptor {
            database: DatabaseId(1),
            id: TableId(7),
            name: "s".into(),
            ty: SqlType::Int8,
            start: if increment > 0 { min } else { max },
            increment,
            min,
            max,
            cycle,
            cache: None,
            owner: None,
            used_by: Default::default(),
            generation: 0,
        }
    }

    fn taken(sequence: &SequenceDescriptor, counter: &mut Counter, wanted: u64) -> SqlResult<Vec<i64>> {
        counter.take(sequence, wanted).map(Iterator::collect)
    }

    #[test]
    fn runs_follow_each_other_up_to_the_end_and_from_there_if_it_cycles() {
        for (cycle, then) in [(false, None), (true, Some(vec![1, 4]))] {
            let sequence = sequence(3, 1, 60, cycle);
            let mut counter = Counter::new(1);
            assert_eq!(taken(&sequence, &mut counter, 9), Ok(vec![1, 4]), "a share of twenty");
            assert_eq!(taken(&sequence, &mut counter, 0), Ok(vec![7]), "one at the least");
            counter = Counter { last: 55, called: true };
            assert_eq!(taken(&sequence, &mut counter, 5), Ok(vec![58]), "what is left");
            let after = taken(&sequence, &mut counter, 2);
            match then {
                Some(numbers) => assert_eq!(after, Ok(numbers)),
                None => {
                    let error = after.expect_err("at the end");
                    assert_eq!(error.to_string(), "nextval: reached maximum value of sequence \"s\" (60)");
                    assert_eq!(counter, Counter { last: 58, called: true }, "an error moves nothing");
                }
            }
        }
    }

    #[test]
    fn a_counter_goes_to_the_ends_of_its_type() {
        let up = sequence(i64::MAX, i64::MIN, i64::MAX, false);
        let mut counter = Counter::new(i64::MIN);
        let all: Vec<i64> = (0..3).flat_map(|_| taken(&up, &mut counter, 1).expect("there are three")).collect();
        assert_eq!(all, [i64::MIN, -1, i64::MAX - 1]);
        let down = sequence(-1, i64::MIN, -1, false);
        assert_eq!(taken(&down, &mut Counter { last: i64::MIN + 1, called: true }, 9), Ok(vec![i64::MIN]));
        assert_eq!(taken(&down, &mut Counter { last: i64::MIN, called: true }, 1).expect_err("at the end").state().code(), "2200H");
    }
}
