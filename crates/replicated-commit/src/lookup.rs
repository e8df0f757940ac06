//! Looking up the ranges that an attempt has read: page by page, for a replica may have any number of deletions in them that the reader's replicas
//! had collected.
//!
//! Invariant: each row of a range is looked at once, and so is each that the reader knew.

use crate::message::{Collected, Part, Seen};
use rhumb_commit::votes::Refusal;
use rhumb_core::{Key, KeyRange, Row, Timestamp};

/// Rows that are loaded beside as many as the reader knew: those that it did not know show among them.
const SPARE_ROWS: usize = 64;

/// The ranges of a part that are still to be looked up.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeLookup {
    /// The range at hand.
    index: usize,
    /// Its rows from here on; from its start, if none.
    from: Option<Key>,
}

/// What to load next.
pub(crate) struct Page {
    pub(crate) range: KeyRange,
    /// At most so many rows.
    pub(crate) limit: usize,
}

impl RangeLookup {
    /// The page to load next. None once all ranges of `part` have been looked up.
    pub(crate) fn page(&self, part: &Part) -> Option<Page> {
        let check = part.ranges.get(self.index)?;
        let start = self.from.clone().unwrap_or_else(|| check.range.start.clone());
        Some(Page { range: KeyRange::new(start, check.range.end.clone()), limit: check.rows.len() + SPARE_ROWS })
    }

    /// The page asked for has these `rows`; there are `more` in its range. Deletions up to `collected` are gone here.
    ///
    /// # Errors
    ///
    /// The range has changed since it was read.
    pub(crate) fn take(&mut self, part: &Part, rows: &[Row], more: bool, collected: Timestamp) -> Result<(), Refusal> {
        let check = &part.ranges[self.index];
        let collected = Collected { where_read: part.collected, here: collected };
        let reached = rows.last().filter(|_| more).map(|row| row.key.successor());
        let first = self.from.as_ref().map_or(0, |from| check.rows.partition_point(|known| known.key < *from));
        let last = reached.as_ref().map_or(check.rows.len(), |reached| check.rows.partition_point(|known| known.key < *reached));
        let known = &check.rows[first..last];
        let seen = |key: &Key| known.binary_search_by(|check| check.key.cmp(key)).map_or(Seen::ABSENT, |index| known[index].seen);
        let found = |key: &Key| rows.binary_search_by(|row| row.key.cmp(key)).is_ok();
        let has_changed = rows.iter().any(|row| seen(&row.key).is_stale(row.version, collected));
        let is_gone = known.iter().filter(|check| !found(&check.key)).any(|check| check.seen.is_stale(Timestamp::ZERO, collected));
        if has_changed || is_gone {
            return Err(Refusal::Stale);
        }
        if reached.is_none() {
            self.index += 1;
        }
        self.from = reached;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{RangeCheck, ReadCheck};

    fn at(bits: u64) -> Timestamp {
        Timestamp::from_bits(bits)
    }

    fn row(key: &str, version: u64) -> Row {
        Row { key: key.into(), version: at(version), value: None }
    }

    /// A part that has read [a, m) and found `rows`, at replicas that had collected deletions up to 10.
    fn part<const N: usize>(rows: [(&str, u64); N]) -> Part {
        let rows = rows.map(|(key, version)| ReadCheck { key: key.into(), seen: Seen { version: at(version), is_live: true } });
        let range = KeyRange::new("a".into(), "m".into());
        Part { ranges: vec![RangeCheck { range, rows: rows.to_vec() }], collected: at(10), ..Part::default() }
    }

    /// What `pages` of the range of `part` come to, where deletions are gone up to 5.
    fn lookup(part: &Part, pages: &[&[Row]]) -> Result<(), Refusal> {
        let mut lookup = RangeLookup::default();
        for (index, rows) in pages.iter().enumerate() {
            assert!(lookup.page(part).is_some(), "it asks for page {index}");
            lookup.take(part, rows, index + 1 < pages.len(), at(5))?;
        }
        assert!(lookup.page(part).is_none(), "it asks for no more");
        Ok(())
    }

    #[test]
    fn a_range_is_compared_page_by_page() {
        let part = part([("b", 20), ("d", 21)]);
        assert_eq!(lookup(&part, &[&[row("b", 20), row("d", 21)]]), Ok(()));
        assert_eq!(lookup(&part, &[&[row("b", 20)], &[row("d", 21)]]), Ok(()));
        assert_eq!(lookup(&part, &[&[row("b", 20)], &[row("d", 22)]]), Err(Refusal::Stale));
        assert_eq!(lookup(&part, &[&[row("b", 20), row("c", 22)], &[row("d", 21)]]), Err(Refusal::Stale));
        assert_eq!(lookup(&part, &[&[row("b", 20)], &[]]), Ok(()), "this replica lags");
    }

    #[test]
    fn a_deletion_that_was_collected_where_the_range_was_read_is_no_change() {
        let part = part([("b", 20)]);
        assert_eq!(lookup(&part, &[&[row("a", 9)], &[row("b", 20), row("c", 10)], &[]]), Ok(()));
        assert_eq!(lookup(&part, &[&[row("a", 11), row("b", 20)]]), Err(Refusal::Stale));
    }

    #[test]
    fn a_row_whose_deletion_is_collected_here_is_gone() {
        let part = part([("b", 4), ("d", 6)]);
        assert_eq!(lookup(&part, &[&[row("b", 4)]]), Ok(()), "d is later than what is collected");
        assert_eq!(lookup(&part, &[&[row("d", 6)]]), Err(Refusal::Stale), "b was deleted");
        assert_eq!(lookup(&part, &[&[row("c", 1)], &[row("d", 6)]]), Err(Refusal::Stale), "b was deleted");
    }
}
