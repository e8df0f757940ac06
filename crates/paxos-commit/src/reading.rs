//! Reading the rows that a transaction touches, and bringing together what regions have read.

use super::config::RANGE_ROWS_MAX;
use rhumb_commit::one_shot::footprint::Footprint;
use rhumb_core::{Key, KeyRange, Load, Loaded, Row, Timestamp};
use std::collections::BTreeMap;

/// The newest rows of a footprint, being read: all keys at once, then one range after the other.
#[derive(Debug)]
pub(super) struct Reading {
    keys: Option<Vec<Key>>,
    ranges: std::vec::IntoIter<KeyRange>,
    found: Found,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// One per key, in their order.
    pub(super) rows: Vec<Row>,
    /// The rows of each range, deletions among them.
    pub(super) ranges: Vec<Vec<Row>>,
    /// A range has more than [`RANGE_ROWS_MAX`].
    pub(super) more: bool,
}

impl Reading {
    pub(super) fn new(footprint: &Footprint) -> Reading {
        let keys: Vec<Key> = footprint.keys.keys().cloned().collect();
        Reading { keys: Some(keys).filter(|keys| !keys.is_empty()), ranges: footprint.ranges.clone().into_iter(), found: Found::default() }
    }

    /// What to load next, or all that was found.
    pub(super) fn next(mut self) -> Result<(Reading, Load), Found> {
        let at = Timestamp::MAX;
        if let Some(keys) = self.keys.take() {
            return Ok((self, Load::Get { keys, at, bytes: usize::MAX }));
        }
        match self.ranges.next() {
            Some(range) => Ok((self, Load::Scan { range, at, limit: RANGE_ROWS_MAX, bytes: usize::MAX, reverse: false })),
            None => Err(self.found),
        }
    }

    /// Takes what was loaded: the keys first, if there are any.
    pub(super) fn take(&mut self, loaded: Loaded, is_range: bool) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        if is_range {
            self.found.ranges.push(rows);
        } else {
            self.found.rows = rows;
        }
        self.found.more |= more;
    }
}

/// The newest of what several regions have read.
#[derive(Debug, Default)]
pub(super) struct Newest {
    pub(super) rows: BTreeMap<Key, Row>,
    pub(super) ranges: Vec<BTreeMap<Key, Row>>,
}

impl Newest {
    /// Takes in what one more region has read.
    pub(super) fn take(&mut self, found: &Found) {
        found.rows.iter().for_each(|row| newest(&mut self.rows, row));
        self.ranges.resize_with(found.ranges.len(), BTreeMap::new);
        for (known, rows) in self.ranges.iter_mut().zip(&found.ranges) {
            rows.iter().for_each(|row| newest(known, row));
        }
    }

    /// The highest version.
    pub(super) fn highest(&self) -> Timestamp {
        self.rows.values().chain(self.ranges.iter().flat_map(BTreeMap::values)).map(|row| row.version).max().unwrap_or_default()
    }

    /// The live rows of each range, up to its limit.
    pub(super) fn live(&self, limits: impl Iterator<Item = u32>) -> Vec<Vec<Row>> {
        let live = |(rows, limit): (&BTreeMap<Key, Row>, u32)| {
            rows.values().filter(|row| row.value.is_some()).take(limit as usize).cloned().collect()
        };
        self.ranges.iter().zip(limits).map(live).collect()
    }
}

fn newest(known: &mut BTreeMap<Key, Row>, row: &Row) {
    match known.get_mut(&row.key) {
        Some(other) if other.version >= row.version => {}
        Some(other) => *other = row.clone(),
        None => drop(known.insert(row.key.clone(), row.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, version: u64, value: Option<&str>) -> Row {
        Row { key: key.into(), version: Timestamp::from_bits(version), value: value.map(Into::into) }
    }

    #[test]
    fn a_newer_deletion_hides_an_older_row_of_another_region() {
        let mut newest = Newest::default();
        newest.take(&Found {
            rows: vec![row("a", 1, Some("x"))],
            ranges: vec![vec![row("k1", 3, Some("x")), row("k2", 2, Some("y"))]],
            more: false,
        });
        newest.take(&Found { rows: vec![row("a", 4, Some("z"))], ranges: vec![vec![row("k1", 5, None)]], more: false });
        assert_eq!(newest.rows.values().collect::<Vec<_>>(), [&row("a", 4, Some("z"))]);
        assert_eq!(newest.live([9].into_iter()), [[row("k2", 2, Some("y"))]]);
        assert_eq!(newest.highest(), Timestamp::from_bits(5));
    }

    #[test]
    fn keys_are_read_before_ranges() {
        let footprint = Footprint { keys: [("a".into(), true)].into(), ranges: vec![KeyRange::prefix(b"k")] };
        let (mut reading, load) = Reading::new(&footprint).next().expect("there are keys");
        assert!(matches!(load, Load::Get { .. }));
        reading.take(Loaded::Rows { rows: vec![row("a", 1, None)], more: false }, false);
        let (mut reading, load) = reading.next().expect("there is a range");
        assert!(matches!(load, Load::Scan { .. }));
        reading.take(Loaded::Rows { rows: vec![row("k", 1, None)], more: true }, true);
        let found = reading.next().expect_err("that is all");
        assert_eq!((found.rows.len(), found.ranges.len(), found.more), (1, 1, true));
    }
}
