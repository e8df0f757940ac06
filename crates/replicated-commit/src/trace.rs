//! Traces: what the rows of a replica say of an attempt that others have forgotten or are in doubt about.
//!
//! Of a row that the attempt writes, the newest version is looked at that is not above the attempt's timestamp, or above the floor of the replica's
//! history where that is higher: none of these is gone.
//!
//! | that version is | and so |
//! |---|---|
//! | the attempt's | it has committed |
//! | older, or there is none | it has not been applied here: its own version would be there, or a later one |
//! | later | nobody can tell: its own version may have been collected, and is not read here any more |
//!
//! An older version says nothing either of a time whose commits were taken over from a log that had lost rows.
//!
//! Invariant: what has been collected is not taken for what has never been.

use crate::config::PAGE_BYTES_MAX;
use crate::message::{Meta, Part};
use rhumb_core::actor::Token;
use rhumb_core::{Load, Row, Timestamp};

/// What the rows say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It has committed.
    Committed,
    /// It has not been applied here.
    Absent,
    /// Whatever it wrote here was overwritten or deleted later, and nobody reads it here any more.
    Covered,
}

/// Up to where a replica has lost what it had.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dropped {
    /// Below it a version that was superseded may be gone.
    pub(super) versions: Timestamp,
    /// Up to it a deletion may be gone, with all that it covers.
    pub(super) deletions: Timestamp,
    /// Up to it a commit may have been taken over without rows that later ones cover, and these are yet to come.
    pub(super) taken_over: Timestamp,
}

/// A search for what an attempt has written: key by key, as many at a time as fit into a page.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    found: Option<Found>,
    /// So many of the rows that it writes have a later version.
    covered: usize,
    /// By which load rows are awaited, and as of when they are loaded. Those of an earlier search may still come.
    awaited: Option<(Token, Timestamp)>,
}

impl Trace {
    /// What the rows say, once that is known.
    pub(super) fn found(&self) -> Option<Found> {
        self.found
    }

    /// Has the next rows loaded by `load`, to find out about an attempt that writes `part` here, unless that is under way or known.
    pub(super) fn look(&mut self, meta: &Meta, part: &Part, dropped: Dropped, load: impl FnOnce(Load) -> Token) {
        if meta.at <= dropped.deletions || self.covered == part.writes.len() {
            self.found.get_or_insert(Found::Covered);
        }
        if self.found.is_some() || self.awaited.is_some() {
            return;
        }
        let at = meta.at.max(dropped.versions);
        let keys = part.writes[self.covered..].iter().map(|(key, _)| key.clone()).collect();
        self.awaited = Some((load(Load::Get { keys, at, bytes: PAGE_BYTES_MAX }), at));
    }

    /// The `rows` asked for are here, as far as a page goes. Where they do not suffice, [look](Self::look) again.
    pub(super) fn take(&mut self, meta: &Meta, part: &Part, dropped: Dropped, token: Token, rows: &[Row]) -> Option<Found> {
        let (_, at) = self.awaited.take_if(|(awaited, _)| *awaited == token)?;
        if dropped.versions > at || dropped.deletions >= meta.at {
            return None; // some of them may have been collected before they were loaded
        }
        for ((_, value), row) in part.writes[self.covered..].iter().zip(rows) {
            if row.version <= meta.at {
                let is_own = row.version == meta.at && row.value == *value;
                // What was taken over without its rows may be followed by what covers them.
                if is_own || meta.at > dropped.taken_over {
                    self.found = Some(if is_own { Found::Committed } else { Found::Absent });
                    return self.found;
                }
            }
            self.covered += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{R1, Stage, ms};
    use rhumb_core::{Key, Value};

    const TOKEN: Token = 1;
    const NOTHING: Dropped = Dropped { versions: Timestamp::ZERO, deletions: Timestamp::ZERO, taken_over: Timestamp::ZERO };

    fn key(name: &str) -> Key {
        Key::from(name)
    }

    fn value(name: &str) -> Option<Value> {
        Some(Value::from(name))
    }

    /// An attempt at 100 that writes a and b.
    fn attempt() -> (Meta, Part) {
        let writes = [("a", "1"), ("b", "1")].map(|(name, written)| (key(name), value(written)));
        (Stage::new(1).meta(R1, 100, &[0]), Part { writes: writes.into(), ..Part::default() })
    }

    fn row(name: &str, at: u64, written: &str) -> Row {
        Row { key: key(name), version: ms(at), value: value(written) }
    }

    /// As of when rows are loaded next, if they are.
    fn look(trace: &mut Trace, dropped: Dropped) -> Option<Timestamp> {
        let (meta, part) = attempt();
        let mut as_of = None;
        trace.look(&meta, &part, dropped, |load| {
            let Load::Get { at, .. } = load else { unreachable!("rows are asked for by key") };
            as_of = Some(at);
            TOKEN
        });
        as_of
    }

    fn take(trace: &mut Trace, dropped: Dropped, token: Token, rows: &[Row]) -> Option<Found> {
        let (meta, part) = attempt();
        trace.take(&meta, &part, dropped, token, rows)
    }

    /// What `pages` of rows say, one after another, where versions below `floor` are collected.
    fn found(floor: u64, pages: &[&[Row]]) -> Option<Found> {
        let (mut trace, dropped) = (Trace::default(), Dropped { versions: ms(floor), ..NOTHING });
        for page in pages {
            assert_eq!(look(&mut trace, dropped), Some(ms(floor.max(100))));
            take(&mut trace, dropped, TOKEN, page);
        }
        assert_eq!(look(&mut trace, dropped), None, "it has looked at all rows");
        trace.found()
    }

    #[test]
    fn a_row_tells_unless_a_later_version_covers_it() {
        let (own, older) = ([row("a", 100, "1"), row("b", 100, "1")], [row("a", 90, "0"), row("b", 0, "")]);
        assert_eq!(found(50, &[&own]), Some(Found::Committed));
        assert_eq!(found(50, &[&older]), Some(Found::Absent));
        assert_eq!(
            found(200, &[&[row("a", 150, "2"), row("b", 90, "0")]]),
            Some(Found::Absent),
            "b would have its version, or a later one"
        );
        assert_eq!(found(200, &[&[row("a", 150, "2"), row("b", 100, "1")]]), Some(Found::Committed));
        assert_eq!(found(200, &[&[row("a", 150, "2"), row("b", 180, "2")]]), Some(Found::Covered));
        assert_eq!(found(50, &[&[row("a", 100, "other")]]), Some(Found::Absent), "another attempt has its timestamp");
    }

    #[test]
    fn a_page_that_is_cut_off_is_not_the_end() {
        assert_eq!(found(200, &[&[row("a", 150, "2")], &[row("b", 100, "1")]]), Some(Found::Committed));
        assert_eq!(found(200, &[&[row("a", 150, "2")], &[row("b", 150, "2")]]), Some(Found::Covered));
    }

    #[test]
    fn rows_that_were_collected_while_they_were_loaded_say_nothing() {
        let mut trace = Trace::default();
        assert_eq!(look(&mut trace, NOTHING), Some(ms(100)));
        assert_eq!(look(&mut trace, NOTHING), None, "once at a time");
        let later = Dropped { versions: ms(120), ..NOTHING };
        assert_eq!(take(&mut trace, later, TOKEN, &[row("a", 90, "0")]), None);
        assert_eq!((look(&mut trace, later), trace.found()), (Some(ms(120)), None));
    }

    #[test]
    fn what_was_taken_over_without_its_rows_is_not_taken_for_absent() {
        let mut trace = Trace::default();
        let hole = Dropped { versions: ms(300), taken_over: ms(300), ..NOTHING };
        assert_eq!(look(&mut trace, hole), Some(ms(300)));
        assert_eq!(take(&mut trace, hole, TOKEN, &[row("a", 90, "0"), row("b", 90, "0")]), None);
        assert_eq!((look(&mut trace, hole), trace.found()), (None, Some(Found::Covered)));
    }

    #[test]
    fn the_rows_of_an_earlier_search_are_ignored() {
        let mut trace = Trace::default();
        assert_eq!(look(&mut trace, NOTHING), Some(ms(100)));
        assert_eq!(take(&mut trace, NOTHING, TOKEN + 1, &[row("a", 90, "0")]), None);
        assert_eq!(take(&mut trace, NOTHING, TOKEN, &[row("a", 90, "0")]), Some(Found::Absent));
    }

    #[test]
    fn deletions_that_were_collected_leave_no_trace() {
        let mut trace = Trace::default();
        assert_eq!(look(&mut trace, Dropped { deletions: ms(100), ..NOTHING }), None);
        assert_eq!(trace.found(), Some(Found::Covered));
    }
}
