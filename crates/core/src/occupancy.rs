//! How full the tables and queues of an actor are, for operators and for tests that run long.
//!
//! A table that is looked at is either bounded by a constant of its actor, or by time alone: what is kept so long at a bounded rate.

/// How full one table or queue of an actor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Its name, in lower case, words joined by `_`.
    pub table: &'static str,
    /// How many entries it holds.
    pub entries: u64,
    /// How many it may hold; none if time alone bounds it.
    pub bound: Option<u64>,
}

impl Occupancy {
    /// A table that holds at most `bound` entries.
    pub fn bounded(table: &'static str, entries: usize, bound: usize) -> Occupancy {
        Occupancy { table, entries: entries as u64, bound: Some(bound as u64) }
    }

    /// A table that no constant bounds.
    pub fn unbounded(table: &'static str, entries: usize) -> Occupancy {
        Occupancy { table, entries: entries as u64, bound: None }
    }
}
