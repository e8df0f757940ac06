//! Reading the rows of a transaction or of a snapshot: first the keys, then one range after the other, page by page.

use rhumb_commit::one_shot::execution::VALUES_BYTES_MAX;
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::{Key, KeyRange, Load, Loaded, Row, Timestamp, Value};
use std::collections::{BTreeSet, VecDeque};

/// Rows of a range loaded at once, deletions counted.
const PAGE: usize = 1_024;
/// Bytes of the same after which no more are loaded.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// A read in progress.
#[derive(Debug)]
pub struct Fetch {
    at: Timestamp,
    /// Keys still to ask for.
    keys: Vec<Key>,
    /// Ranges still to read, and how many live rows of each are still wanted.
    ranges: VecDeque<(KeyRange, usize)>,
    /// Ranges are read from their ends.
    reverse: bool,
    rows: Vec<Row>,
    found: Vec<Vec<Row>>,
    /// Rows whose values are kept, and for each range whether those of its rows are; `None`: all of them.
    values: Option<(BTreeSet<Key>, Vec<bool>)>,
    /// Of keys and values in `rows` and `found`.
    bytes: usize,
    /// No more is read than so many bytes.
    bytes_max: usize,
}

impl Fetch {
    /// A read of these rows as of `at`.
    pub fn new(at: Timestamp, keys: Vec<Key>, ranges: impl IntoIterator<Item = (KeyRange, u32)>) -> Fetch {
        let ranges: VecDeque<_> = ranges.into_iter().map(|(range, limit)| (range, limit as usize)).collect();
        let found = vec![Vec::new(); ranges.len()];
        Fetch { at, keys, ranges, reverse: false, rows: Vec::new(), found, values: None, bytes: 0, bytes_max: usize::MAX }
    }

    /// What `transaction` needs to be run as of `at`, up to `VALUES_BYTES_MAX`.
    pub fn of(transaction: &Transaction, at: Timestamp) -> Fetch {
        let keys = transaction.footprint().keys.into_keys().collect();
        let ranges = transaction.operations.iter().filter_map(Operation::range).map(|(range, limit)| (range.clone(), limit));
        let of_values = transaction.operations.iter().filter(|operation| operation.reads_values());
        let keys_of_values = of_values.filter_map(|operation| operation.key().cloned()).collect();
        let ranges_of_values = transaction.operations.iter().filter(|operation| operation.range().is_some()).map(Operation::reads_values);
        let values = Some((keys_of_values, ranges_of_values.collect()));
        Fetch { values, bytes_max: VALUES_BYTES_MAX, ..Fetch::new(at, keys, ranges) }
    }

    /// The same, with the last rows of ranges first.
    pub fn reversed(mut self, reverse: bool) -> Fetch {
        self.reverse = reverse;
        self
    }

    /// The same, up to so many bytes, and what the last page has beyond.
    pub fn up_to(mut self, bytes: usize) -> Fetch {
        self.bytes_max = bytes;
        self
    }

    /// As of when.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// What to load next; `None` once all is read.
    pub fn next_load(&mut self) -> Option<Load> {
        if self.exceeds() {
            return None;
        }
        if !self.keys.is_empty() {
            return Some(Load::Get { keys: self.keys.clone(), at: self.at, bytes: PAGE_BYTES_MAX });
        }
        let (range, _) = self.ranges.front()?;
        Some(Load::Scan { range: range.clone(), at: self.at, limit: PAGE, bytes: PAGE_BYTES_MAX, reverse: self.reverse })
    }

    /// Takes what was loaded.
    pub fn take(&mut self, loaded: Loaded) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        if !self.keys.is_empty() {
            self.keys.drain(..rows.len());
            let keep = |row: &Row| self.values.as_ref().is_none_or(|(keys, _)| keys.contains(&row.key));
            let rows: Vec<Row> = rows.into_iter().map(|row| if keep(&row) { row } else { without_value(row) }).collect();
            self.bytes += bytes_of(&rows);
            self.rows.extend(rows);
            return;
        }
        let index = self.found.len() - self.ranges.len();
        let (range, wanted) = self.ranges.front_mut().expect("a range is being read");
        let last = rows.last().map(|row| row.key.clone());
        let keep = self.values.as_ref().is_none_or(|(_, ranges)| ranges[index]);
        let live = rows.into_iter().filter(|row| row.value.is_some()).take(*wanted);
        let live: Vec<Row> = live.map(|row| if keep { row } else { without_value(row) }).collect();
        *wanted -= live.len();
        self.bytes += bytes_of(&live);
        self.found[index].extend(live);
        match last.filter(|_| more && *wanted > 0) {
            Some(last) if self.reverse => range.end = last,
            Some(last) => range.start = last.successor(),
            None => drop(self.ranges.pop_front()),
        }
    }

    /// True if nothing is left to load.
    pub fn is_complete(&self) -> bool {
        self.exceeds() || (self.keys.is_empty() && self.ranges.is_empty())
    }

    /// True if there was more to read than may be: so at every site, as all read the same rows, whatever pages they came in.
    pub fn exceeds(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// True if something was left unread for that.
    pub fn is_cut(&self) -> bool {
        self.exceeds() && !(self.keys.is_empty() && self.ranges.is_empty())
    }

    /// Bytes of the keys and values read so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What was read: the rows by key, and the live rows of each range.
    pub fn finish(self) -> (Vec<Row>, Vec<Vec<Row>>) {
        (self.rows, self.found)
    }
}

fn without_value(row: Row) -> Row {
    Row { value: row.value.map(|_| Value::new(Vec::new())), ..row }
}

fn bytes_of(rows: &[Row]) -> usize {
    rows.iter().map(|row| row.key.0.len() + row.value.as_ref().map_or(0, |value| value.0.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, live: bool) -> Row {
        Row { key: key.into(), version: Timestamp::from_bits(1), value: live.then(|| "v".into()) }
    }

    #[test]
    fn a_range_can_be_read_from_its_end() {
        let mut fetch = Fetch::new(Timestamp::from_bits(9), vec![], [(KeyRange::prefix(b"k"), 3)]).reversed(true);
        assert!(matches!(fetch.next_load(), Some(Load::Scan { reverse: true, .. })));
        fetch.take(Loaded::Rows { rows: vec![row("k4", true), row("k3", false)], more: true });
        assert!(matches!(fetch.next_load(), Some(Load::Scan { range, .. }) if range.end == "k3".into()));
        fetch.take(Loaded::Rows { rows: vec![row("k2", true)], more: false });
        assert_eq!((fetch.next_load(), fetch.finish().1), (None, vec![vec![row("k4", true), row("k2", true)]]));
    }

    #[test]
    fn keys_come_first_and_ranges_are_read_until_enough_rows_live() {
        let at = Timestamp::from_bits(9);
        let mut fetch = Fetch::new(at, vec!["a".into()], [(KeyRange::prefix(b"k"), 2), (KeyRange::prefix(b"z"), 1)]);
        assert_eq!(fetch.next_load(), Some(Load::Get { keys: vec!["a".into()], at, bytes: PAGE_BYTES_MAX }));
        fetch.take(Loaded::Rows { rows: vec![row("a", true)], more: false });
        assert!(matches!(fetch.next_load(), Some(Load::Scan { range, .. }) if range == KeyRange::prefix(b"k")));
        fetch.take(Loaded::Rows { rows: vec![row("k1", true), row("k2", false)], more: true });
        assert!(matches!(fetch.next_load(), Some(Load::Scan { range, .. }) if range.start == Key::from("k2").successor()));
        fetch.take(Loaded::Rows { rows: vec![row("k3", true), row("k4", true)], more: true });
        assert!(matches!(fetch.next_load(), Some(Load::Scan { range, .. }) if range == KeyRange::prefix(b"z")));
        fetch.take(Loaded::Rows { rows: vec![], more: false });
        assert_eq!(fetch.next_load(), None);
        let (rows, found) = fetch.finish();
        assert_eq!((rows, found), (vec![row("a", true)], vec![vec![row("k1", true), row("k3", true)], vec![]]));
    }
}
